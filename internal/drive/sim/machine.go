package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Behaviour is how a subjob really goes, as opposed to its plan.
type Behaviour struct {
	// Restore passes before the first unit, PerUnit is the true time of one unit, Checkpoint passes after the last.
	Restore, PerUnit, Checkpoint time.Duration
	// Peak is the use it reports.
	Peak trp.Vector
	// Fails is how it ends FailAfter its start, unless it is over by then; 0: it does not fail.
	Fails     job.Outcome
	FailAfter time.Duration
	// Linger is how long its processes take to be gone after they were killed.
	Linger time.Duration
}

// Model says how the subjob of a Start goes. It must say the same each time it is asked about one token.
type Model func(start *protocol.Message) Behaviour

// Planned is a machine on which everything goes exactly as planned.
func Planned(m *protocol.Message) Behaviour {
	b := Behaviour{PerUnit: m.Plan.Run}
	if n := m.Range.Len(); n > 1 {
		b.PerUnit = m.Plan.Run / time.Duration(n)
	}
	if m.Spec != nil {
		if m.Range.To < m.Spec.Total {
			b.Checkpoint = m.Spec.Checkpoint // the piece that finishes the job leaves none
		}
		if !m.Plan.Resume.Zero() {
			b.Restore = m.Spec.Restore
		}
	}
	return b
}

// machine plays the executor: it runs each Start for its true duration, at most to the lease's end.
type machine struct {
	sim  *Sim
	runs map[job.Token]*run
}

// run is one subjob until it is settled.
type run struct {
	Behaviour
	start   protocol.Message
	rng     job.Range
	begin   quantity.Instant
	end     quantity.Instant // the lease's
	version int              // grows when the course changes: an older event is void
	result  *job.Result
	killed  *job.Result // it was killed and is not gone yet
}

func (m *machine) do(in *protocol.Message) {
	r := m.runs[in.Token]
	switch in.Kind {
	case protocol.Start:
		if r == nil {
			r = &run{Behaviour: m.sim.o.Model(in), start: *in, rng: in.Range, begin: m.sim.now, end: in.End}
			m.runs[in.Token] = r
			m.arm(r)
		}
		if r.result != nil {
			m.answer(r, protocol.Message{Kind: protocol.Exited, Result: r.result})
		} else {
			m.answer(r, protocol.Message{Kind: protocol.Started, At: r.begin})
		}
	case protocol.Deadline:
		if r != nil && r.result == nil && r.killed == nil {
			r.end, r.rng.To = in.End, max(r.rng.To, in.Range.To)
			m.arm(r)
		}
	case protocol.Stop:
		if r != nil && r.result == nil && r.killed == nil {
			m.over(r, job.Stopped, m.sim.now)
		}
	case protocol.Settle:
		delete(m.runs, in.Token)
		m.say(protocol.Message{Kind: protocol.Settled, Token: in.Token, Job: in.Job})
	}
}

// finish is when the work would be done.
func (r *run) finish() quantity.Instant {
	return r.begin.Add(r.Restore).Add(time.Duration(quantity.MulDiv(r.rng.Len(), int64(r.PerUnit), 1))).Add(r.Checkpoint)
}

func (m *machine) arm(r *run) {
	r.version++
	at := min(r.finish(), r.end)
	if r.Fails != 0 {
		at = min(at, r.begin.Add(r.FailAfter))
	}
	m.sim.schedule(event{at: max(m.sim.now, at), ends: r, version: r.version})
}

// due ends a run whose time has come, unless its course has changed since.
func (m *machine) due(r *run, version int) {
	switch {
	case r.result != nil || version != r.version:
	case r.killed != nil:
		r.killed.End = m.sim.now
		m.gone(r, r.killed)
	case r.Fails != 0 && r.begin.Add(r.FailAfter) <= m.sim.now && m.sim.now < r.finish():
		m.over(r, r.Fails, m.sim.now)
	case r.finish() <= m.sim.now:
		m.over(r, job.Done, m.sim.now)
	default:
		m.over(r, job.DeadlineKilled, m.sim.now)
	}
}

// over ends a run. What counts of one that is cut short: whole units of items on the grid, nothing of a chain or a rigid
// job, whose last checkpoint this machine does not model.
func (m *machine) over(r *run, o job.Outcome, at quantity.Instant) {
	res := &job.Result{Outcome: o, Progress: r.rng.To, Start: r.begin, End: at, Peak: r.Peak}
	spec := r.start.Spec
	if o == job.Done {
		res.Checkpoint = spec != nil && spec.Kind == job.Steps
	} else {
		res.ExitCode, res.Signal, res.Progress = -1, 9, r.rng.From
		if o == job.ExitFailed {
			res.ExitCode, res.Signal, res.Detail = 1, 0, "it failed"
		}
		if ran := at.Sub(r.begin) - r.Restore; spec != nil && spec.Kind == job.Items && ran > 0 && r.PerUnit > 0 {
			p := r.rng.From + min(r.rng.Len(), int64(ran/r.PerUnit))
			if spec.Grid > 1 && p < r.rng.To {
				p -= p % spec.Grid
			}
			res.Progress = max(r.rng.From, p)
		}
	}
	if first := r.begin.Add(r.Restore).Add(r.PerUnit); first <= at {
		res.FirstProgress = first
	}
	if r.Linger > 0 && (o == job.DeadlineKilled || o == job.Stopped) {
		r.killed = res
		r.version++
		m.sim.schedule(event{at: at.Add(r.Linger), ends: r, version: r.version})
		return
	}
	m.gone(r, res)
}

func (m *machine) gone(r *run, res *job.Result) {
	r.result = res
	m.answer(r, protocol.Message{Kind: protocol.Exited, Result: res})
}

func (m *machine) answer(r *run, a protocol.Message) {
	a.Token, a.Job, a.Slice, a.Range = r.start.Token, r.start.Job, r.start.Slice, r.start.Range
	m.say(a)
}

func (m *machine) say(a protocol.Message) {
	a.From, a.To = m.sim.executor(), protocol.Address{Role: protocol.Node, ID: string(m.sim.o.NodeID)}
	m.sim.queue = append(m.sim.queue, a)
}
