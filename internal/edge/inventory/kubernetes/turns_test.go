//go:build kubernetes

package kubernetes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestPodsThatNoMachineCanServeStarveNobody: 300 Pods that wait for devices that are nowhere, each for other ones, are tried in turn; one
// that comes later is served within a few looks.
func TestPodsThatNoMachineCanServeStarveNobody(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	inv, look := clocked(t)
	for i := range 300 {
		inv.hears(t, inv.pods, newPod("a", fmt.Sprint("old", i), "", asks(mig, int64(10+i)), unplaced))
	}
	clock := time.Minute
	for range 120 {
		if got := look(clock); len(got) != 0 {
			t.Fatalf("cut are %q", got)
		}
		clock += time.Second
	}
	inv.hears(t, inv.pods, newPod("a", "young", "", asks(mig, 2), unplaced, func(p *corev1.Pod) {
		p.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: t0.Add(clock)}
	}))
	for n := 1; len(look(clock)) == 0; n++ {
		if clock += 200 * time.Millisecond; n == 3 {
			t.Fatal("it is not served")
		}
	}
}

// TestPodsThatWantTheSameAreTriedOnce: where no device is found for one, none is looked for on behalf of the others.
func TestPodsThatWantTheSameAreTriedOnce(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	inv, look := clocked(t)
	for i := range 300 {
		inv.hears(t, inv.pods, newPod("a", fmt.Sprint("old", i), "", asks(mig, 10), unplaced),
			newPod("a", fmt.Sprint("lost", i), "", claims("none"), unplaced),
			newPod("a", fmt.Sprint("other", i), "", asks("example.com/other", 10), unplaced))
	}
	inv.hears(t, inv.pods, newPod("a", "young", "", asks(mig, 2), unplaced, func(p *corev1.Pod) {
		p.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: t0.Add(time.Minute)}
	}))
	if got := look(time.Minute); len(got) != 1 {
		t.Errorf("cut are %q", got)
	}
}

// TestUnlikePodsOfAnOwnerDoNotBlockEachOther: a head that finds nothing keeps no worker from its place.
func TestUnlikePodsOfAnOwnerDoNotBlockEachOther(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	ray := of("RayCluster", "ray")
	worker := newPod("a", "worker", "", asks(mig, 2), unplaced, ray)
	for name, head := range map[string]*corev1.Pod{
		"it wants more": newPod("a", "head", "", asks(mig, 9), unplaced, ray),
		"it wants other machines": newPod("a", "head", "", asks(mig, 2), unplaced, ray,
			func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"x": "y"} }),
		"it is pinned": newPod("a", "head", "", asks(mig, 2), unplaced, ray, pinned("elsewhere")),
	} {
		t.Run(name, func(t *testing.T) {
			_, look := clocked(t, head, worker)
			if got, want := look(0), []string{"w/mig-1g.10gb.1 at 30s for pod a/worker, which waits for it"}; !slices.Equal(got, want) {
				t.Errorf("cut are %q, want %q", got, want)
			}
		})
	}
}

// TestAPlaceThatWasNotTakenComesLast: a Pod that did not come to the place that was kept for it is left alone; those like it have places
// on other machines meanwhile, and so has it after its pause.
func TestAPlaceThatWasNotTakenComesLast(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	set := of("Job", "set")
	// What costs least is on another machine.
	inv, look := clocked(t, newPod("a", "p", "", asks(mig, 2), unplaced, set), node("u", has(mig, 2)),
		newPod("s", "sluice-op-9", "u", ours("u/mig-1g.10gb.0"), asks(mig, 1), began(-time.Second), lasts(time.Hour)))
	if got, want := look(0), []string{"u/mig-1g.10gb.0 at 30s for pod a/p, which waits for it"}; !slices.Equal(got, want) {
		t.Fatalf("cut are %q, want %q", got, want)
	}
	inv.loses(t, inv.pods, newPod("s", "sluice-op-9", "u"))
	look(31 * time.Second)
	if got := look(2 * time.Minute); len(got) != 0 {
		t.Fatalf("it is kept for ever: %q", got)
	}
	// We are there again. A brother of it is given something elsewhere.
	inv.hears(t, inv.pods, newPod("s", "sluice-op-10", "u", ours("u/mig-1g.10gb.0"), asks(mig, 1), began(2*time.Minute), lasts(time.Hour)))
	inv.hears(t, inv.pods, newPod("a", "q", "", asks(mig, 2), unplaced, set))
	if got, want := look(3*time.Minute), []string{"w/mig-1g.10gb.1 at 3m30s for pod a/q, which waits for it"}; !slices.Equal(got, want) {
		t.Fatalf("cut are %q, want %q", got, want)
	}
	inv.loses(t, inv.pods, newPod("a", "q", ""))
	look(4 * time.Minute)
	if got := look(9 * time.Minute); len(got) != 0 {
		t.Fatalf("it is not left alone: %q", got)
	}
	if got, want := look(13*time.Minute), []string{"w/mig-1g.10gb.1 at 13m30s for pod a/p, which waits for it"}; !slices.Equal(got, want) {
		t.Errorf("cut are %q, want %q", got, want)
	}
}
