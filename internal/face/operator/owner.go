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

// Several operators may see one Job. It is of the one that its annotation names, or else of the one that has said something in its status, which stays where somebody replaces
// the object with a file; that of nobody is of whoever takes it first, and the API server lets but one of them.

// Owner is the operator that a Job is of; empty: nobody has taken it.
func Owner(o *object) string {
	said, _, _ := unstructured.NestedString(o.Object, "status", "operator")
	return cmp.Or(o.GetAnnotations()[cluster.AnnotationOwner], said)
}

// others says whether a Job is of another operator.
func (c *controller) others(o *object) bool {
	name := Owner(o)
	return name != "" && name != c.name
}

// take takes a Job, and puts our finalizer on it, in one step: nothing may run that the object's end would not end. It returns the object as it is then, nil where it is gone.
// Who comes too late gets an error, and looks again.
func (c *controller) take(ctx context.Context, o *object) (*object, error) {
	finalizers := o.GetFinalizers()
	if !slices.Contains(finalizers, holding) {
		finalizers = append(slices.Clip(finalizers), holding)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": o.GetResourceVersion(), "uid": string(o.GetUID()), "finalizers": finalizers, "annotations": map[string]string{cluster.AnnotationOwner: c.name},
	}})
	if err != nil {
		return nil, err
	}
	now, err := c.client.Resource(jobs).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // there is none any more, and that is no error
	}
	return now, err
}
