//go:build kubernetes

package client

import (
	"context"
	"encoding/json"
	"time"

	"connectrpc.com/connect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/face/operator"
)

// Cancel annotates a job's object, which its operator takes as a cancellation.
func (h *handler) Cancel(ctx context.Context, r *connect.Request[pb.CancelRequest]) (*connect.Response[pb.CancelResponse], error) {
	o, err := h.in.get(ctx, r.Msg.Name)
	if err != nil {
		return nil, sent(err)
	}
	if j := jobOf(o, time.Now()); j.Final {
		return nil, sent(errkind.Errorf(errkind.Conflict, "it is over: %s", pb.Word(j.State)))
	}
	mark := map[string]any{"metadata": map[string]any{"uid": o.GetUID(), "annotations": map[string]any{cluster.AnnotationCancel: "true"}}}
	if _, err = h.in.patch(ctx, jobs, r.Msg.Name, mark); err != nil {
		return nil, sent(h.in.say.explain(err, "patch", "jobs"))
	}
	return connect.NewResponse(&pb.CancelResponse{}), nil
}

// patch patches an object of the namespace.
func (s *space) patch(ctx context.Context, r schema.GroupVersionResource, name string, change map[string]any) (*unstructured.Unstructured,
	error) {
	data, err := json.Marshal(change)
	if err != nil {
		return nil, err
	}
	return s.of(r).Patch(ctx, name, types.MergePatchType, data, metav1.PatchOptions{FieldManager: manager})
}

// Delete deletes the object of a job that is over, or that no operator has taken, and waits until it is gone.
func (h *handler) Delete(ctx context.Context, r *connect.Request[pb.DeleteRequest]) (*connect.Response[pb.DeleteResponse], error) {
	o, err := h.in.get(ctx, r.Msg.Name)
	if err == nil {
		err = h.in.remove(ctx, o)
	}
	if err != nil {
		return nil, sent(err)
	}
	return connect.NewResponse(&pb.DeleteResponse{}), nil
}

// remove deletes exactly this object, not one that replaced it, and waits until it is gone.
func (s *space) remove(ctx context.Context, o *unstructured.Unstructured) error {
	j := jobOf(o, time.Now())
	switch v := accepted(o); {
	case taken(o) && !j.Final: // even if its object was replaced since
		return errkind.Errorf(errkind.Conflict, "it is not over: `kubectl sluice cancel %s` ends it, and `kubectl delete "+
			"jobs.sluice.dev %s` ends and deletes it", j.Name, j.Name)
	case !taken(o) && operator.Owner(o) != "" && v.status != metav1.ConditionFalse:
		return errkind.Errorf(errkind.Conflict, "operator %s has it, and says nothing of it yet: try again", operator.Owner(o))
	}
	uid, version := o.GetUID(), o.GetResourceVersion() // preconditions: it may have been taken meanwhile
	err := s.of(jobs).Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid,
		ResourceVersion: &version}})
	if err != nil && !apierrors.IsNotFound(err) {
		return s.say.explain(err, "delete", "jobs")
	}
	over := time.After(heard)
	for {
		there, err := s.of(jobs).Get(ctx, o.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && there.GetUID() != uid {
			return nil
		}
		if err != nil {
			return s.say.explain(err, "get", "jobs")
		}
		select {
		case <-time.After(look / 4):
		case <-over:
			return errkind.Errorf(errkind.Unavailable, "it is marked for deletion, and goes once an operator lets it: is one there?")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
