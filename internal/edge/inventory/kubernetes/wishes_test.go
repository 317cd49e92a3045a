//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/inventory"
)

func wanted(class string) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests[0].Exactly.DeviceClassName = class }
}

func selects(expression string) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		c.Spec.Devices.Requests[0].Exactly.Selectors = []resourcev1.DeviceSelector{
			{CEL: &resourcev1.CELDeviceSelector{Expression: expression}},
		}
	}
}

func deviceClass(name string, expressions ...string) *resourcev1.DeviceClass {
	c := &resourcev1.DeviceClass{ObjectMeta: meta("", name)}
	for _, e := range expressions {
		c.Spec.Selectors = append(c.Spec.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: e}})
	}
	return c
}

// unplaced is what the scheduler says of a Pod that finds no place.
func unplaced(p *corev1.Pod) {
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		LastTransitionTime: metav1.Time{Time: t0},
	}}
}

func began(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Status.StartTime = &metav1.Time{Time: t0.Add(d)} }
}

func pinned(machine string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn,
					Values: []string{machine}}},
			}}}}}
	}
}

// filled is a machine whose two large devices have subjobs of ours, the second one later than the first, beside counted slices of which
// one is free.
func filled() []runtime.Object {
	const mig = "nvidia.com/mig-1g.10gb"
	parts := partitionable("w")
	return []runtime.Object{
		node("w", has(mig, 3)), parts[0], parts[1],
		newPod("s", "sluice-op-1", "w", ours("w/gpu-0-mig-3g-0"), claims("sluice-op-1"), began(-10*time.Minute), lasts(time.Hour)),
		newPod("s", "sluice-op-2", "w", ours("w/gpu-0-mig-3g-3"), claims("sluice-op-2"), began(-1*time.Minute), lasts(time.Hour)),
		resourceClaim("s", "sluice-op-1", ourClaim, allocated("w", "gpu-0-mig-3g-0", "sluice-op-1")),
		resourceClaim("s", "sluice-op-2", ourClaim, allocated("w", "gpu-0-mig-3g-3", "sluice-op-2")),
		newPod("s", "sluice-op-3", "w", ours("w/mig-1g.10gb.0"), asks(mig, 1), began(-3*time.Minute), lasts(time.Hour)),
		newPod("s", "sluice-op-4", "w", ours("w/mig-1g.10gb.1"), asks(mig, 1), began(-2*time.Minute), lasts(time.Hour)),
	}
}

// cut are the slices of what is held that are cut short, with when, in seconds from t0.
func cut(held []inventory.Sighting) (list []string) {
	for _, s := range held {
		for _, r := range s.Closures {
			if r.Truncate && r.Kind == protocol.ForReclaim {
				list = append(list, fmt.Sprintf("%s at %v for %s", s.Slice, r.Start.Sub(at(0)), r.Source))
			}
		}
	}
	return list
}

func TestWhatIsGivenBackForWhoWaits(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	for _, c := range []struct {
		name    string
		pools   []Pool
		costs   map[job.SliceID]reclaim.Cost
		objects []runtime.Object
		want    []string
	}{
		{"a device: least is lost with the later one", []Pool{migs("3g.40gb"), small()}, nil,
			[]runtime.Object{newPod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c")},
			[]string{"w/gpu-0-mig-3g-3 at 30s for pod a/p, which waits for it"}},
		{"unless its home knows better", []Pool{migs("3g.40gb"), small()},
			map[job.SliceID]reclaim.Cost{"w/gpu-0-mig-3g-0": {}},
			[]runtime.Object{newPod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c")},
			[]string{"w/gpu-0-mig-3g-0 at 30s for pod a/p, which waits for it"}},
		{"all of the GPU", []Pool{{Name: "mig", Classes: migs("3g.40gb").Classes, Notice: time.Minute}}, nil,
			[]runtime.Object{newPod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c", wanted("whole")),
				deviceClass("whole", `device.driver == "gpu.nvidia.com"`, `device.attributes["gpu.nvidia.com"].profile == '7g.80gb'`)},
			[]string{"w/gpu-0-mig-3g-0 at 1m0s for pod a/p, which waits for it",
				"w/gpu-0-mig-3g-3 at 1m0s for pod a/p, which waits for it"}},
		{"only what its claim means", []Pool{migs("3g.40gb", "1g.10gb")}, nil, // a small one is free
			[]runtime.Object{newPod("a", "p", "", claims("c"), unplaced),
				resourceClaim("a", "c",
					selects(
						`device.attributes["gpu.nvidia.com"].profile == "3g.40gb" && device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0`))},
			[]string{"w/gpu-0-mig-3g-3 at 30s for pod a/p, which waits for it"}},
		{"what is free and not known to be meant is not", []Pool{migs("3g.40gb", "1g.10gb")}, nil,
			[]runtime.Object{newPod("a", "p", "", claims("c"), unplaced),
				resourceClaim("a", "c", selects(`device.attributes["gpu.nvidia.com"].profile.startsWith("3g")`))},
			[]string{"w/gpu-0-mig-3g-3 at 30s for pod a/p, which waits for it"}},
		{"counted: one is free", []Pool{small()}, nil, []runtime.Object{newPod("a", "p", "", asks(mig, 2), unplaced)},
			[]string{"w/mig-1g.10gb.1 at 30s for pod a/p, which waits for it"}},
		{"two who wait", []Pool{small()}, nil, []runtime.Object{newPod("a", "p", "", asks(mig, 2), unplaced),
			newPod("a", "q", "", asks(mig, 1), unplaced)},
			[]string{"w/mig-1g.10gb.0 at 30s for pod a/q, which waits for it", "w/mig-1g.10gb.1 at 30s for pod a/p, which waits for it"}},
		{"more than there is", []Pool{small()}, nil, []runtime.Object{newPod("a", "p", "", asks(mig, 4), unplaced)}, nil},
		{"there is room already", []Pool{small()}, nil, []runtime.Object{newPod("a", "p", "", asks(mig, 1), unplaced)}, nil},
		{"nothing that is known", []Pool{migs("3g.40gb")}, nil, []runtime.Object{newPod("a", "p", "", claims("c"), unplaced),
			resourceClaim("a", "c", wanted("other"))}, nil},
		{"its claim is not made yet", []Pool{migs("3g.40gb")}, nil, []runtime.Object{newPod("a", "p", "", claims("c"), unplaced)}, nil},
		{"nobody has looked for a place yet", []Pool{small()}, nil, []runtime.Object{newPod("a", "p", "", asks(mig, 2))}, nil},
		{"the scheduler makes room itself", []Pool{small()}, nil,
			[]runtime.Object{newPod("a", "p", "", asks(mig, 2), unplaced, func(p *corev1.Pod) { p.Status.NominatedNodeName = "w" })}, nil},
		{"one of ours waits", []Pool{small()}, nil,
			[]runtime.Object{newPod("s", "sluice-op-9", "", asks(mig, 2), unplaced, ours("w/mig-1g.10gb.2"))}, nil},
		{"a subjob of another operator waits", []Pool{small()}, nil,
			[]runtime.Object{newPod("s", "sluice-other-9", "", asks(mig, 2), unplaced,
				func(p *corev1.Pod) { p.Spec.PriorityClassName = cluster.Leftover })}, nil},
		{"it asks for what no pool names too", []Pool{small()}, nil,
			[]runtime.Object{newPod("a", "p", "", asks(mig, 2), unplaced, func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Limits["example.com/other"] = resource.MustParse("1")
			})}, []string{"w/mig-1g.10gb.1 at 30s for pod a/p, which waits for it"}},
		{"it asks for nothing that a pool names", []Pool{small()}, nil,
			[]runtime.Object{newPod("a", "p", "", asks("example.com/other", 1), unplaced)}, nil},
		{"the pool keeps what it has", []Pool{{Name: "p", Resources: small().Resources, NeverGives: true}}, nil,
			[]runtime.Object{newPod("a", "p", "", asks(mig, 2), unplaced)}, nil},
		{"it means another machine", []Pool{small()}, nil,
			[]runtime.Object{newPod("a", "p", "", asks(mig, 2), unplaced,
				func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "b"} })}, nil},
		{"it is pinned to the machine", []Pool{small()}, nil, []runtime.Object{newPod("a", "p", "", asks(mig, 2), unplaced, pinned("w"))},
			[]string{"w/mig-1g.10gb.1 at 30s for pod a/p, which waits for it"}},
		{"it is pinned to another", []Pool{small()}, nil, []runtime.Object{newPod("a", "p", "", asks(mig, 2), unplaced, pinned("v"))}, nil},
		{"it has an affinity to others", []Pool{small()}, nil,
			[]runtime.Object{newPod("a", "p", "", asks(mig, 2), unplaced, func(p *corev1.Pod) {
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
						MatchExpressions: []corev1.NodeSelectorRequirement{{
							Key: "nvidia.com/gpu.product", Operator: corev1.NodeSelectorOpIn,
							Values: []string{"H100"}}},
					}}}}}
			})}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(serve(append(filled(), c.objects...)...))
			o.Pools, o.Now = c.pools, func() quantity.Instant { return at(0) }
			g := gives(opened(t, o))
			g.costs = func(id job.SliceID) (reclaim.Cost, bool) { x, known := c.costs[id]; return x, known }
			g.look()
			if got := cut(g.held()); !slices.Equal(got, c.want) {
				t.Errorf("cut are %q, want %q", got, c.want)
			}
		})
	}
}

// TestWhyAPodWaits: of devices that are selected by their attributes, of a claim that does not exist yet, and of counted ones.
func TestWhyAPodWaits(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	o := options(serve(append(filled(), newPod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c"),
		newPod("a", "q", "", claims("missing"), unplaced), newPod("a", "r", "", asks(mig, 9), unplaced))...))
	o.Pools, o.Now = []Pool{migs("3g.40gb"), small()}, func() quantity.Instant { return at(0) }
	g := gives(opened(t, o))
	g.look()
	got := g.reasons()
	slices.Sort(got)
	want := []string{"pod a/p is kept: a place is kept on w: what runs on w/gpu-0-mig-3g-3 stops, which loses ",
		"pod a/q is blocked: what it wants is not known yet", "pod a/r is no-room: "}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("the reasons are\n%q, want\n%q", got, want)
	}
}

// TestAPlaceIsKeptUntilThePodHasOne, or is gone, or does not come in spite of it.
func TestAPlaceIsKeptUntilThePodHasOne(t *testing.T) {
	c := serve(append(filled(), newPod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c"))...)
	var now atomic.Int64
	now.Store(int64(at(0)))
	o := options(c)
	o.Pools, o.Now = []Pool{migs("3g.40gb")}, func() quantity.Instant { return quantity.Instant(now.Load()) }
	inv := opened(t, o)
	f := follow(t, inv)
	inv.touch()
	f.until(t, "w/gpu-0-mig-3g-0", "w/gpu-0-mig-3g-3 held")

	// The subjob has yielded: the place is kept all the same.
	ctx := t.Context()
	gone := func(name string) {
		if err := c.CoreV1().Pods("s").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := c.ResourceV1().ResourceClaims("s").Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	gone("sluice-op-2")
	wait(t, func() bool { _, there := get[*claim](inv.claims, "s/sluice-op-2"); return !there })
	f.until(t, "w/gpu-0-mig-3g-0", "w/gpu-0-mig-3g-3 held")

	// It does not come: what it waits for is something else.
	f.comes(t, func() string {
		for _, x := range f.machines["w"].Tenants {
			if x.Slice == "w/gpu-0-mig-3g-3" {
				return "an end of the subjob"
			}
		}
		return ""
	})
	now.Store(int64(at(5 * time.Minute)))
	f.tick()
	f.until(t, "w/gpu-0-mig-3g-0", "w/gpu-0-mig-3g-3")

	// It has its place in the end, and so it is somebody else's.
	check[*resourcev1.ResourceClaim](t)(c.ResourceV1().ResourceClaims("a").Update(ctx,
		resourceClaim("a", "c", allocated("w", "gpu-0-mig-3g-3", "p"), func(c *resourcev1.ResourceClaim) { c.ResourceVersion = "2" }),
		metav1.UpdateOptions{}))
	f.until(t, "w/gpu-0-mig-3g-0", "w/gpu-0-mig-3g-3 held")
	if got := cut(f.kept()); len(got) != 0 {
		t.Errorf("cut are %q", got)
	}
}

func wait(t *testing.T, reached func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for !reached() {
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			t.Fatal("it does not come to that")
		}
	}
}
