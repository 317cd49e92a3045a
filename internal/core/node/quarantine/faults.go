package quarantine

import (
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Check records a report on a GPU.
func (q *Quarantine) Check(now quantity.Instant, v *protocol.Vitals, out *protocol.Out) {
	for _, id := range v.Slices {
		s := q.inventory.Record(id)
		for _, x := range v.Errors {
			if f, closed := health.Of(now, x.Code, x.On == "" || x.On == id, v.Life); closed {
				q.fail(now, s, f, out)
			}
		}
		if v.Look != nil {
			q.judge(now, s, v, out)
		}
	}
}

// judge records the state of a slice's GPU.
func (q *Quarantine) judge(now quantity.Instant, s *inventory.Slice, v *protocol.Vitals, out *protocol.Out) {
	x := q.looked(s)
	worst, bad := health.Worst(now, v.Look.States)
	if bad && worst.Text != x.waived {
		q.fail(now, s, worst, out)
	}
	if !bad {
		x.waived = ""
	}
	fault := s.Condition().Fault
	if fault == nil {
		return
	}
	if why, reset := fault.Over(now, v.Look, v.Life, x.relapses); why != "" {
		if x.relapses++; reset {
			x.relapses = 0
		}
		q.mend(s, why, out)
	}
}

// fail closes a slice for a fault, unless it has one that is no less.
func (q *Quarantine) fail(now quantity.Instant, s *inventory.Slice, f health.Fault, out *protocol.Out) {
	f, more := health.Merge(s.Condition().Fault, f)
	if !more {
		return
	}
	q.record.Fact(out, protocol.Fact{Kind: protocol.SliceFailed, Slice: s.ID(), Body: &f})
	q.runner.Withdraw(now, s, "withdrawn: "+failed(s), out)
	if q.inventory.Confirmed() { // else nobody knows yet what runs
		q.EndLost(now, s, out)
	}
}

// failed says that a slice's GPU fails, for people.
func failed(s *inventory.Slice) string {
	return "the GPU of " + string(s.ID()) + " failed: " + s.Condition().Fault.Text
}

// EndLost ends what runs on a slice if its fault is one that nothing on the GPU outlives.
func (q *Quarantine) EndLost(now quantity.Instant, s *inventory.Slice, out *protocol.Out) {
	if f := s.Condition().Fault; f != nil && f.Ends {
		q.runner.EndLost(now, s, failed(s), out)
	}
}

// ForgetStates lifts the faults that an inventory says again, if they are still so: at a boot of every slice, before anything is offered,
// and of one that is not there any more.
func (q *Quarantine) ForgetStates(list []*inventory.Slice, why string, out *protocol.Out) {
	for _, s := range list {
		if f := s.Condition().Fault; f != nil && f.Cause != health.ByXid {
			q.mend(s, why, out)
		}
	}
}

// Blame is the result of a subjob whose GPU failed: that is its machine's failure and not its own. What it has completed counts as ever.
func (q *Quarantine) Blame(l *leases.Lease, r *job.Result) *job.Result {
	why := l.Lost()
	switch r.Outcome {
	case job.ExitFailed, job.Lost, job.StartFailed: // it may have ended before it could be ended, or before the daemon came back
		t := l.Terms()
		q.inventory.Each(t.Slice, t.Also, func(s *inventory.Slice) {
			if why == "" && s.Condition().Fault != nil {
				why = failed(s)
			}
		})
	case job.Stopped, job.DeadlineKilled:
	default:
		return r
	}
	if why == "" {
		return r
	}
	c := *r
	if c.Outcome, c.Detail = job.NodeFailed, why; r.Outcome == job.ExitFailed && r.Detail != "" {
		c.Detail += " (it said: " + r.Detail + ")"
	}
	return &c
}
