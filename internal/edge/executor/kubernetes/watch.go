//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"
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
	"sluice.dev/sluice/internal/edge/executor"
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
			e.api.count("list pods")
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = only
			e.api.count("watch pods")
			return pods.Watch(ctx, o)
		},
	}, e.o.Client), &corev1.Pod{}, e.pods, cache.ReflectorOptions{Backoff: again()})
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
	rec, err := e.o.recordOf(p)
	if err != nil {
		return // Find reports it
	}
	r := newFound(e, rec, p)
	o := &r.seen.want.order
	o.Stop, o.Now, o.Why = true, true, "it is of another journal of this operator"
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
	rec, err := e.o.recordOf(p)
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil || !e.looked || e.closed || p.DeletionTimestamp != nil || e.swept[p.UID] {
		return
	}
	r := newRun(e, rec)
	if r.key() != keyOf(p) || e.runs[rec.Token] != nil {
		return
	}
	r.pod.made, e.swept[p.UID] = p, true
	e.loops.Go(func() {
		for pause := firstPause; e.ctx.Err() == nil; pause = min(2*pause, lastPause) {
			if err := r.pod.dismiss(&view{pod: p}); err == nil {
				break
			}
			executor.Pause(e.ctx.Done(), pause)
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.swept, p.UID)
	})
}
