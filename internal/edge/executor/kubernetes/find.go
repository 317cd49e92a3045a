//go:build kubernetes

package kubernetes

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

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
	e.tending.Do(func() { e.loops.Go(func() { e.tend(asked) }) })
	if err := e.watch(ctx); err != nil {
		return nil, errkind.Errorf(errkind.Unavailable, "listing the Pods of operator %s: %w", e.o.Operator, err)
	}
	found := map[job.Token]*run{}
	for _, p := range e.pods.list() {
		if !e.ours(p) {
			continue
		}
		rec, err := e.recordOf(p)
		if err != nil {
			e.o.Log.Error("a Pod with our label is left alone; delete it if nobody needs it", "err", err)
			continue
		}
		if rec.Journal != e.o.Journal {
			continue // the watch has dealt with it
		}
		r := newRun(e, rec)
		r.tried, r.whole, r.made = true, true, p
		r.seen.pod, r.ordered = p, orderOf(p, &rec)
		r.seen.want.order = r.ordered
		found[rec.Token] = r
	}
	var all sync.WaitGroup
	turns := make(chan struct{}, abreast)
	for _, r := range found {
		turns <- struct{}{}
		all.Go(func() { r.found(ctx); <-turns })
	}
	all.Wait()
	e.mu.Lock()
	for i, t := range slices.SortedFunc(maps.Keys(found), job.Token.Compare) {
		r := found[t]
		if !r.word.Storing { // one that stores must be reported at once
			r.peek = e.now().Add(firstLook(i, len(found)))
		}
		e.begin(r)
	}
	e.looked = true
	e.mu.Unlock()
	list := make([]executor.Found, 0, len(found))
	for _, t := range e.tokens() {
		r := found[t]
		f := protocol.Found{Token: t, Job: r.rec.Job, Slice: r.rec.Slice}
		r.mu.Lock()
		f.Result, f.Started = r.seen.result, r.started
		r.mu.Unlock()
		f.Alive = f.Result == nil
		list = append(list, executor.Found{Found: f, Witness: r.rec.Witness})
	}
	for _, p := range e.pods.list() { // changes meanwhile
		if r := e.of(p); r != nil {
			delete(found, r.rec.Token)
		}
		e.seen(p, false, false)
	}
	for _, r := range found {
		r.see(r.made, true, true)
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
	if r.said = r.over(&v, r.e.now()); r.said != nil {
		if size(r.said.Output)+size(r.said.Checkpoint) <= soon && r.stow(ctx) == nil {
			r.mu.Lock()
			r.seen.result, r.started = &r.said.Result, r.said.Result.Start
			r.mu.Unlock()
		}
		return
	}
	if running(v.pod) || parted(v.pod) {
		if w, ok := r.e.peek(ctx, r); ok {
			r.word, r.started = pod.Word{Started: w.Started, Storing: w.Storing}, w.Started // progress is reported with its next read
		}
		return
	}
	// The last operator may have died before it made the Pod's claim, and the keys that it waits for may have been deleted.
	r.unproven = r.prove(ctx) != nil
}

// prove makes sure that a Pod that has not begun can begin: that its claim and keys exist. On an error that is not known.
func (r *run) prove(ctx context.Context) error {
	p := r.view().pod
	if p == nil || sealedIn(p) {
		if err := r.e.haveKeys(ctx, r.e.namespace(&r.rec)); errkind.Of(err) == errkind.NotFound {
			r.giveUp(errkind.NotFound, err.Error())
			return nil
		} else if err != nil {
			return err
		}
	}
	if p == nil || p.Spec.NodeName != "" || len(p.Spec.ResourceClaims) == 0 { // a bound Pod has its claim
		return nil
	}
	if err := r.find(); err != nil { // the inventory may not know the slice yet
		return err
	}
	err := r.createClaim()
	if why, kind := r.refused(err, r.e.now()); why != "" {
		r.giveUp(kind, why)
		return nil
	}
	return err
}

// size of what a subjob left, in bytes.
func size(l *pod.Left) int64 {
	if l == nil {
		return 0
	}
	return l.Size
}
