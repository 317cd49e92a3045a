//go:build kubernetes

package kubernetes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/edge/cluster"
)

// TestOursIsWhatWeHaveSealed: labels and annotations that somebody has copied, from whatever Pod, make a Pod none of ours, nor the claim
// that it has.
func TestOursIsWhatWeHaveSealed(t *testing.T) {
	const mig, slice = "nvidia.com/mig-1g.10gb", "w/mig-1g.10gb.0"
	key := []byte("secret")
	says := func(namespace, name, record, slice string, created time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			ours(slice)(p)
			p.Annotations[cluster.AnnotationRun], p.CreationTimestamp = record, metav1.Time{Time: t0.Add(created)}
			if name != "" {
				p.Annotations[cluster.AnnotationSeal] = cluster.Seal(key, namespace, name, record)
			}
		}
	}
	const record = `{"Token":"1-1","Slice":"op/w/mig-1g.10gb.0"}`
	for name, c := range map[string]struct {
		change func(*corev1.Pod)
		ours   bool
	}{
		"as we made it":                       {says("s", "p", record, slice, time.Hour), true},
		"no seal":                             {says("s", "", record, slice, time.Hour), false},
		"no seal, from before there were any": {says("s", "", record, slice, -time.Hour), true},
		"another Pod's":                       {says("s", "q", record, slice, time.Hour), false},
		"another namespace's":                 {says("t", "p", record, slice, time.Hour), false},
		"another slice than we gave it":       {says("s", "p", record, "w/mig-1g.10gb.1", time.Hour), false},
		"it is of another operator": {func(p *corev1.Pod) {
			says("s", "p", record, slice, time.Hour)(p)
			p.Labels[cluster.LabelOperator] = "other"
		}, false},
		"no record, and a seal of that":           {says("s", "p", "", slice, time.Hour), false},
		"somebody's own labels, and nothing else": {ours(slice), false},
	} {
		slim := &slimmer{operator: "op", key: key, made: t0}
		if got := slim.pod(newPod("s", "p", "w", asks(mig, 1),
			func(p *corev1.Pod) { p.CreationTimestamp = metav1.Time{Time: t0.Add(time.Hour)} }, c.change)); got.ours != c.ours ||
			(got.slice != "") != c.ours {
			t.Errorf("%s: ours is %v, on %q", name, got.ours, got.slice)
		}
	}
	// A claim is labelled by anybody too.
	foreign := sceneOf([]Pool{migs("3g.40gb")}, node("w"), partitionable("w"),
		resourceClaim("a", "c", ourClaim, allocated("w", "gpu-0-mig-3g-3", "p")), newPod("a", "p", "w", claims("c"), lasts(time.Minute)))
	if got, want := foreign.evaluate(&stand{}).told(), "w/gpu-0-mig-3g-0\nw/gpu-0-mig-3g-3 foreign until 1m30s for pod a/p"; got != want {
		t.Errorf("it is\n%s\nwant\n%s", got, want)
	}
}
