package fake

import (
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/journal"
)

// world is what outlives a daemon: the subjobs and what was settled.
type world struct {
	model Model

	mu      sync.Mutex
	box     *executor.Outbox
	runs    map[job.Token]*run
	settled map[job.Token]Settlement
}

// run is one subjob from its Start until it is settled.
type run struct {
	course
	start   protocol.Message
	witness journal.Position
	// promised is the lease's end as first given: an earlier one is a cut. why is what the last change was for.
	promised quantity.Instant
	why      string
	// told is what its program can read, asked that it was asked to end.
	told    executor.Notice
	asked   bool
	running bool
	stuck   bool
	result  *job.Result
	// timer is for the start, then for the end; reports for the next report.
	timer, reports *time.Timer
}

func (w *world) start(m protocol.Message, witness journal.Position) {
	b := w.model(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := w.settled[m.Token]; ok {
		w.box.Post(reply(m, protocol.Message{Kind: protocol.Exited, Body: (&run{start: m}).conclusion(s.result)}))
		return
	}
	if r, ok := w.runs[m.Token]; ok {
		w.repeat(r)
		return
	}
	r := &run{
		course: course{Behaviour: b, spec: m.Body.(*protocol.Work).Spec, rng: m.Body.(*protocol.Work).Range,
			end: m.Body.(*protocol.Work).End, stop: quantity.Never},
		start:   m,
		witness: witness, promised: m.Body.(*protocol.Work).End,
	}
	w.runs[m.Token] = r
	at := now()
	if m.Body.(*protocol.Work).End <= at {
		w.over(r, job.Result{Outcome: job.NodeFailed, ExitCode: -1, Progress: m.Body.(*protocol.Work).Range.From, End: at,
			Detail: "the lease was over before the start"})
		return
	}
	if wait := m.Body.(*protocol.Work).Start.Sub(at); wait > 0 {
		r.began = m.Body.(*protocol.Work).Start
		r.timer = time.AfterFunc(wait, func() { w.begin(r) })
		return
	}
	w.begun(r)
}

// repeat answers a Start that came again.
func (w *world) repeat(r *run) {
	switch {
	case r.stuck:
		w.answer(r, protocol.Message{Kind: protocol.Stuck, Body: &protocol.Reason{Text: "processes remain after SIGKILL"}})
	case r.result != nil:
		w.answer(r, protocol.Message{Kind: protocol.Exited, Body: r.conclusion(r.result)})
	case r.running:
		w.answer(r, protocol.Message{Kind: protocol.Started, Body: r.beginning(r.began)})
	}
}

func (w *world) begin(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.result == nil && !r.running {
		w.begun(r)
	}
}

func (w *world) begun(r *run) {
	r.began, r.running = now(), true
	w.answer(r, protocol.Message{Kind: protocol.Started, Body: r.beginning(r.began)})
	w.arm(r)
	if r.Report > 0 {
		r.reports = time.AfterFunc(r.Report, func() { w.report(r) })
	}
}

// arm sets the timer for the end as it looks now.
func (w *world) arm(r *run) {
	if r.timer != nil {
		r.timer.Stop()
	}
	if !r.running {
		if r.stop != quantity.Never || r.end <= now() {
			w.over(r, job.Result{Outcome: job.Stopped, ExitCode: -1, Progress: r.rng.From, End: now(), Detail: "stopped before the start"})
			return
		}
		r.timer = time.AfterFunc(r.began.Sub(now()), func() { w.begin(r) })
		return
	}
	at, _ := r.ending()
	r.timer = time.AfterFunc(at.Sub(now()), func() { w.due(r) })
}

// due ends the run if its time has really come: an old timer may still fire after arm moved the end.
func (w *world) due(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.result != nil || r.stuck {
		return
	}
	if at, res := r.ending(); at <= now() {
		w.over(r, res)
	}
}

func (w *world) over(r *run, res job.Result) {
	r.tell(res.End)
	for _, t := range []*time.Timer{r.timer, r.reports} {
		if t != nil {
			t.Stop()
		}
	}
	r.result = &res
	w.answer(r, protocol.Message{Kind: protocol.Exited, Body: r.conclusion(r.result)})
}

func (w *world) report(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.result != nil || r.stuck {
		return
	}
	w.answer(r, protocol.Message{Kind: protocol.Report, Body: &protocol.Observation{Progress: r.worked(now()), Demand: r.Peak, At: now()}})
	r.reports = time.AfterFunc(r.Report, func() { w.report(r) })
}

func (w *world) settle(m protocol.Message) {
	if r, ok := w.runs[m.Token]; ok {
		if r.result == nil {
			return // a subjob that has not ended has nothing to settle; the node asks again
		}
		w.settled[m.Token] = Settlement{Job: r.start.Job, Generation: r.start.Generation.Number(),
			Committed: m.Body.(*protocol.Settlement).Committed, Range: m.Body.(*protocol.Settlement).Range, result: r.result}
		delete(w.runs, m.Token)
	}
	w.box.Post(reply(m, protocol.Message{Kind: protocol.Settled}))
}

// live returns the run of a token that has not ended, or nil.
func (w *world) live(t job.Token) *run {
	if r, ok := w.runs[t]; ok && r.result == nil && !r.stuck {
		return r
	}
	return nil
}

// work is what was asked to be run.
func (r *run) work() *protocol.Work { return r.start.Body.(*protocol.Work) }

// beginning is that it began at this instant.
func (r *run) beginning(at quantity.Instant) *protocol.Beginning {
	w := r.work()
	return &protocol.Beginning{Slice: w.Slice, Range: w.Range, At: at}
}

// conclusion is that it ended so.
func (r *run) conclusion(res *job.Result) *protocol.Conclusion {
	w := r.work()
	return &protocol.Conclusion{Slice: w.Slice, Range: w.Range, Result: res}
}

func (w *world) answer(r *run, m protocol.Message) { w.box.Post(reply(r.start, m)) }

// reply addresses m to whoever sent to, and says which subjob it is about.
func reply(to, m protocol.Message) protocol.Message {
	m.From, m.To = to.To, to.From
	m.Token, m.Job = to.Token, to.Job
	return m
}
