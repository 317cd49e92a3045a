//go:build kubernetes

package kubernetes

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
	"sluice.dev/sluice/internal/edge/journal"
)

var _ executor.Executor = (*Executor)(nil)

// Open makes an executor. It calls neither cluster nor store; before Find only its Files do. Errors are of kind Invalid, or Unsupported
// for a store that can't lend.
func Open(o Options) (*Executor, error) {
	lender, err := o.check()
	if err != nil {
		return nil, err
	}
	e := &Executor{
		o: o, box: executor.NewOutbox(o.Deliver), runs: map[job.Token]*run{},
		strangers: map[string]*run{}, swept: map[types.UID]bool{}, purging: map[purging]bool{},
	}
	e.past.Most = max(1, o.KeepSettled)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.api.o, e.api.ctx, e.api.turns, e.api.calls = &e.o, e.ctx, make(chan struct{}, o.Parallel), map[string]int64{}
	e.keys.api, e.keys.rings = &e.api, map[string]*keyring{}
	e.keys.used = func(ns string) bool { return e.unsettled(func(r *run) bool { return r.pod.ns == ns }) }
	e.devices.api, e.devices.all = &e.api, map[string]known{}
	e.shelf.o, e.shelf.lender, e.shelf.turns = &e.o, lender, make(chan struct{}, storeCalls)
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
	case protocol.Dismiss: // a Pod is one subjob's, and its program ends with it
		e.box.Post(protocol.Message{Kind: protocol.Dismissed, From: m.To, To: m.From, Token: m.Token, Job: m.Job})
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
	r := newRun(e, newRecord(m, witness, e.o.Journal))
	before := e.runs[m.Token]
	past, known := e.past.Of(m.Token)
	switch {
	case before != nil && !before.rec.same(r.rec), known && !past.rec.same(r.rec):
		e.o.Log.Error("a token stands for two subjobs; the second is not started", "subjob", m.Token.String(), "job", string(m.Job))
		r.told.Ended(&r.end(job.NodeFailed, "another subjob has its token", e.o.now()).Result)
		return
	case before != nil:
		before.told.Repeat()
		return
	case known:
		r.told.Ended(past.result)
		return
	}
	r.plan.work, r.plan.asked = m.Body.(*protocol.Work), e.o.now()
	if r.plan.work.Plan.Resident {
		r.told.Ended(&r.end(job.NodeFailed, executor.GoneResident, e.o.now()).Result)
		return
	}
	e.begin(r)
}

// begin starts a subjob's loop. e.mu is held.
func (e *Executor) begin(r *run) {
	e.runs[r.rec.Token] = r
	e.loops.Go(r.loop)
}

// Calls counts the calls to the API server by kind, for metrics.
func (e *Executor) Calls() map[string]int64 {
	e.api.mu.Lock()
	defer e.api.mu.Unlock()
	return maps.Clone(e.api.calls)
}

const (
	// soon is how many bytes of an ended subjob's outputs Find stores itself, and patiently how long it waits for one; larger ones are
	// stored in the background.
	soon      = 16 << 20
	patiently = 5 * time.Second
	// abreast is how many subjobs are examined at once.
	abreast = 64
)

// Find implements executor.Executor: it starts the watch and takes over all Pods of this operator. Pods without a valid record are
// reported and left alone.
func (e *Executor) Find(ctx context.Context) ([]executor.Found, error) {
	asked := make(chan struct{})
	e.tending.Do(func() {
		e.loops.Go(func() { e.tend(sync.OnceFunc(func() { close(asked) })) })
		if e.o.Vigil.Ownerless != nil {
			e.loops.Go(e.beat)
		}
	})
	if err := e.watch(ctx); err != nil {
		return nil, errkind.Errorf(errkind.Unavailable, "listing the Pods of operator %s: %w", e.o.Operator, err)
	}
	found := map[job.Token]*run{}
	for _, p := range e.pods.list() {
		if !e.ours(p) {
			continue
		}
		rec, err := e.o.recordOf(p)
		if err != nil {
			e.o.Log.Error("a Pod with our label is left alone; delete it if nobody needs it", "err", err)
			continue
		}
		if rec.Journal != e.o.Journal {
			continue // the watch has dealt with it
		}
		found[rec.Token] = newFound(e, rec, p)
	}
	var all sync.WaitGroup
	turns := make(chan struct{}, abreast)
	for _, r := range found {
		turns <- struct{}{}
		all.Go(func() { r.found(ctx); <-turns })
	}
	all.Wait()
	tokens := slices.SortedFunc(maps.Keys(found), job.Token.Compare)
	e.mu.Lock()
	for i, t := range tokens {
		r := found[t]
		if !r.heard.word.Storing { // one that stores must be reported at once
			r.heard.next = e.o.now().Add(firstLook(i, len(found)))
		}
		e.begin(r)
	}
	e.looked = true
	e.mu.Unlock()
	list := make([]executor.Found, 0, len(found))
	for _, t := range tokens {
		r := found[t]
		s := r.told.State()
		f := protocol.Found{Token: t, Job: r.rec.Job, Slice: r.rec.Slice, Result: s.Result, Started: s.Began, Alive: s.Result == nil}
		list = append(list, executor.Found{Found: f, Witness: r.rec.Witness})
	}
	for _, p := range e.pods.list() { // changes meanwhile
		if r := e.of(p); r != nil {
			delete(found, r.rec.Token)
		}
		e.seen(p, false, false)
	}
	for _, r := range found {
		r.see(r.pod.made, true, true)
	}
	select {
	case <-asked: // first know whether the store accepts: what is sold must be storable
	case <-time.After(patiently):
	case <-ctx.Done():
	}
	return list, nil
}

// firstLook spreads the first reads of progress of n found subjobs: all at once would be tens of thousands of calls to the store.
func firstLook(i, n int) time.Duration {
	return time.Duration(i) * min(spread, seldom/time.Duration(n))
}

// found examines a found subjob. If it has ended, what it left is stored now if that is small; else it counts as alive until it is stored.
func (r *run) found(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patiently)
	defer cancel()
	v := r.view()
	if r.said = r.over(&v, r.e.o.now()); r.said != nil {
		if size(r.said.Output)+size(r.said.Checkpoint) <= soon && r.e.shelf.stow(ctx, r.rec, r.said) == nil {
			r.told.Restore(executor.State{Began: r.said.Result.Start, Result: &r.said.Result})
		}
		return
	}
	if running(v.pod) || parted(v.pod) {
		if w, ok := r.e.shelf.peek(ctx, r.rec); ok {
			r.heard.word = pod.Word{Started: w.Started, Storing: w.Storing} // progress is reported with its next read
			r.told.Restore(executor.State{Began: w.Started})
		}
		return
	}
	// The last operator may have died before it made the Pod's claim, and the keys that it waits for may have been deleted.
	r.unproven = r.prove(ctx) != nil
}

// size of what a subjob left, in bytes.
func size(l *pod.Left) int64 {
	if l == nil {
		return 0
	}
	return l.Size
}

const (
	// asks is how often the store is probed with a write, asksAgain the interval while that fails, asking the probe's timeout.
	asks      = 30 * time.Second
	asksAgain = 5 * time.Second
	asking    = 10 * time.Second
)

// tend probes the store and reports the node unhealthy while it takes no writes; nothing is started meanwhile: every subjob leaves
// something in the store, and work that can't be stored is done again. probed is called after each probe.
func (e *Executor) tend(probed func()) {
	failing := false
	for e.ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(e.ctx, asking)
		_, err := e.o.Store.Now(ctx)
		cancel()
		if e.ctx.Err() != nil {
			return
		}
		if away := err != nil; away != failing {
			failing = away
			a := &protocol.Condition{Unhealthy: failing}
			if failing {
				a.Text = "the store is away: " + err.Error()
				e.o.Log.Error("the store is away; nothing is started until it answers", "error", err)
			} else {
				e.o.Log.Info("the store answers again")
			}
			e.box.Post(protocol.Message{Kind: protocol.Unhealthy, Body: a})
		}
		probed()
		pause := asks
		if failing {
			pause = asksAgain
		}
		executor.Pause(e.ctx.Done(), pause)
	}
}
