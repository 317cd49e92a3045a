//go:build kubernetes

package kubernetes

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
)

// pulling is how long after a Pod's creation causes that may pass are tolerated, such as a failed image pull.
const pulling = 2 * time.Minute

// obey brings the Pod to its desired state: its orders, its end, its removal.
func (r *run) obey(v *view, now quantity.Instant) error {
	p, o := v.pod, v.want.order
	began := r.word.Started != 0 || p != nil && running(p)
	alone := p != nil && parted(p)
	if p != nil && !began && !alone && r.blame == nil {
		if why, kind := hopeless(p, now.Sub(quantity.At(p.CreationTimestamp.Time)) > pulling); why != "" {
			r.giveUp(kind, why)
		}
	}
	over := now >= o.End && !began || o.End != quantity.Never && now >= o.End.Add(r.e.o.Linger)
	stores := r.stores(now)
	over = (over || o.Stop || r.blame != nil) && (!stores || o.Now) || alone // alone: only sidecars run, and nothing is left to store
	if o != r.ordered && !r.deleted && !alone && (!stores || o.Now) && p != nil && p.Spec.NodeName != "" {
		if err := r.order(v, now); err != nil {
			return err
		}
		r.ordered = o
	}
	if p != nil && p.DeletionTimestamp != nil {
		r.deleted = true
	}
	if !over || r.deleted || v.gone {
		return nil
	}
	grace := r.rec.Grace + r.e.o.Linger
	if o.Now || alone {
		grace = r.e.o.Linger
	}
	err := r.remove(v, seconds(grace))
	r.deleted = err == nil
	return err
}

// stores reports whether a subjob is left alone since it is storing what it left: orders, a stop and its end wait, unless told Now. It is
// the subjob's own word, which its program could fake, so it holds no longer than storing may take.
func (r *run) stores(now quantity.Instant) bool {
	if !r.word.Storing {
		r.storing = 0
		return false
	}
	if r.storing == 0 {
		r.storing = now
	}
	return now < r.storing.Add(r.e.o.Linger)
}

// order passes an order to the Pod: to its first process by an annotation, and to the kubelet by activeDeadlineSeconds where the end is
// earlier now.
func (r *run) order(v *view, now quantity.Instant) error {
	o := v.want.order
	o.Why = cluster.Discreet(o.Why, r.e.namespace(&r.rec)) // readers of the Pod may not know other namespaces
	text, err := json.Marshal(&o)
	if err != nil {
		return err
	}
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]string{cluster.AnnotationNotice: string(text)},
		"uid": r.uid(v)}}
	from := now
	if s := v.pod.Status.StartTime; s != nil {
		from = quantity.At(s.Time)
	}
	if d := active(o.End.Add(r.e.o.Linger), from); o.End != r.ordered.End && d != nil {
		if was := v.pod.Spec.ActiveDeadlineSeconds; was == nil || *d < *was {
			patch["spec"] = map[string]any{"activeDeadlineSeconds": *d}
		}
	}
	return r.patch(v, patch)
}

// patch changes the Pod; none is needed if it is gone.
func (r *run) patch(v *view, patch map[string]any) error {
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	return r.alter(v, types.StrategicMergePatchType, data)
}

func (r *run) alter(v *view, kind types.PatchType, data []byte) error {
	_, err := call(r.e, "patch pod", func() (*corev1.Pod, error) {
		return r.e.o.Client.CoreV1().Pods(r.e.namespace(&r.rec)).Patch(r.e.ctx, r.name(), kind, data,
			metav1.PatchOptions{FieldValidation: metav1.FieldValidationIgnore})
	})
	return r.there(v, err)
}

// remove deletes the Pod; the object stays until the finalizer is removed.
func (r *run) remove(v *view, grace int64) error {
	_, err := call(r.e, "delete pod", func() (struct{}, error) {
		o := metav1.DeleteOptions{GracePeriodSeconds: &grace}
		if id := r.uid(v); id != "" {
			o.Preconditions = metav1.NewUIDPreconditions(string(id))
		}
		return struct{}{}, r.e.o.Client.CoreV1().Pods(r.e.namespace(&r.rec)).Delete(r.e.ctx, r.name(), o)
	})
	return r.there(v, err)
}

// there drops the error that the Pod is gone: the watch will say so.
func (r *run) there(v *view, err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) && v.gone {
		return nil
	}
	return err
}

func (r *run) uid(v *view) types.UID {
	switch {
	case v.pod != nil:
		return v.pod.UID
	case r.made != nil:
		return r.made.UID
	}
	return ""
}
