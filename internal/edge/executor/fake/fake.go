// Package fake is an executor whose subjobs are models: it starts no process and keeps its run directories in memory.
// It reads time only through package time, so that it runs by the fake clock of a testing/synctest bubble and by the
// real one alike. It must not know who listens to it, nor anything about scheduling.
package fake

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
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
		s := r.says.State()
		found = append(found, executor.Found{Witness: r.witness, Found: protocol.Found{Token: t, Job: r.says.Job, Slice: r.says.Slice,
			Alive: r.alive(), Result: s.Result, Stuck: s.Stuck != "", Started: s.Began}})
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
	case protocol.Dismiss: // none of its programs stays
		w.box.Post(protocol.Message{Kind: protocol.Dismissed, From: m.To, To: m.From, Token: m.Token, Job: m.Job})
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
		r.says.Stuck("processes remain after SIGKILL")
	}
	return r != nil
}

// PowerCut ends every subjob at once, as when the machine fails; nobody hears of it until Find.
func (e *Executor) PowerCut() {
	e.box.Close()
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	for _, r := range e.w.runs {
		if r.says.State().Result == nil {
			e.w.over(r, r.lost(now(), job.NodeFailed, "the machine stopped"))
		}
	}
}

func now() quantity.Instant { return quantity.At(time.Now()) }

// world is the state that survives a restart of the daemon: running subjobs and settlements.
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
	// says is what its node is told; generation is the life of its job that it is of.
	says       executor.Answers
	generation job.Generation
	witness    journal.Position
	// promised is the lease's end as first given: an earlier one is a cut. why is what the last change was for.
	promised quantity.Instant
	why      string
	// told is what its program can read, asked that it was asked to end.
	told    executor.Notice
	asked   bool
	running bool
	// timer is for the start, then for the end; reports for the next report.
	timer, reports *time.Timer
}

func (w *world) start(m protocol.Message, witness journal.Position) {
	b := w.model(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	if r, ok := w.runs[m.Token]; ok {
		r.says.Repeat()
		return
	}
	work := m.Body.(*protocol.Work)
	r := &run{
		course: course{does: b, spec: work.Spec, rng: work.Range, end: work.End, stop: quantity.Never},
		says: executor.Answers{Post: func(m protocol.Message) { w.box.Post(m) }, Origin: executor.Origin{Node: m.From, Executor: m.To},
			Token: m.Token, Job: m.Job, Slice: work.Slice, Range: work.Range},
		generation: m.Generation, witness: witness, promised: work.End,
	}
	if s, ok := w.settled[m.Token]; ok {
		r.says.Ended(s.result)
		return
	}
	w.runs[m.Token] = r
	at := now()
	if work.End <= at {
		w.over(r, job.Result{Outcome: job.NodeFailed, ExitCode: -1, Progress: work.Range.From, End: at,
			Detail: "the lease was over before the start"})
		return
	}
	if work.Plan.Resident {
		w.over(r, job.Result{Outcome: job.NodeFailed, ExitCode: -1, Progress: work.Range.From, End: at, Detail: executor.GoneResident})
		return
	}
	if wait := work.Start.Sub(at); wait > 0 {
		r.began = work.Start
		r.timer = time.AfterFunc(wait, func() { w.begin(r) })
		return
	}
	w.begun(r)
}

func (w *world) begin(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r.says.State().Result == nil && !r.running {
		w.begun(r)
	}
}

func (w *world) begun(r *run) {
	r.began, r.running = now(), true
	r.says.Began(r.began)
	w.arm(r)
	if r.does.Report > 0 {
		r.reports = time.AfterFunc(r.does.Report, func() { w.report(r) })
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
	if !r.alive() {
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
	r.says.Ended(&res)
}

func (w *world) report(r *run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !r.alive() {
		return
	}
	r.says.Send(protocol.Report, &protocol.Observation{Progress: r.worked(now()), Demand: r.does.Peak, At: now()})
	r.reports = time.AfterFunc(r.does.Report, func() { w.report(r) })
}

func (w *world) settle(m protocol.Message) {
	if r, ok := w.runs[m.Token]; ok {
		if r.says.State().Result == nil {
			return // a subjob that has not ended has nothing to settle; the node asks again
		}
		w.settled[m.Token] = Settlement{Job: r.says.Job, Generation: r.generation.Number(),
			Committed: m.Body.(*protocol.Settlement).Committed, Range: m.Body.(*protocol.Settlement).Range, result: r.says.State().Result}
		delete(w.runs, m.Token)
	}
	w.box.Post(protocol.Message{Kind: protocol.Settled, From: m.To, To: m.From, Token: m.Token, Job: m.Job})
}

// live returns the run of a token that has not ended, or nil.
func (w *world) live(t job.Token) *run {
	if r, ok := w.runs[t]; ok && r.alive() {
		return r
	}
	return nil
}

// alive reports whether it has neither ended nor got stuck.
func (r *run) alive() bool {
	s := r.says.State()
	return s.Result == nil && s.Stuck == ""
}

// Notice returns what a subjob's program could read of what was done to it; false if nothing.
func (e *Executor) Notice(t job.Token) (executor.Notice, bool) {
	e.w.mu.Lock()
	defer e.w.mu.Unlock()
	r, ok := e.w.runs[t]
	if ok && r.says.State().Result == nil {
		r.tell(now())
	}
	if !ok || r.told.Kind == "" {
		return executor.Notice{}, false
	}
	return r.told, true
}

// tell brings what the program can read up to an instant. It is called before and after every change, so that nothing is left out.
func (r *run) tell(at quantity.Instant) {
	n := executor.Notice{Sequence: r.told.Sequence}
	r.asked = r.asked || r.running && at >= min(r.end.Add(-r.grace()), r.stop)
	switch {
	case !r.running:
	case r.asked:
		n.Kind, n.Until, n.Why = executor.NoticeYield, r.end, "its lease ends"
		if r.stop != quantity.Never {
			n.Until = min(r.end, r.stop.Add(r.grace()))
		}
	case r.cut:
		n.Kind, n.Until = executor.NoticeTruncated, r.end
	}
	if n.Kind != "" && (r.cut || r.stop != quantity.Never) {
		n.Why = cmp.Or(r.why, "its node ends it")
	}
	if n != r.told {
		if n.Kind != "" {
			n.Sequence++
		}
		r.told = n
	}
}
