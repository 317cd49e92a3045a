//go:build kubernetes

package kubernetes

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/edge/cluster"
)

// watcher is the one watch of all our Pods, wherever they are. client-go lists anew when it was cut or is too old (410 Gone), with pauses.
func (e *Executor) watcher() cache.SharedIndexInformer {
	only := cluster.LabelOperator + "=" + e.o.Operator
	pods := e.o.Client.CoreV1().Pods(metav1.NamespaceAll)
	w := cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
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
	}, e.o.Client), &corev1.Pod{}, 0, cache.Indexers{})
	_ = w.SetTransform(slim)
	_, _ = w.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { e.seen(o, false) },
		UpdateFunc: func(_, o any) { e.seen(o, false) },
		DeleteFunc: func(o any) { e.seen(o, true) },
	})
	return w
}

// slim leaves of a Pod what is looked at: there may be tens of thousands.
func slim(o any) (any, error) {
	p, ok := o.(*corev1.Pod)
	if !ok {
		return o, nil
	}
	s := &p.Spec
	p.ManagedFields = nil
	p.Spec = corev1.PodSpec{NodeName: s.NodeName, ActiveDeadlineSeconds: s.ActiveDeadlineSeconds, TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds}
	return p, nil
}

// seen hands what is said of a Pod to its subjob.
func (e *Executor) seen(o any, gone bool) {
	d, unsure := o.(cache.DeletedFinalStateUnknown)
	if unsure {
		o = d.Obj
	}
	if p, ok := o.(*corev1.Pod); ok && e.ours(p) {
		if r := e.of(p); r != nil {
			r.see(p, gone, unsure)
		}
	}
}

// watch begins to watch, and waits until all that is there was seen.
func (e *Executor) watch(ctx context.Context) error {
	e.loops.Go(func() { e.pods.RunWithContext(e.ctx) })
	both, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(e.ctx, func() { stop(errors.New("it was closed")) })()
	if !cache.WaitForCacheSync(both.Done(), e.pods.HasSynced) {
		return context.Cause(both)
	}
	return nil
}
