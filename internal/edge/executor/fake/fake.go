// Package fake is an executor whose subjobs are models: it starts no process and keeps its run directories in memory.
// It reads time only through package time, so that it runs by the fake clock of a testing/synctest bubble and by the
// real one alike. It must not know who listens to it, nor anything about scheduling.
package fake

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/journal"
)

// Executor is a fake kind of executor.Executor. Make it with New.
type Executor struct {
	w   *world
	box *executor.Outbox
	// closed: the executor does not see supervisors die any more. Guarded by the world's mu.
	closed bool
}

var _ executor.Executor = (*Executor)(nil)

// New makes an executor with no subjobs. deliver gets every answer, one at a time and never from within Do; model says
// how each subjob behaves.
func New(deliver func(protocol.Message), model Model) *Executor {
	w := &world{model: model, runs: map[job.Token]*run{}, settled: map[job.Token]Settlement{}}
	return attach(w, deliver)
}

// Reopen is a daemon's restart: it closes e and makes a new executor over the same subjobs, which went on meanwhile.
func (e *Executor) Reopen(deliver func(protocol.Message)) *Executor {
	_ = e.Close()
	return attach(e.w, deliver)
}

func attach(w *world, deliver func(protocol.Message)) *Executor {
	e := &Executor{w: w, box: executor.NewOutbox(deliver)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.box = e.box
	return e
}

// Find reports every subjob that was not settled, in order of token.
func (e *Executor) Find(context.Context) ([]executor.Found, error) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	var found []executor.Found
	for _, t := range slices.SortedFunc(maps.Keys(e.w.runs), job.Token.Compare) {
		r := e.w.runs[t]
		f := protocol.Found{Token: t, Job: r.start.Job, Slice: r.work().Slice, Alive: r.result == nil && !r.stuck, Result: r.result,
			Stuck: r.stuck}
		if r.running {
			f.Started = r.began
		}
		found = append(found, executor.Found{Found: f, Witness: r.witness})
	}
	return found, nil
}

// Do carries out one effect; messages of other kinds and of subjobs it doesn't know are ignored.
func (e *Executor) Do(m protocol.Message, witness journal.Position) {
	w := e.w
	if m.Kind == protocol.Start {
		w.start(m, witness)
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch m.Kind {
	case protocol.Settle:
		w.settle(m)
	case protocol.Purge:
		maps.DeleteFunc(w.settled, func(_ job.Token, s Settlement) bool {
			return s.Job == m.Job && (m.Generation == 0 || s.Generation < m.Generation)
		})
		w.box.Post(protocol.Message{Kind: protocol.Purged, From: m.To, To: m.From, Job: m.Job, Generation: m.Generation})
	case protocol.Deadline:
		if r := w.live(m.Token); r != nil {
			shift := m.Body.(*protocol.Shift)
			r.tell(now())
			r.end, r.why = shift.End, cmp.Or(shift.Text, r.why)
			r.cut = shift.Text != "" || r.end < r.promised
			r.rng.To = max(r.rng.To, shift.Range.To)
			r.tell(now())
			w.arm(r)
		}
	case protocol.Stop:
		if r := w.live(m.Token); r != nil && r.stop == quantity.Never {
			r.tell(now())
			r.stop, r.why = now(), cmp.Or(m.Body.(*protocol.Halt).Text, r.why)
			r.tell(now())
			w.arm(r)
		}
	default: // not for an executor
	}
}

// Isolation says that nothing real runs.
func (e *Executor) Isolation() string { return "none: simulated subjobs" }

// Close ends the delivery of answers. Subjobs go on.
func (e *Executor) Close() error {
	e.box.Close()
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	e.closed = true
	return nil
}

// Settlement is what became of an ended subjob's directories.
type Settlement struct {
	Job job.ID
	// Generation of the life that it was of.
	Generation job.Generation
	Committed  bool
	Range      job.Range
	result     *job.Result
}

// Settlements returns what was settled so far and not purged.
func (e *Executor) Settlements() map[job.Token]Settlement {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	return maps.Clone(e.w.settled)
}

// Kill ends a running subjob's supervisor, and by it the subjob: it ends Lost, or NodeFailed if the executor is closed. It says whether
// there was one.
func (e *Executor) Kill(t job.Token) bool {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	r := e.w.live(t)
	if r != nil {
		how := job.Lost
		if e.closed {
			how = job.NodeFailed
		}
		e.w.over(r, r.lost(now(), how, "the supervisor was killed"))
	}
	return r != nil
}

// Stick makes a running subjob one whose processes can't be ended: it answers Stuck, and never Exited.
func (e *Executor) Stick(t job.Token) bool {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	r := e.w.live(t)
	if r != nil {
		r.timer.Stop()
		r.stuck = true
		e.w.answer(r, protocol.Message{Kind: protocol.Stuck, Body: &protocol.Reason{Text: "processes remain after SIGKILL"}})
	}
	return r != nil
}

// PowerCut ends every subjob at once, as when the machine fails; nobody hears of it until Find.
func (e *Executor) PowerCut() {
	e.box.Close()
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	for _, r := range e.w.runs {
		if r.result == nil {
			r.stuck = false
			e.w.over(r, r.lost(now(), job.NodeFailed, "the machine stopped"))
		}
	}
}

func now() quantity.Instant { return quantity.At(time.Now()) }
