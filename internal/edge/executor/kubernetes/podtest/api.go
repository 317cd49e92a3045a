//go:build kubernetes

package podtest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"
)

// API is an API server in memory. Beyond client-go's it gives objects a UID, keeps a deleted Pod for its grace and its finalizers, removes
// what a removed Pod owns, shows a new watch all there is, and fails when it is asked to.
type API struct {
	*fake.Clientset

	mu      sync.Mutex
	fail    func(verb, resource, name string) error
	watches []watch.Interface
	made    int
	// removed counts the Pods that are no more, created how many were made of each name.
	removed int
	created map[string]int
}

// NewAPI makes an empty one.
func NewAPI(t testing.TB, objects ...runtime.Object) *API {
	a := &API{Clientset: fake.NewClientset(objects...), created: map[string]int{}}
	real := core.ObjectReaction(a.Tracker())
	a.PrependReactor("create", "*", func(action core.Action) (bool, runtime.Object, error) {
		return a.create(action, real)
	})
	for _, verb := range []string{"patch", "update"} {
		a.PrependReactor(verb, "pods", func(action core.Action) (bool, runtime.Object, error) {
			done, o, err := real(action)
			if p, ok := o.(*corev1.Pod); ok && err == nil {
				a.sweep(p)
			}
			return done, o, err
		})
	}
	a.PrependReactor("delete", "pods", func(action core.Action) (bool, runtime.Object, error) {
		return true, nil, a.remove(action.(core.DeleteActionImpl))
	})
	a.PrependReactor("*", "*", func(action core.Action) (bool, runtime.Object, error) {
		name := ""
		if n, ok := action.(interface{ GetName() string }); ok {
			name = n.GetName()
		}
		err := a.failure(action.GetVerb(), action.GetResource().Resource, name)
		return err != nil, nil, err
	})
	a.PrependWatchReactor("pods", a.watch)
	t.Cleanup(a.Cut)
	return a
}

// Fail has calls fail that it returns an error for; nil: none do. "after" in front of a verb is asked once a change was made: its answer
// is lost.
func (a *API) Fail(f func(verb, resource, name string) error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.fail = f
}

func (a *API) failure(verb, resource, name string) error {
	a.mu.Lock()
	f := a.fail
	a.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(verb, resource, name)
}

// Created counts the Pods made, by name.
func (a *API) Created() map[string]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := map[string]int{}
	for name, n := range a.created {
		all[name] = n
	}
	return all
}

func (a *API) create(action core.Action, real core.ReactionFunc) (bool, runtime.Object, error) {
	o := action.(core.CreateAction).GetObject()
	m, err := meta.Accessor(o)
	if err != nil || action.GetSubresource() != "" {
		return false, nil, nil //nolint:nilerr // not an object of its own
	}
	a.mu.Lock()
	a.made++
	m.SetUID(types.UID(fmt.Sprintf("uid-%d", a.made)))
	a.mu.Unlock()
	m.SetCreationTimestamp(metav1.Now())
	if p, ok := o.(*corev1.Pod); ok {
		p.Status.Phase = corev1.PodPending
	}
	done, made, err := real(action)
	if p, ok := o.(*corev1.Pod); ok && err == nil {
		a.mu.Lock()
		a.created[p.Name]++
		a.mu.Unlock()
	}
	if err == nil {
		err = a.failure("after create", action.GetResource().Resource, m.GetName())
	}
	return done, made, err
}

func podsResource() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("pods")
}

// remove deletes as an API server does: what runs has its grace, and what has finalizers stays.
func (a *API) remove(d core.DeleteActionImpl) error {
	o, err := a.Tracker().Get(podsResource(), d.Namespace, d.Name)
	if err != nil {
		return err
	}
	p := o.(*corev1.Pod).DeepCopy()
	if c := d.DeleteOptions.Preconditions; c != nil && c.UID != nil && *c.UID != p.UID {
		return apierrors.NewConflict(podsResource().GroupResource(), p.Name, fmt.Errorf("the UID is %s", p.UID))
	}
	grace := int64(30)
	if p.Spec.TerminationGracePeriodSeconds != nil {
		grace = *p.Spec.TerminationGracePeriodSeconds
	}
	if g := d.DeleteOptions.GracePeriodSeconds; g != nil {
		grace = *g
	}
	if over(p) || p.Spec.NodeName == "" {
		grace = 0
	}
	if was := p.DeletionGracePeriodSeconds; was != nil {
		grace = min(grace, *was)
	}
	at := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second))
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	if err := a.Tracker().Update(podsResource(), p, p.Namespace); err != nil {
		return err
	}
	a.sweep(p)
	return nil
}

func over(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// sweep removes a Pod that is deleted and held by nothing, with what it owns.
func (a *API) sweep(p *corev1.Pod) {
	if p.DeletionTimestamp == nil || len(p.Finalizers) > 0 || *p.DeletionGracePeriodSeconds > 0 {
		return
	}
	_ = a.Tracker().Delete(podsResource(), p.Namespace, p.Name)
	a.mu.Lock()
	a.removed++
	a.mu.Unlock()
	for _, r := range []schema.GroupVersionResource{
		corev1.SchemeGroupVersion.WithResource("secrets"), {Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"},
	} {
		o, err := a.Tracker().Get(r, p.Namespace, p.Name)
		if err != nil {
			continue
		}
		if m, err := meta.Accessor(o); err == nil && len(m.GetOwnerReferences()) == 1 && m.GetOwnerReferences()[0].UID == p.UID {
			_ = a.Tracker().Delete(r, p.Namespace, p.Name)
		}
	}
}

// watch shows what there is before what changes: the tracker loses what happens between a list and its watch.
func (a *API) watch(action core.Action) (bool, watch.Interface, error) {
	if err := a.failure("watch", "pods", ""); err != nil {
		return true, nil, err
	}
	in, err := a.Tracker().Watch(podsResource(), action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	list, err := a.Tracker().List(podsResource(), corev1.SchemeGroupVersion.WithKind("Pod"), action.GetNamespace())
	if err != nil {
		return true, nil, err
	}
	only := action.(core.WatchActionImpl).WatchRestrictions.Labels
	if only == nil {
		only = labels.Everything()
	}
	a.mu.Lock()
	a.watches = append(a.watches, in)
	a.mu.Unlock()
	ch := make(chan watch.Event, 100)
	out := watch.NewProxyWatcher(ch)
	var first []watch.Event
	for _, p := range list.(*corev1.PodList).Items {
		first = append(first, watch.Event{Type: watch.Modified, Object: p.DeepCopy()})
	}
	go func() {
		defer close(ch)
		send := func(e watch.Event) bool {
			if p, ok := e.Object.(*corev1.Pod); ok && !only.Matches(labels.Set(p.Labels)) {
				return true
			}
			select {
			case ch <- e:
				return true
			case <-out.StopChan():
				in.Stop()
				return false
			}
		}
		for _, e := range first {
			if !send(e) {
				return
			}
		}
		for {
			select {
			case e, ok := <-in.ResultChan():
				if !ok || !send(e) {
					return
				}
			case <-out.StopChan():
				in.Stop()
				return
			}
		}
	}()
	return true, out, nil
}

// Cut ends all watches.
func (a *API) Cut() {
	a.mu.Lock()
	all := a.watches
	a.watches = nil
	a.mu.Unlock()
	for _, w := range all {
		w.Stop()
	}
}

func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
