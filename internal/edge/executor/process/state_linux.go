package process

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process/aftermath"
	"sluice.dev/sluice/internal/edge/executor/process/artifacts"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/process/pool"
	"sluice.dev/sluice/internal/edge/executor/process/rooms"
	"sluice.dev/sluice/internal/edge/executor/process/shelf"
	"sluice.dev/sluice/internal/edge/executor/process/workdirs"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/survival"
	"sluice.dev/sluice/internal/edge/survival/watch"
)

// Executor is the process kind of executor.Executor. Make it with New.
type Executor struct {
	o         Options
	s         folders.Layout
	originals *workdirs.Originals
	iso       shim.Isolation
	box       *executor.Outbox
	pool      pool.Pool
	done      chan struct{}
	tasks     sync.WaitGroup

	health health

	// after is shared by the ends of all subjobs, bootID names this boot of the machine.
	after  aftermath.Node
	bootID string
	// cut: the machine was rebooted since run directories were last looked at. Used by Find alone.
	cut bool
	// over are settled run directories that wait to be removed.
	over   chan over
	rooms  rooms.Rooms
	sensor sensor
	// logs and lost are kept of settled subjobs: what they printed, and their uncommitted work.
	logs, lost shelf.Shelf
	// lives knows which life of a job has its folders.
	lives *folders.Lives

	artifacts *artifacts.Artifacts

	mu       sync.Mutex
	runs     map[job.Token]*run
	past     memory
	settles  int
	underway map[underway]bool
	closed   bool
}

func (e *Executor) isClosed() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// run is one subjob that is not settled.
type run struct {
	e     *Executor
	dir   shim.Dir
	token job.Token
	// start is the message that asked for it; for a subjob found at start only addresses, job, slice and range are known.
	start protocol.Message
	// asked is when the start was asked for by the node's clock.
	asked quantity.Instant
	// base is the unpacked work directory that the subjob gets an overlay of, unpacked when that was ready if it was waited for, and
	// copied how much was copied instead. All are set by prepare.
	base     string
	unpacked quantity.Instant
	copied   foreign.Usage
	// room is what its run directory was made of; nil for one that was found.
	room *rooms.Room

	mu sync.Mutex
	// placed: the run directory is there, so that control.json can be.
	placed  bool
	lease   shim.Lease
	control *shim.Control
	// started is when the command started, 0 before; said: Started was sent. stuck is why it can't be ended.
	started quantity.Instant
	said    bool
	stuck   string
	// onGPU is its measured peak of its slice's own memory, in bytes.
	onGPU  quantity.Amount
	result *job.Result
	still  still
	// trouble is the node's failure that its start met. It belongs to the subjob's goroutine.
	trouble error
	// after finds out how it ended, once its supervisor is gone.
	after aftermath.Aftermath
	// passing serializes writers of control.json, settling two Settles of the same subjob.
	passing, settling sync.Mutex
}

// answer posts a message about this subjob to the node that asked for it.
func (r *run) answer(m protocol.Message) {
	m.From, m.To = r.start.To, r.start.From
	m.Token, m.Job = r.token, r.start.Job
	r.e.box.Post(m)
}

// work is what was asked to be run.
func (r *run) work() *protocol.Work { return r.start.Body.(*protocol.Work) }

// beginning is the message that it began at this instant.
func (r *run) beginning(at quantity.Instant) *protocol.Beginning {
	w := r.work()
	return &protocol.Beginning{Slice: w.Slice, Range: w.Range, At: at}
}

// conclusion is the message that it ended with this result.
func (r *run) conclusion(res *job.Result) *protocol.Conclusion {
	w := r.work()
	return &protocol.Conclusion{Slice: w.Slice, Range: w.Range, Result: res}
}

// repeat answers a Start that came again.
func (r *run) repeat() {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.result != nil:
		r.answer(protocol.Message{Kind: protocol.Exited, Body: r.conclusion(r.result)})
	case r.stuck != "":
		r.answer(protocol.Message{Kind: protocol.Stuck, Body: &protocol.Reason{Text: r.stuck}})
	case r.started != 0:
		r.answer(protocol.Message{Kind: protocol.Started, Body: r.beginning(r.started)})
	}
}

// end returns the lease's end as far as is known.
func (r *run) end() quantity.Instant {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.control != nil {
		return r.control.End
	}
	return r.work().End
}

// pressure is the last reading of the machine's memory.
type pressure struct {
	memory survival.Memory
	// room is the free memory, for subjobs whose memory is moved out meanwhile.
	room atomic.Int64
	// reading is the last one, with what was reported last, and when.
	reading airlock.Reading
	said    int64
	saidAt  time.Duration
	failed  bool
	// life is that of the watcher that read it, 0: the executor's own sensors did. news: a subjob was suspended, resumed or ended, or the
	// watcher has come or gone.
	life uint64
	news bool
}

// sensor reads the machine's memory for as long as the executor is open, and reports it. Its fields belong to its one goroutine unless
// they say otherwise.
type sensor struct {
	survival survival.Survival
	airlock  airlock.Config
	log      *slog.Logger
	post     func(protocol.Message)
	// all are the subjobs that are not settled.
	all func() []*run
	// done is closed with the executor.
	done chan struct{}

	pressure pressure
	// watcher is the executor's side of the machine's watcher.
	watcher watcher
}

// still is the executor's state of suspending one subjob.
type still struct {
	// wanted: it is to be suspended, and why. leaving: it is being stopped, and neither suspended nor resumed any more. All are guarded by
	// run.mu.
	wanted, leaving bool
	why             string
	// stands: the machine's watcher has suspended it, as its supervisor and its program are told. Guarded by run.mu too.
	stands bool
	// note is its supervisor's, once it runs; restless: its supervisor could not resume it, so it is not suspended. Guarded as wanted.
	note     shim.Note
	restless bool
	// before: it was suspended under an earlier daemon, which this one's node does not know. Written before the run is shared.
	before bool
	// telling serializes telling its supervisor what the watcher does.
	telling sync.Mutex

	// acting serializes uses of hold; nil: there is none, since nothing runs, or it can't be taken.
	acting sync.Mutex
	hold   survival.Hold
	taken  bool // it was tried
	use    survival.Use
	// adopted: an earlier daemon started it, whose kind of survival may have been another.
	adopted bool
	// said is the last reported use; it belongs to the reporting goroutine.
	said survival.Use
}

// all are the subjobs that are not settled.
func (e *Executor) all() []*run {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]*run, 0, len(e.runs))
	for _, r := range e.runs {
		list = append(list, r)
	}
	return list
}

// watcher is the executor's side of the machine's watcher (docs/adr/0047-watcher.md): it keeps one alive, tells it which subjobs there
// are, and passes its readings to the nodes in place of the executor's own sensors'.
type watcher struct {
	// path is where supervisors find it; empty: the memory is not watched. keeper is nil where there is none.
	path   string
	keeper *watch.Keeper
	// survival is the executor's.
	survival survival.Survival
	// before is the board as this daemon found it, of watchers of earlier daemons.
	before watch.Board
	// board is the last one that was read; like rows it belongs to the sensing goroutine.
	board watch.Board
	rows  []watch.Row
	// news wakes the sensing goroutine while a watcher lives: its board has changed, or there are changes to tell it.
	news chan struct{}
	// found: Find has returned, so all running subjobs are known.
	found atomic.Bool
	// last describes its last act, for people; nil: none since this daemon began.
	last atomic.Pointer[string]
}

// lives reports whether there is a watcher.
func (w *watcher) lives() bool { return w.keeper != nil && w.keeper.Lives() }

// wake has the sensing goroutine look at once: a subjob has changed, or the watcher has acted.
func (w *watcher) wake() {
	if w.news == nil {
		return
	}
	select {
	case w.news <- struct{}{}:
	default: // a look is due anyway
	}
	w.survival.Wake()
}

// health is whether the node can start anything at all.
type health struct {
	mu      sync.Mutex
	probing bool
	trying  sync.Mutex
}

// over is a settled run directory, and the room that it was made of.
type over struct {
	path string
	room *rooms.Room
}

// underway tracks requests that are repeated until they are done: settling a subjob, or removing a job's files.
type underway struct {
	kind       protocol.Kind
	token      job.Token
	name       job.ID
	generation job.Generation
}

// memory remembers how the last settled subjobs ended, so that a late Start does not start one of them again. It need not outlast the
// daemon: a node never starts a subjob that was leased before its own boot.
type memory struct {
	// most is how many are remembered; the oldest is dropped first.
	most    int
	results map[job.Token]*job.Result
	order   []job.Token
	next    int
}

// add remembers one.
func (m *memory) add(t job.Token, r *job.Result) {
	if m.results == nil {
		m.results = map[job.Token]*job.Result{}
	}
	if _, known := m.results[t]; !known {
		if len(m.order) < m.most {
			m.order = append(m.order, t)
		} else {
			delete(m.results, m.order[m.next])
			m.order[m.next] = t
			m.next = (m.next + 1) % m.most
		}
	}
	m.results[t] = r
}

// of returns how a subjob ended; nil if it is not remembered.
func (m *memory) of(t job.Token) *job.Result { return m.results[t] }
