//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

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

// view is what others tell a subjob's loop.
type view struct {
	want wanted
	// pod is the Pod as last seen. gone: it was removed; unsure: its last state was not seen.
	pod          *corev1.Pod
	gone, unsure bool
}

// object is a subjob's Pod at the API server. Invariant: once the Pod is known, by its creation or by the watch, no other one of its name
// is changed or deleted.
type object struct {
	api      *api
	ns, name string
	// tried: a creation was sent, so there may be a Pod. made is the Pod as created or found.
	tried bool
	made  *corev1.Pod
	// ordered is the order that it was last given; deleted: its deletion was asked for.
	ordered pod.Order
	deleted bool
}

func (o *object) get() (*corev1.Pod, error) {
	return call(o.api, "get pod", func() (*corev1.Pod, error) {
		return o.api.o.Client.CoreV1().Pods(o.ns).Get(o.api.ctx, o.name, metav1.GetOptions{})
	})
}

func (o *object) create(want *corev1.Pod) (*corev1.Pod, error) {
	o.tried = true
	return call(o.api, "create pod", func() (*corev1.Pod, error) {
		return o.api.o.Client.CoreV1().Pods(o.ns).Create(o.api.ctx, want, metav1.CreateOptions{})
	})
}

// order passes the wanted order to the Pod: to its first process by an annotation, and to the kubelet by activeDeadlineSeconds where the
// end is earlier now.
func (o *object) order(v *view, now quantity.Instant) error {
	order := v.want.order
	order.Why = cluster.Discreet(order.Why, o.ns) // readers of the Pod may not know other namespaces
	text, err := json.Marshal(&order)
	if err != nil {
		return err
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]string{cluster.AnnotationNotice: string(text)},
		"uid": o.uid(v)}}
	from := now
	if s := v.pod.Status.StartTime; s != nil {
		from = quantity.At(s.Time)
	}
	if d := active(order.End.Add(o.api.o.Linger), from); order.End != o.ordered.End && d != nil {
		if was := v.pod.Spec.ActiveDeadlineSeconds; was == nil || *d < *was {
			patch["spec"] = map[string]any{"activeDeadlineSeconds": *d}
		}
	}
	if err = o.patch(v, types.StrategicMergePatchType, patch); err == nil {
		o.ordered = v.want.order
	}
	return err
}

// patch changes the Pod; none is needed if it is gone.
func (o *object) patch(v *view, kind types.PatchType, patch any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	_, err = call(o.api, "patch pod", func() (*corev1.Pod, error) {
		return o.api.o.Client.CoreV1().Pods(o.ns).Patch(o.api.ctx, o.name, kind, data,
			metav1.PatchOptions{FieldValidation: metav1.FieldValidationIgnore})
	})
	return there(v, err)
}

// remove deletes the Pod; the object stays until the finalizer is removed.
func (o *object) remove(v *view, grace int64) error {
	_, err := call(o.api, "delete pod", func() (struct{}, error) {
		how := metav1.DeleteOptions{GracePeriodSeconds: &grace}
		if id := o.uid(v); id != "" {
			how.Preconditions = metav1.NewUIDPreconditions(string(id))
		}
		return struct{}{}, o.api.o.Client.CoreV1().Pods(o.ns).Delete(o.api.ctx, o.name, how)
	})
	return there(v, err)
}

// there drops the error that the Pod is gone: the watch will say so.
func there(v *view, err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) && v.gone {
		return nil
	}
	return err
}

func (o *object) uid(v *view) types.UID {
	switch {
	case v.pod != nil:
		return v.pod.UID
	case o.made != nil:
		return o.made.UID
	}
	return ""
}

// dismiss removes the Pod and all it owns. The deletion comes first and the finalizer's patch completes it: the other way round costs one
// more write and watch event.
func (o *object) dismiss(v *view) error {
	if v.pod == nil || v.pod.DeletionTimestamp == nil || !spoken(v.pod) { // a deleted Pod that is over is removed by its kubelet
		if err := o.remove(v, 0); err != nil {
			return err
		}
	}
	return o.release(v)
}

// release takes the finalizer off the Pod by a JSON patch, which costs the API server a third of a strategic merge patch. Such a patch
// names the finalizer by index, tests that it is still there, and is made anew if not.
func (o *object) release(v *view) error {
	p := v.pod
	if p == nil {
		p = o.made
	}
	if p == nil {
		return nil
	}
	at := slices.Index(p.Finalizers, cluster.Finalizer)
	if at < 0 {
		return nil
	}
	path := fmt.Sprintf("/metadata/finalizers/%d", at)
	return o.patch(v, types.JSONPatchType, []map[string]any{
		{"op": "test", "path": "/metadata/uid", "value": p.UID}, {"op": "test", "path": path, "value": cluster.Finalizer},
		{"op": "remove", "path": path},
		// resets managedFields: nobody needs them of a Pod that goes
		{"op": "replace", "path": "/metadata/managedFields", "value": []any{map[string]any{}}},
	})
}

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
