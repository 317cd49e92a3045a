//go:build kubernetes

package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/edge/cluster"
)

// Several operators may see one Job. It belongs to the operator that its annotation names, else to the one in its status, which survives a
// replacement of the object by its file. One that belongs to nobody is taken by the first operator; the API server's optimistic
// concurrency lets only one win.

// Owner is the operator that a Job belongs to; empty: nobody's yet.
func Owner(o *object) string {
	said, _, _ := unstructured.NestedString(o.Object, "status", "operator")
	return cmp.Or(o.GetAnnotations()[cluster.AnnotationOwner], said)
}

// others reports whether a Job belongs to another operator.
func (c *controller) others(o *object) bool {
	name := Owner(o)
	return name != "" && name != c.name
}

// take claims a Job and sets our finalizer in one write, so that nothing runs which the object's deletion would not end. It returns the
// object as written, nil if it is gone, or an error if another operator was faster, after which the object is looked at again.
func (c *controller) take(ctx context.Context, o *object) (*object, error) {
	finalizers := o.GetFinalizers()
	if !slices.Contains(finalizers, holding) {
		finalizers = append(slices.Clip(finalizers), holding)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": o.GetResourceVersion(), "uid": string(o.GetUID()), "finalizers": finalizers,
		"annotations": map[string]string{cluster.AnnotationOwner: c.name},
	}})
	if err != nil {
		return nil, err
	}
	now, err := c.client.Resource(jobs).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{FieldManager: manager})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // gone, which is no error
	}
	return now, err
}
