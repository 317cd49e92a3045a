package node

import (
	"sluice.dev/sluice/internal/core/health"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// The inventory says how GPUs are, core/health what follows from it. A slice whose GPU fails is not sold, what was sold there and has not
// begun is withdrawn, and what has lost its GPU is ended, which counts as its machine's failure. Faults are facts: a restart must not sell
// a GPU that is to be reset first.

// checkup takes in what is said of a GPU.
func (n *Node) checkup(now quantity.Instant, v *protocol.Vitals, out *protocol.Out) {
	for _, id := range v.Slices {
		s := n.record(id)
		for _, x := range v.Errors {
			if f, closed := health.Of(now, x.Code, x.On == "" || x.On == id, v.Life); closed {
				n.fail(now, s, f, out)
			}
		}
		if v.Look != nil {
			n.judge(now, s, v, out)
		}
	}
}

// judge takes in how a slice's GPU is now.
func (n *Node) judge(now quantity.Instant, s *slice, v *protocol.Vitals, out *protocol.Out) {
	worst, bad := health.Worst(now, v.Look.States)
	if bad && worst.Text != s.waived {
		n.fail(now, s, worst, out)
	}
	if !bad {
		s.waived = ""
	}
	if s.fault == nil {
		return
	}
	if why, reset := s.fault.Over(now, v.Look, v.Life, s.relapses); why != "" {
		if s.relapses++; reset {
			s.relapses = 0
		}
		n.mendFault(s, why, out)
	}
}

// fail closes a slice for a fault, unless it has one that is no less.
func (n *Node) fail(now quantity.Instant, s *slice, f health.Fault, out *protocol.Out) {
	f, more := health.Merge(s.fault, f)
	if !more {
		return
	}
	n.fact(out, protocol.Fact{Kind: protocol.SliceFailed, Slice: s.id, Fault: &f})
	n.withdraw(now, s, "withdrawn: "+s.failed(), out)
	if f.Ends && n.confirmed { // else nobody knows yet what runs
		n.endLost(now, s, out)
	}
}

// failed says that a slice's GPU fails, for people.
func (s *slice) failed() string { return "the GPU of " + string(s.id) + " failed: " + s.fault.Text }

// endLost ends what runs on a slice that has lost its GPU, without the time that it has to end in order: nothing on the GPU can be saved
// any more.
func (n *Node) endLost(now quantity.Instant, s *slice, out *protocol.Out) {
	for _, l := range n.leasesOn(s) {
		if !l.issued() || l.stuck() || l.lost != "" {
			continue
		}
		n.turn(l, halted)
		if l.lost, l.why = s.failed(), s.failed(); !l.stand.asked {
			l.stand.since = 0
		}
		if l.seen() {
			n.outstanding(now, l, out)
		}
	}
}

// mendFault has a slice sold again.
func (n *Node) mendFault(s *slice, why string, out *protocol.Out) {
	n.fact(out, protocol.Fact{Kind: protocol.SliceMended, Slice: s.id, Text: why})
}

// waive lifts a fault because a person has looked. A state that is still said does not bring it back; another one does.
func (n *Node) waive(s *slice, out *protocol.Out) {
	if s.fault == nil {
		return
	}
	if s.fault.Cause != health.ByXid {
		s.waived = s.fault.Text
	}
	n.mendFault(s, "a person has released it", out)
}

// forgetStates lifts, at a boot, what an inventory says again before anything is offered, if it is still so.
func (n *Node) forgetStates(out *protocol.Out) {
	for _, s := range n.slices {
		if s.fault != nil && s.fault.Cause != health.ByXid {
			n.mendFault(s, "the daemon was started, and looks anew", out)
		}
	}
}

// blamed is the result of a subjob whose GPU failed: that is its machine's failure and not its own. What it has completed counts as ever.
func (n *Node) blamed(l *lease, r *job.Result) *job.Result {
	why := l.lost
	switch r.Outcome {
	case job.ExitFailed, job.Lost, job.StartFailed: // it may have ended before it could be ended, or before the daemon came back
		n.each(l.slice, l.also, func(s *slice) {
			if why == "" && s.fault != nil {
				why = s.failed()
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
