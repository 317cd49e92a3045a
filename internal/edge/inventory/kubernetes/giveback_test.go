//go:build kubernetes

package kubernetes

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	giveback "sluice.dev/sluice/internal/core/reclaim"
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
		pod("s", "sluice-op-1", "w", ours("w/gpu-0-mig-3g-0"), claims("sluice-op-1"), began(-10*time.Minute), lasts(time.Hour)),
		pod("s", "sluice-op-2", "w", ours("w/gpu-0-mig-3g-3"), claims("sluice-op-2"), began(-1*time.Minute), lasts(time.Hour)),
		resourceClaim("s", "sluice-op-1", ourClaim, allocated("w", "gpu-0-mig-3g-0", "sluice-op-1")),
		resourceClaim("s", "sluice-op-2", ourClaim, allocated("w", "gpu-0-mig-3g-3", "sluice-op-2")),
		pod("s", "sluice-op-3", "w", ours("w/mig-1g.10gb.0"), asks(mig, 1), began(-3*time.Minute), lasts(time.Hour)),
		pod("s", "sluice-op-4", "w", ours("w/mig-1g.10gb.1"), asks(mig, 1), began(-2*time.Minute), lasts(time.Hour)),
	}
}

// cut are the slices of what is held that are cut short, with when, in seconds from t0.
func cut(held []inventory.Sighting) (list []string) {
	for _, s := range held {
		for _, r := range s.Holds {
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
		costs   map[job.SliceID]giveback.Cost
		objects []runtime.Object
		want    []string
	}{
		{"a device: least is lost with the later one", []Pool{migs("3g.40gb"), small()}, nil,
			[]runtime.Object{pod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c")},
			[]string{"w/gpu-0-mig-3g-3 at 30s for pod a/p, which waits for it"}},
		{"unless its home knows better", []Pool{migs("3g.40gb"), small()},
			map[job.SliceID]giveback.Cost{"w/gpu-0-mig-3g-0": {}},
			[]runtime.Object{pod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c")},
			[]string{"w/gpu-0-mig-3g-0 at 30s for pod a/p, which waits for it"}},
		{"all of the GPU", []Pool{{Name: "mig", Classes: migs("3g.40gb").Classes, Notice: time.Minute}}, nil,
			[]runtime.Object{pod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c", wanted("whole")),
				deviceClass("whole", `device.driver == "gpu.nvidia.com"`, `device.attributes["gpu.nvidia.com"].profile == '7g.80gb'`)},
			[]string{"w/gpu-0-mig-3g-0 at 1m0s for pod a/p, which waits for it",
				"w/gpu-0-mig-3g-3 at 1m0s for pod a/p, which waits for it"}},
		{"only what its claim means", []Pool{migs("3g.40gb", "1g.10gb")}, nil, // a small one is free
			[]runtime.Object{pod("a", "p", "", claims("c"), unplaced),
				resourceClaim("a", "c",
					selects(
						`device.attributes["gpu.nvidia.com"].profile == "3g.40gb" && device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("40Gi")) >= 0`))},
			[]string{"w/gpu-0-mig-3g-3 at 30s for pod a/p, which waits for it"}},
		{"what is free and not known to be meant is not", []Pool{migs("3g.40gb", "1g.10gb")}, nil,
			[]runtime.Object{pod("a", "p", "", claims("c"), unplaced),
				resourceClaim("a", "c", selects(`device.attributes["gpu.nvidia.com"].profile.startsWith("3g")`))},
			[]string{"w/gpu-0-mig-3g-3 at 30s for pod a/p, which waits for it"}},
		{"counted: one is free", []Pool{small()}, nil, []runtime.Object{pod("a", "p", "", asks(mig, 2), unplaced)},
			[]string{"w/mig-1g.10gb.1 at 30s for pod a/p, which waits for it"}},
		{"two who wait", []Pool{small()}, nil, []runtime.Object{pod("a", "p", "", asks(mig, 2), unplaced),
			pod("a", "q", "", asks(mig, 1), unplaced)},
			[]string{"w/mig-1g.10gb.0 at 30s for pod a/q, which waits for it", "w/mig-1g.10gb.1 at 30s for pod a/p, which waits for it"}},
		{"more than there is", []Pool{small()}, nil, []runtime.Object{pod("a", "p", "", asks(mig, 4), unplaced)}, nil},
		{"there is room already", []Pool{small()}, nil, []runtime.Object{pod("a", "p", "", asks(mig, 1), unplaced)}, nil},
		{"nothing that is known", []Pool{migs("3g.40gb")}, nil, []runtime.Object{pod("a", "p", "", claims("c"), unplaced),
			resourceClaim("a", "c", wanted("other"))}, nil},
		{"its claim is not made yet", []Pool{migs("3g.40gb")}, nil, []runtime.Object{pod("a", "p", "", claims("c"), unplaced)}, nil},
		{"nobody has looked for a place yet", []Pool{small()}, nil, []runtime.Object{pod("a", "p", "", asks(mig, 2))}, nil},
		{"the scheduler makes room itself", []Pool{small()}, nil,
			[]runtime.Object{pod("a", "p", "", asks(mig, 2), unplaced, func(p *corev1.Pod) { p.Status.NominatedNodeName = "w" })}, nil},
		{"one of ours waits", []Pool{small()}, nil,
			[]runtime.Object{pod("s", "sluice-op-9", "", asks(mig, 2), unplaced, ours("w/mig-1g.10gb.2"))}, nil},
		{"a subjob of another operator waits", []Pool{small()}, nil,
			[]runtime.Object{pod("s", "sluice-other-9", "", asks(mig, 2), unplaced,
				func(p *corev1.Pod) { p.Spec.PriorityClassName = cluster.Leftover })}, nil},
		{"it asks for what no pool names too", []Pool{small()}, nil,
			[]runtime.Object{pod("a", "p", "", asks(mig, 2), unplaced, func(p *corev1.Pod) {
				p.Spec.Containers[0].Resources.Limits["example.com/other"] = resource.MustParse("1")
			})}, []string{"w/mig-1g.10gb.1 at 30s for pod a/p, which waits for it"}},
		{"it asks for nothing that a pool names", []Pool{small()}, nil,
			[]runtime.Object{pod("a", "p", "", asks("example.com/other", 1), unplaced)}, nil},
		{"the pool keeps what it has", []Pool{{Name: "p", Resources: small().Resources, Keeps: true}}, nil,
			[]runtime.Object{pod("a", "p", "", asks(mig, 2), unplaced)}, nil},
		{"it means another machine", []Pool{small()}, nil,
			[]runtime.Object{pod("a", "p", "", asks(mig, 2), unplaced,
				func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "b"} })}, nil},
		{"it is pinned to the machine", []Pool{small()}, nil, []runtime.Object{pod("a", "p", "", asks(mig, 2), unplaced, pinned("w"))},
			[]string{"w/mig-1g.10gb.1 at 30s for pod a/p, which waits for it"}},
		{"it is pinned to another", []Pool{small()}, nil, []runtime.Object{pod("a", "p", "", asks(mig, 2), unplaced, pinned("v"))}, nil},
		{"it has an affinity to others", []Pool{small()}, nil,
			[]runtime.Object{pod("a", "p", "", asks(mig, 2), unplaced, func(p *corev1.Pod) {
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
			inv := opened(t, o)
			if c.costs != nil {
				inv.Reckon(func([]job.SliceID) map[job.SliceID]giveback.Cost { return c.costs })
			}
			inv.look(func(inventory.Sighting) {})
			if got := cut(inv.Held()); !slices.Equal(got, c.want) {
				t.Errorf("cut are %q, want %q", got, c.want)
			}
		})
	}
}

// TestAPlaceIsKeptUntilThePodHasOne, or is gone, or does not come in spite of it.
func TestAPlaceIsKeptUntilThePodHasOne(t *testing.T) {
	c := serve(append(filled(), pod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c"))...)
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
	wait(t, func() bool {
		inv.touch()
		inv.mu.Lock()
		defer inv.mu.Unlock()
		g := inv.reclaims.by["uid-a-p"]
		return g != nil && g.freed != 0
	})
	now.Store(int64(at(5 * time.Minute)))
	inv.touch()
	f.until(t, "w/gpu-0-mig-3g-0", "w/gpu-0-mig-3g-3")

	// It has its place in the end, and so it is somebody else's.
	check[*resourcev1.ResourceClaim](t)(c.ResourceV1().ResourceClaims("a").Update(ctx,
		resourceClaim("a", "c", allocated("w", "gpu-0-mig-3g-3", "p"), func(c *resourcev1.ResourceClaim) { c.ResourceVersion = "2" }),
		metav1.UpdateOptions{}))
	f.until(t, "w/gpu-0-mig-3g-0", "w/gpu-0-mig-3g-3 held")
	if got := cut(inv.Held()); len(got) != 0 {
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

// TestRoomIsMadeAtTheLeastCost: of all devices and all sets of subjobs whose end would let a Pod have as many as it wants, none costs
// less; and it can have those that are kept.
func TestRoomIsMadeAtTheLeastCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := &offer{driver: driver, pool: "w", machine: "w", parts: 1}
		total := counters{}
		for k := range 3 {
			o.counters = append(o.counters, count{"g", fmt.Sprint(k), amount{n: int64(rapid.IntRange(1, 3).Draw(t, "total"))}})
		}
		total.add(o.counters, 1)
		for i := range rapid.IntRange(1, 6).Draw(t, "devices") {
			d := device{name: string(rune('a' + i)), machine: "w", memory: 1 << 30, attributes: map[string]string{}}
			for k := range 3 {
				if n := rapid.IntRange(0, 2).Draw(t, "uses"); n > 0 {
					d.uses = append(d.uses, count{"g", fmt.Sprint(k), amount{n: int64(n)}})
				}
			}
			if rapid.Bool().Draw(t, "of the class") {
				d.attributes["x"] = "y"
			}
			o.devices = append(o.devices, d)
		}
		pools := []Pool{{Classes: []Class{{Name: "any", Driver: driver}}}}
		m := &machine{ObjectMeta: metav1.ObjectMeta{Name: "w"}, pools: []int{0}}
		s := &scene{machine: m, pools: pools, offers: []*offer{o}, pod: func(string) *tenant { return nil }}
		list, _ := gather(s.offers, nil)
		layout := list[0].layout(m, pools, nil, nil)
		left, costs, mine, others := counters{}, map[job.SliceID]giveback.Cost{}, []int{}, []int{}
		for k, n := range total {
			left[k] = n
		}
		for i := range o.devices {
			d := &o.devices[i]
			if !left.bear(d.uses) || rapid.IntRange(0, 2).Draw(t, "somebody has it") == 0 {
				continue
			}
			left.add(d.uses, -1)
			at := slices.IndexFunc(layout, func(o offered) bool { return o.name == d.name })
			c := &claim{has: []place{{pooled{driver, "w"}, d.name}}, ours: at >= 0 && rapid.IntRange(0, 3).Draw(t, "ours") > 0}
			if s.claims = append(s.claims, c); c.ours {
				mine = append(mine, i)
				costs[layout[at].slice.ID] = giveback.Cost{Lost: time.Duration(rapid.IntRange(0, 3).Draw(t, "lost")),
					Left: time.Duration(rapid.IntRange(0, 3).Draw(t, "left"))}
			} else {
				others = append(others, i)
			}
		}
		s.class = func(name string) (*class, bool) {
			return &class{only: parseSelector(`device.attributes["gpu.nvidia.com"].x == "y"`)}, name == "c"
		}
		r := &room{scene: s, costs: func(id job.SliceID) giveback.Cost { return costs[id] },
			notice: func(id job.SliceID) (time.Duration, bool) {
				_, is := costs[id]
				return time.Second, is
			}}
		wanted := rapid.IntRange(1, 3).Draw(t, "wanted")
		g, cost, ok := r.find(&tenant{}, some("c", int64(wanted)))

		best, found := giveback.Cost{}, false
		for set := range 1 << len(mine) {
			var sum giveback.Cost
			now := counters{}
			now.add(o.counters, 1)
			taken := map[int]bool{}
			for _, i := range others {
				now.add(o.devices[i].uses, -1)
				taken[i] = true
			}
			for k, i := range mine {
				if set>>k&1 == 1 {
					sum = sum.Plus(costs[job.SliceID("w/"+o.devices[i].name)])
				} else {
					now.add(o.devices[i].uses, -1)
					taken[i] = true
				}
			}
			var fits func(from, n int) bool
			fits = func(from, n int) bool {
				if n == 0 {
					return true
				}
				for i := from; i < len(o.devices); i++ {
					d := &o.devices[i]
					if d.attributes["x"] != "y" || taken[i] || !now.bear(d.uses) {
						continue
					}
					now.add(d.uses, -1)
					if fits(i+1, n-1) {
						return true
					}
					now.add(d.uses, 1)
				}
				return false
			}
			if (!found || sum.Compare(best) < 0) && fits(0, wanted) {
				best, found = sum, true
			}
		}
		if ok != found || ok && cost != best {
			t.Fatalf("it costs %v (%v), and could %v (%v): %+v", cost, ok, best, found, g)
		}
		if !ok {
			return
		}
		now := counters{}
		now.add(o.counters, 1)
		for _, i := range append(slices.Clone(others), mine...) {
			if !slices.Contains(g.slices, job.SliceID("w/"+o.devices[i].name)) {
				now.add(o.devices[i].uses, -1)
			}
		}
		for _, at := range g.devices {
			k := slices.IndexFunc(o.devices, func(d device) bool { return d.name == at.device })
			if !now.bear(o.devices[k].uses) {
				t.Fatalf("it can't have %s: %v are left for %v", at.device, now, o.devices[k].uses)
			}
			now.add(o.devices[k].uses, -1)
		}
		if len(g.devices) != wanted {
			t.Fatalf("it has %v, and wants %d", g.devices, wanted)
		}
	})
}
