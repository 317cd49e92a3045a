//go:build kubernetes

package kubernetes

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	core "k8s.io/client-go/testing"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/provider"
)

const namespace = "team-a"

// host is an API server in memory with a cluster behind it that only does what it is told (providertest.Host).
type host struct {
	*testing.T
	api *fake.Clientset

	mu           sync.Mutex
	made         int
	silent, deaf bool
	refusal      error
	// saved outlive a crash, and killed come back with one: Pods that were deleted while they waited, each with its Secret.
	saved  map[string]bool
	killed []runtime.Object
	// fail has a call fail, if it returns an error. calls counts them.
	fail  func(verb, resource, name string) error
	calls map[string]int
}

func newHost(t *testing.T) *host {
	h := &host{T: t, api: fake.NewClientset(), saved: map[string]bool{}, calls: map[string]int{}}
	real := core.ObjectReaction(h.api.Tracker())
	h.api.PrependReactor("create", "*", func(a core.Action) (bool, runtime.Object, error) {
		return h.create(a.(core.CreateActionImpl), real)
	})
	h.api.PrependReactor("delete", "pods", func(a core.Action) (bool, runtime.Object, error) {
		return true, nil, h.remove(a.(core.DeleteActionImpl))
	})
	h.api.PrependReactor("*", "*", func(a core.Action) (bool, runtime.Object, error) {
		h.mu.Lock()
		defer h.mu.Unlock()
		name := ""
		if n, ok := a.(interface{ GetName() string }); ok {
			name = n.GetName()
		}
		h.calls[a.GetVerb()+" "+a.GetResource().Resource]++
		switch {
		case h.silent:
			return true, nil, errors.New("dial tcp: connection refused")
		case h.fail != nil:
			err := h.fail(a.GetVerb(), a.GetResource().Resource, name)
			return err != nil, nil, err
		}
		return false, nil, nil
	})
	return h
}

func (h *host) options() Options {
	return Options{Mark: "aaaa1111", Pool: "pool", Namespace: namespace, Image: "registry.example.com/train:v1", SluiceImage: "sluice:1",
		Resources: map[string]string{"nvidia.com/mig-1g.10gb": "1", "cpu": "500m", "memory": "4Gi"}, Ownerless: time.Minute}
}

func (h *host) open(o Options) *Kubernetes {
	h.Helper()
	if err := o.check(); err != nil {
		h.Fatal(err)
	}
	return connected(h.api, o)
}

// Provider is part of providertest.Host.
func (h *host) Provider(mark string) provider.Provider {
	o := h.options()
	o.Mark = mark
	return h.open(o)
}

func (h *host) create(a core.CreateActionImpl, real core.ReactionFunc) (bool, runtime.Object, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refusal != nil {
		return true, nil, h.refusal
	}
	o := a.GetObject().DeepCopyObject()
	m, err := meta.Accessor(o)
	if err != nil {
		return true, nil, err
	}
	h.made++
	m.SetUID(types.UID(fmt.Sprintf("uid-%d", h.made)))
	if p, ok := o.(*corev1.Pod); ok {
		p.Status.Phase = corev1.PodPending
	} else {
		h.made--
	}
	if len(a.CreateOptions.DryRun) > 0 {
		if _, err := h.api.Tracker().Get(a.GetResource(), a.GetNamespace(), m.GetName()); err == nil {
			return true, nil, apierrors.NewAlreadyExists(a.GetResource().GroupResource(), m.GetName())
		}
		return true, o, nil
	}
	a.Object = o
	done, made, err := real(a)
	if err == nil && h.deaf {
		err = errors.New("read tcp: i/o timeout")
	}
	return done, made, err
}

func podsOf() schema.GroupVersionResource { return corev1.SchemeGroupVersion.WithResource("pods") }

func secretsOf() schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource("secrets")
}

// remove deletes as an API server does: what runs has its grace.
func (h *host) remove(d core.DeleteActionImpl) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.get(d.Name)
	switch c := d.DeleteOptions.Preconditions; {
	case p == nil:
		return apierrors.NewNotFound(podsOf().GroupResource(), d.Name)
	case c != nil && c.UID != nil && *c.UID != p.UID:
		return apierrors.NewConflict(podsOf().GroupResource(), d.Name, errors.New("another UID"))
	}
	grace := *p.Spec.TerminationGracePeriodSeconds
	if g := d.DeleteOptions.GracePeriodSeconds; g != nil {
		grace = *g
	}
	if p.Status.StartTime == nil && !over(p) && h.saved[p.Name] {
		c := p.DeepCopy()
		h.killed = append(h.killed, c)
		if s, err := h.api.Tracker().Get(secretsOf(), namespace, p.Name); err == nil {
			h.killed = append(h.killed, s.DeepCopyObject())
		}
	}
	if p.Spec.NodeName == "" || over(p) || grace == 0 {
		h.drop(p)
		return nil
	}
	if p.DeletionTimestamp == nil {
		at := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	}
	return h.api.Tracker().Update(podsOf(), p, namespace)
}

// get is a Pod of the tracker; nil: there is none. h.mu is held.
func (h *host) get(name string) *corev1.Pod {
	o, err := h.api.Tracker().Get(podsOf(), namespace, name)
	if err != nil {
		return nil
	}
	return o.(*corev1.Pod).DeepCopy()
}

// drop removes a Pod and the Secret that it owns. h.mu is held.
func (h *host) drop(p *corev1.Pod) {
	_ = h.api.Tracker().Delete(podsOf(), namespace, p.Name)
	if o, err := h.api.Tracker().Get(secretsOf(), namespace, p.Name); err == nil && o.(*corev1.Secret).OwnerReferences[0].UID == p.UID {
		_ = h.api.Tracker().Delete(secretsOf(), namespace, p.Name)
	}
}

// each changes the Pods of a pilot, or of all; false from f drops one.
func (h *host) each(pilot string, f func(*corev1.Pod) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	list, err := h.api.Tracker().List(podsOf(), corev1.SchemeGroupVersion.WithKind("Pod"), namespace)
	if err != nil {
		h.Fatal(err)
	}
	for i := range list.(*corev1.PodList).Items {
		p := list.(*corev1.PodList).Items[i].DeepCopy()
		switch {
		case pilot != "" && p.Labels[LabelPilot] != pilot:
		case !f(p):
			h.drop(p)
		default:
			if err := h.api.Tracker().Update(podsOf(), p, namespace); err != nil {
				h.Error(err)
			}
		}
	}
}

// Start is part of providertest.Host.
func (h *host) Start(name string) {
	h.each(name, func(p *corev1.Pod) bool {
		if p.Status.StartTime == nil {
			now := metav1.Now()
			p.Spec.NodeName, p.Status.Phase, p.Status.StartTime = "n0", corev1.PodRunning, &now
		}
		return true
	})
}

// End is part of providertest.Host. A Pod that was deleted goes without a word.
func (h *host) End(name string, failed bool) {
	h.each(name, func(p *corev1.Pod) bool {
		if over(p) {
			return true
		}
		t := &corev1.ContainerStateTerminated{FinishedAt: metav1.Now(), Reason: "Completed"}
		if p.Status.Phase = corev1.PodSucceeded; failed {
			p.Status.Phase, t.ExitCode, t.Reason, t.Message = corev1.PodFailed, 1, "Error", "log\nthe head can't be reached"
		}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: container, State: corev1.ContainerState{Terminated: t}}}
		return p.DeletionTimestamp == nil
	})
}

// Preempt is part of providertest.Host.
func (h *host) Preempt(name string) {
	h.each(name, func(p *corev1.Pod) bool {
		at := metav1.NewTime(time.Now().Add(graceOf(p)))
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, p.Spec.TerminationGracePeriodSeconds
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
			Reason: corev1.PodReasonPreemptionByScheduler, Message: "preempting to accommodate a higher priority pod",
			LastTransitionTime: metav1.Now()})
		return true
	})
}

// Crash is part of providertest.Host: etcd is restored from a copy of some time ago.
func (h *host) Crash() {
	h.each("", func(p *corev1.Pod) bool { return h.saved[p.Name] || p.Status.StartTime != nil })
	h.mu.Lock()
	defer h.mu.Unlock()
	h.made = 0
	for _, o := range h.killed {
		if err := h.api.Tracker().Add(o); err != nil {
			h.Error(err)
		}
	}
	h.killed = nil
}

// Save is part of providertest.Host.
func (h *host) Save() { h.each("", func(p *corev1.Pod) bool { h.saved[p.Name] = true; return true }) }

// Double is part of providertest.Host: somebody makes a Pod of the same labels.
func (h *host) Double(name string) {
	var twin *corev1.Pod
	h.each(name, func(p *corev1.Pod) bool { twin = p.DeepCopy(); return true })
	twin.Name, twin.UID = twin.Name+"-copy", twin.UID+"-copy"
	if err := h.api.Tracker().Add(twin); err != nil {
		h.Fatal(err)
	}
}

// Forget is part of providertest.Host.
func (h *host) Forget() { h.each("", func(p *corev1.Pod) bool { return !over(p) }) }

// Silence is part of providertest.Host.
func (h *host) Silence(on bool) { h.set(func() { h.silent = on }) }

// Deafen is part of providertest.Host.
func (h *host) Deafen(on bool) { h.set(func() { h.deaf = on }) }

// Refuse is part of providertest.Host.
func (h *host) Refuse(err error) {
	var is error
	if err != nil {
		is = map[errkind.Kind]error{
			errkind.Invalid: apierrors.NewForbidden(podsOf().GroupResource(), "p", errors.New("no PriorityClass with name x was found")),
			errkind.Exhausted: apierrors.NewForbidden(podsOf().GroupResource(), "p", errors.New("exceeded quota: pods, requested: "+
				"pods=1, used: pods=4, limited: pods=4")),
			errkind.Denied: apierrors.NewForbidden(podsOf().GroupResource(), "p", errors.New(`User "u" cannot create resource "pods"`)),
		}[errkind.Of(err)]
		if is == nil {
			h.Fatalf("an API server has no words for %v", err)
		}
	}
	h.set(func() { h.refusal = is })
}

func (h *host) set(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f()
}

// called counts calls whose name begins so, and forgets them.
func (h *host) called(prefix string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for what, c := range h.calls {
		if strings.HasPrefix(what, prefix) {
			n += c
		}
	}
	clear(h.calls)
	return n
}
