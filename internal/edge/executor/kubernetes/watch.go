//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

// again is the pause before the watch is resumed after it was cut. An API server under load cuts watches that lag, and client-go's
// back-off of up to half a minute would let claims lapse whose results are there.
func again() *wait.Backoff {
	return &wait.Backoff{Duration: 100 * time.Millisecond, Factor: 2, Jitter: 1, Steps: 10, Cap: 5 * time.Second}
}

// watcher makes the one watch of our Pods in all namespaces. client-go lists anew where its version is too old (410 Gone).
func (e *Executor) watcher() *cache.Reflector {
	only := cluster.LabelOperator + "=" + e.o.Operator
	pods := e.o.Client.CoreV1().Pods(metav1.NamespaceAll)
	return cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = only
			e.calls.add("list pods")
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = only
			e.calls.add("watch pods")
			return pods.Watch(ctx, o)
		},
	}, e.o.Client), &corev1.Pod{}, e.pods, cache.ReflectorOptions{Backoff: again()})
}

func newBoard(tell func(p *corev1.Pod, gone, unsure bool)) *board {
	return &board{tell: tell, listed: make(chan struct{}), pods: map[string]*corev1.Pod{}}
}

// Add implements cache.ReflectorStore.
func (b *board) Add(o any) error {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return errors.New("not a Pod")
	}
	p = slim(p)
	b.mu.Lock()
	b.pods[keyOf(p)] = p
	b.mu.Unlock()
	b.tell(p, false, false)
	return nil
}

// Update implements cache.ReflectorStore.
func (b *board) Update(o any) error { return b.Add(o) }

// Delete implements cache.ReflectorStore; it gets the Pod's last state.
func (b *board) Delete(o any) error {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return errors.New("not a Pod")
	}
	p = slim(p)
	b.mu.Lock()
	delete(b.pods, keyOf(p))
	b.mu.Unlock()
	b.tell(p, true, false)
	return nil
}

// Replace implements cache.ReflectorStore. Pods missing from the list were removed unseen: their last state is not known.
func (b *board) Replace(list []any, _ string) error {
	b.mu.Lock()
	before := b.pods
	b.pods = make(map[string]*corev1.Pod, len(list))
	b.mu.Unlock()
	for _, o := range list {
		if p, ok := o.(*corev1.Pod); ok {
			delete(before, keyOf(p))
		}
		if err := b.Add(o); err != nil {
			return err
		}
	}
	for _, p := range before {
		b.tell(p, true, true)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.whole {
		b.whole = true
		close(b.listed)
	}
	return nil
}

// Resync implements cache.ReflectorStore and has nothing to do.
func (b *board) Resync() error { return nil }

func (b *board) list() []*corev1.Pod {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Collect(maps.Values(b.pods))
}

// slim drops what is not read of a Pod: there may be tens of thousands.
func slim(p *corev1.Pod) *corev1.Pod {
	q := *p
	q.ManagedFields = nil
	q.Spec = corev1.PodSpec{NodeName: p.Spec.NodeName, ActiveDeadlineSeconds: p.Spec.ActiveDeadlineSeconds,
		TerminationGracePeriodSeconds: p.Spec.TerminationGracePeriodSeconds, ResourceClaims: p.Spec.ResourceClaims}
	if sealedIn(p) {
		q.Spec.InitContainers = sealedAlone
	}
	return &q
}

// sealedAlone stands for the containers of a slim Pod that needs a key (sealedIn).
var sealedAlone = []corev1.Container{{Env: []corev1.EnvVar{{Name: pod.KeyText}}}} //nolint:gochecknoglobals // read-only by use

// sealedIn reports whether a Pod needs a key to begin. Pods of earlier versions have a Secret of their own.
func sealedIn(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Spec.InitContainers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == pod.KeyText })
	})
}

// seen passes a Pod's state to its subjob.
func (e *Executor) seen(p *corev1.Pod, gone, unsure bool) {
	if !e.ours(p) {
		return
	}
	if r := e.of(p); r != nil {
		r.see(p, gone, unsure)
	} else if !gone {
		e.meet(p)
	}
}

// watch starts the watch, and waits until its first list is in.
func (e *Executor) watch(ctx context.Context) error {
	e.watching.Do(func() {
		w := e.watcher()
		e.loops.Go(func() { w.RunWithContext(e.ctx) })
	})
	select {
	case <-e.pods.listed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.ctx.Done():
		return errors.New("it was closed")
	}
}

// When a journal is lost the next one issues the same tokens again, from 1-1. So a Pod names the journal of its token, and one of another
// journal is a stranger under our name: it is stopped at once, what it leaves does not count, and nothing is reported. The store is not
// touched, since labels can be forged and another cluster may keep its objects there under that name.

// meet handles a Pod without a subjob: one of our journal is swept, a stranger's ended and removed. A deleted one without our finalizer
// needs nothing.
func (e *Executor) meet(p *corev1.Pod) {
	if p.Labels[cluster.LabelJournal] == e.o.Journal {
		e.sweep(p)
		return
	}
	if p.DeletionTimestamp != nil && !slices.Contains(p.Finalizers, cluster.Finalizer) {
		return
	}
	rec, err := e.recordOf(p)
	if err != nil {
		return // Find reports it
	}
	r := newRun(e, rec)
	r.tried, r.whole, r.made = true, true, p
	r.seen.pod, r.ordered = p, orderOf(p, &rec)
	o := &r.seen.want.order
	o.End, o.Stop, o.Now, o.Why = r.ordered.End, true, true, "it is of another journal of this operator"
	r.seen.want.settle = &protocol.Message{Kind: protocol.Settle, Token: rec.Token, Job: rec.Job, Body: &protocol.Settlement{}}
	if !e.o.Made.IsZero() && !p.CreationTimestamp.Time.Before(e.o.Made) { // leftovers of a lost journal are older than ours
		e.warned.Do(func() {
			e.o.Log.Error("another operator of this name is at work in this cluster: give each a name of its own; its Pods are left alone",
				"pod", r.key(), "journal", rec.Journal)
		})
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || r.key() != keyOf(p) || e.strangers[r.key()] != nil {
		return
	}
	e.o.Log.Warn("a Pod is of another journal of this operator, and is ended", "pod", r.key(), "journal", rec.Journal)
	e.strangers[r.key()] = r
	e.loops.Go(r.loop)
}

// sweep removes a Pod of ours without a subjob: the answer to its creation was lost, and its subjob was stopped and reported as never
// begun. The store is not touched. A late event of a settled subjob's Pod may come here too, and costs a call.
func (e *Executor) sweep(p *corev1.Pod) {
	rec, err := e.recordOf(p)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil || !e.looked || e.closed || p.DeletionTimestamp != nil || e.swept[p.UID] {
		return
	}
	r := newRun(e, rec)
	if r.key() != keyOf(p) || e.runs[rec.Token] != nil {
		return
	}
	r.made, e.swept[p.UID] = p, true
	e.loops.Go(func() {
		for pause := firstPause; e.ctx.Err() == nil; pause = min(2*pause, lastPause) {
			if err := r.dismiss(&view{pod: p}); err == nil {
				break
			}
			select {
			case <-time.After(pause):
			case <-e.ctx.Done():
			}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.swept, p.UID)
	})
}
