//go:build kubernetes

package kubernetes

import (
	"errors"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

// board is all our Pods as last seen by the watch. It implements cache.ReflectorStore.
type board struct {
	tell   func(p *corev1.Pod, gone, unsure bool)
	listed chan struct{}

	mu    sync.Mutex
	whole bool
	pods  map[string]*corev1.Pod
}

func keyOf(p *corev1.Pod) string { return p.Namespace + "/" + p.Name }

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
