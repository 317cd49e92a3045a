//go:build kubernetes

package kubernetes

import (
	"context"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/store"
)

// Executor is the kubernetes kind of executor.Executor. Make it with Open.
type Executor struct {
	o      Options
	lender store.Lender
	box    *executor.Outbox
	// ctx ends when the executor is closed; loops are the goroutines that Close waits for.
	ctx    context.Context
	cancel context.CancelFunc
	loops  sync.WaitGroup
	// turns and shelves are semaphores for calls to the API server and to the store.
	turns, shelves chan struct{}
	// pods are all of ours as last seen; watching starts the watch, once.
	pods     *board
	watching sync.Once
	tending  sync.Once
	warned   sync.Once
	calls    counts

	mu sync.Mutex
	// runs are the subjobs that are not settled; past is how the settled ones ended, in the order of old.
	runs map[job.Token]*run
	past map[job.Token]*passed
	old  []job.Token
	// strangers are subjobs of another journal, by Pod.
	strangers map[string]*run
	// swept are Pods without a subjob that are being removed; looked: Find has registered all subjobs, so that such a Pod can be
	// recognized.
	swept  map[types.UID]bool
	looked bool
	// devices caches ResourceSlices, by driver and machine.
	devices map[string]known
	// keys are this process's sealing keys, by namespace.
	keys map[string]*keyring
	// purging are the purges in progress.
	purging map[purging]bool
	closed  bool

	// naming excludes naming a work directory while unneeded names are pruned.
	naming sync.Mutex
}

var _ executor.Executor = (*Executor)(nil)

// Open makes an executor. It calls neither cluster nor store; before Find only its Files do. Errors are of kind Invalid, or Unsupported
// for a store that can't lend.
func Open(o Options) (*Executor, error) {
	lender, err := o.check()
	if err != nil {
		return nil, err
	}
	e := &Executor{
		o: o, lender: lender, box: executor.NewOutbox(o.Deliver), turns: make(chan struct{}, o.Parallel),
		shelves: make(chan struct{}, storeCalls),
		runs:    map[job.Token]*run{}, past: map[job.Token]*passed{}, strangers: map[string]*run{}, swept: map[types.UID]bool{},
		devices: map[string]known{}, keys: map[string]*keyring{}, purging: map[purging]bool{},
	}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.pods = newBoard(e.seen)
	return e, nil
}

// Isolation implements executor.Executor.
func (e *Executor) Isolation() string {
	return "a Pod of a cluster for each subjob, without privileges, ended by its kubelet"
}

// Close implements executor.Executor. Pods run on; the next executor reports what this one did not.
func (e *Executor) Close() error {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.box.Close()
	e.cancel()
	e.loops.Wait()
	return nil
}

func (e *Executor) now() quantity.Instant { return quantity.At(e.o.Clock()) }

// Do implements executor.Executor.
func (e *Executor) Do(m protocol.Message, witness journal.Position) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return
	}
	r := e.runs[m.Token]
	switch m.Kind {
	case protocol.Start:
		e.start(&m, witness)
	case protocol.Deadline:
		if s := m.Body.(*protocol.Shift); r != nil {
			r.change(func(w *wanted) { w.shift(s) })
		}
	case protocol.Stop:
		if h := m.Body.(*protocol.Halt); r != nil {
			r.change(func(w *wanted) { w.halt(h) })
		}
	case protocol.Settle:
		if r != nil {
			r.change(func(w *wanted) { w.settle = &m })
			return
		}
		e.box.Post(protocol.Message{Kind: protocol.Settled, From: m.To, To: m.From, Token: m.Token, Job: m.Job})
	case protocol.Purge:
		of := purging{m.Job, m.Generation}
		if e.purging[of] { // one in progress answers for both
			return
		}
		e.purging[of] = true
		e.loops.Go(func() {
			e.purge(m)
			e.mu.Lock()
			defer e.mu.Unlock()
			delete(e.purging, of)
		})
	default: // not for an executor, or Suspend: a Pod can't be suspended
	}
}

// start begins a subjob, or repeats the answers to an earlier Start. e.mu is held.
func (e *Executor) start(m *protocol.Message, witness journal.Position) {
	rec := newRecord(m, witness, e.o.Journal)
	r := newRun(e, rec)
	before, past := e.runs[m.Token], e.past[m.Token]
	switch {
	case before != nil && !before.rec.same(&rec), past != nil && !past.rec.same(&rec):
		e.o.Log.Error("a token stands for two subjobs; the second is not started", "subjob", m.Token.String(), "job", string(m.Job))
		r.answer(protocol.Message{Kind: protocol.Exited,
			Body: r.conclusion(&r.end(job.NodeFailed, "another subjob has its token", e.now()).Result)})
		return
	case before != nil:
		before.repeat()
		return
	case past != nil:
		r.answer(protocol.Message{Kind: protocol.Exited, Body: r.conclusion(past.result)})
		return
	}
	r.work, r.asked = m.Body.(*protocol.Work), e.now()
	e.begin(r)
}

// begin starts a subjob's loop. e.mu is held.
func (e *Executor) begin(r *run) {
	e.runs[r.rec.Token] = r
	e.loops.Go(r.loop)
}

// purging identifies a purge.
type purging struct {
	job    job.ID
	before job.Generation
}

// passed is a settled subjob.
type passed struct {
	rec    record
	result *job.Result
}

// forget moves a settled subjob from runs to past.
func (e *Executor) forget(r *run, res *job.Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.stranger() {
		delete(e.strangers, r.key())
		return
	}
	delete(e.runs, r.rec.Token)
	if e.past[r.rec.Token] == nil {
		e.old = append(e.old, r.rec.Token)
	}
	e.past[r.rec.Token] = &passed{r.rec, res}
	for len(e.old) > e.o.KeepSettled {
		delete(e.past, e.old[0])
		e.old = e.old[1:]
	}
}

// ours reports whether a Pod bears this operator's label.
func (e *Executor) ours(p *corev1.Pod) bool { return p.Labels[cluster.LabelOperator] == e.o.Operator }

// of finds the subjob of a Pod; nil if there is none.
func (e *Executor) of(p *corev1.Pod) *run {
	t, err := job.ParseToken(p.Labels[cluster.LabelToken])
	if err != nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if r := e.strangers[keyOf(p)]; r != nil {
		return r
	}
	if r := e.runs[t]; r != nil && r.name() == p.Name && e.namespace(&r.rec) == p.Namespace {
		return r
	}
	return nil
}

// needed reports whether an unsettled subjob, other than one, may still read a checkpoint, or left it.
func (e *Executor) needed(t job.Token, other *run) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.runs {
		if r != other && (r.rec.Token == t || r.rec.Resume == t) {
			return true
		}
	}
	return false
}

// wanted is the desired state of a subjob.
type wanted struct {
	order pod.Order
	// settle is the node's Settle: what to do with what the subjob left; nil until it comes.
	settle *protocol.Message
}

// shift moves the lease's end; a Pod's can only be made earlier.
func (w *wanted) shift(s *protocol.Shift) {
	if s.End < w.order.End {
		w.order.End, w.order.Cut, w.order.Why = s.End, true, s.Text
	}
}

func (w *wanted) halt(h *protocol.Halt) {
	if !w.order.Stop {
		w.order.Stop, w.order.Why = true, h.Text
	}
	w.order.Now = w.order.Now || h.Now
}

// Calls counts the calls to the API server by kind, for metrics.
func (e *Executor) Calls() map[string]int64 { return e.calls.all() }

// counts is a set of counters by name.
type counts struct {
	mu sync.Mutex
	n  map[string]int64
}

func (c *counts) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int64{}
	}
	c.n[name]++
}

func (c *counts) all() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.n)
}

// tokens lists the unsettled subjobs, in order.
func (e *Executor) tokens() []job.Token {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.SortedFunc(maps.Keys(e.runs), job.Token.Compare)
}
