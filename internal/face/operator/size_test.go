//go:build kubernetes

package operator

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"sluice.dev/sluice/internal/core/errkind"
)

// TestANewObjectsSizesNeedAUnit as in job files; an object that was accepted when they needed none is read as it was.
func TestANewObjectsSizesNeedAUnit(t *testing.T) {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "sluice.dev/v1alpha1", "kind": "Job", "metadata": map[string]any{"name": "a", "namespace": "n"},
		"spec": map[string]any{"image": "a/b", "command": []any{"true"}, "rigid": map[string]any{"walltime": "1m"}, "memory": int64(3000)},
	}}
	_, err := parseJob(o, false)
	if errkind.Of(err) != errkind.Invalid || !strings.Contains(err.Error(), `spec.memory: size "3000": give a unit`) {
		t.Errorf("a new one: %v", err)
	}
	if j, err := parseJob(o, true); err != nil || j.Spec.Profile.Phases[0].Mean != 3000 {
		t.Errorf("one that was accepted: %v", err)
	}
}
