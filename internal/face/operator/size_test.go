//go:build kubernetes

package operator

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
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

// TestOlderNamesOfKeysAreTold: an object that uses one is taken, and a warning and its condition say the new name; the condition still
// does after a restart of the operator.
func TestOlderNamesOfKeysAreTold(t *testing.T) {
	for older, c := range map[string]struct {
		value any
		now   string
	}{
		"theta": {"0.02", "memoryRisk"}, "tauMin": {"7s", "minRuntime"}, "onBadItem": {"skip", "onItemFailure"},
		"worth": {map[string]any{"progress": "1"}, "scoreWeights"}, "patience": {"5s", "maxWait"},
	} {
		o, path := aJob("new"), "spec."
		spec := o.Object["spec"].(map[string]any)
		if older == "patience" {
			delete(spec, "items")
			spec["rigid"], path = map[string]any{"walltime": "1m", older: c.value}, "spec.rigid."
		} else {
			spec[older] = c.value
		}
		want := path + older + " is called " + c.now + " now"
		d := &modelled{}
		first, patches := driven(d, nil, o)
		if _, err := first.turn(t.Context(), "team/new"); err != nil || !d.said("submit team.new") {
			t.Fatalf("%s: %v, asked %q", older, err, d.asked)
		}
		if said := patches()[len(patches())-1]; !strings.Contains(said, want) {
			t.Errorf("%s: the status %s does not say %s", older, said, want)
		}
		var warned bool
		for events := first.events.(*record.FakeRecorder).Events; len(events) > 0; {
			e := <-events
			warned = warned || strings.HasPrefix(e, "Warning OlderKeys ") && strings.Contains(e, want)
		}
		if !warned {
			t.Errorf("%s: no Event is a warning that says %s", older, want)
		}

		o.Object["status"] = map[string]any{"state": "PENDING", "operator": "main", "conditions": plain([]metav1.Condition{
			condition(accepted, yes(1, welcome+"; "+want), nil)})}
		again, patches := driven(&modelled{has: map[job.ID]status.Job{"team.new": {}}}, nil, o)
		if _, err := again.turn(t.Context(), "team/new"); err != nil || !strings.Contains(patches()[len(patches())-1], want) {
			t.Errorf("%s: after a restart: %v, %s", older, err, patches())
		}
	}
}
