//go:build kubernetes

package kubernetes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	core "sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/edge/inventory"
)

// keeper has heard all that is translated of a cluster.
func (inv *Inventory) keeper() *core.Keeper {
	k := core.New()
	for _, o := range inv.nodes.GetStore().List() {
		m := inv.machineOf(o.(*machine))
		k.Hear(&m)
	}
	for _, w := range inv.waiters() {
		x := inv.wishOf(w.tenant)
		x.Group, x.Part = inv.membership(w.tenant)
		k.Wish(&x)
	}
	for _, g := range inv.groupsOf(inv.opts.Now()) {
		k.Expect(&g)
	}
	return k
}

// decided decides in the core by what is translated, and says what is cut as cut does.
func (inv *Inventory) decided(now quantity.Instant, costs core.Costs) (list []string) {
	inv.mu.Lock()
	defer inv.mu.Unlock()
	k := inv.keeper()
	k.Decide(now, costs)
	for _, p := range k.Places() {
		for _, id := range p.Cut {
			list = append(list, fmt.Sprintf("%s at %v for %s", id, p.At.Sub(at(0)), p.Who))
		}
	}
	slices.Sort(list)
	return list
}

// TestTheCoreDecidesTheSameOfWhatIsTranslated, as the inventory does of the objects themselves.
func TestTheCoreDecidesTheSameOfWhatIsTranslated(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	tainted := func(effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "7", Effect: effect}}
		}
	}
	tolerates := func(x ...corev1.Toleration) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Spec.Tolerations = x } }
	affine := func(rules ...corev1.NodeSelectorRequirement) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			terms := &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: rules}}}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
		}
	}
	two := func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{
			{Name: "one", ResourceClaimName: ptr("c")}, {Name: "two", ResourceClaimName: ptr("d")},
		}
	}
	// counts is who waits for counted devices, devices who waits for those of a claim, with more objects.
	counts := func(n int64, changes ...func(*corev1.Pod)) []runtime.Object {
		return []runtime.Object{pod("a", "p", "", append([]func(*corev1.Pod){asks(mig, n), unplaced}, changes...)...)}
	}
	devices := func(more ...runtime.Object) []runtime.Object {
		return append([]runtime.Object{pod("a", "p", "", claims("c"), unplaced)}, more...)
	}
	three := func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests[0].Exactly.Count = 3 }
	elsewhere := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"zone": "b"} }
	is := func(op corev1.NodeSelectorOperator, key, value string) corev1.NodeSelectorRequirement {
		return corev1.NodeSelectorRequirement{Key: key, Operator: op, Values: []string{value}}
	}
	const (
		ofDriver = `device.driver == "gpu.nvidia.com"`
		profile  = `device.attributes["gpu.nvidia.com"].profile`
		memory   = `device.capacity["gpu.nvidia.com"].memory.compareTo(quantity`
	)
	c := resourceClaim("a", "c")
	both, mixed, counted := []Pool{migs("3g.40gb"), small()}, []Pool{migs("3g.40gb", "1g.10gb")}, []Pool{small()}
	for name, c := range map[string]struct {
		pools   []Pool
		node    func(*corev1.Node)
		costs   map[job.SliceID]core.Cost
		objects []runtime.Object
		cut     int
	}{
		"a device":       {both, nil, nil, devices(c), 1},
		"costs are told": {both, nil, map[job.SliceID]core.Cost{"w/gpu-0-mig-3g-0": {}}, devices(c), 1},
		"all of the GPU": {[]Pool{{Name: "mig", Classes: migs("3g.40gb").Classes, Notice: time.Minute}}, nil, nil,
			devices(resourceClaim("a", "c", wanted("whole")), deviceClass("whole", ofDriver, profile+` == '7g.80gb'`)), 2},
		"by its capacity": {mixed, nil, nil,
			devices(resourceClaim("a", "c", selects(profile+` == "3g.40gb" && `+memory+`("40Gi")) >= 0`))), 1},
		"by a larger one": {mixed, nil, nil,
			devices(resourceClaim("a", "c", wanted("any"), selects(memory+`("41Gi")) > 0`)), deviceClass("any", ofDriver)), 2},
		"by what is not understood": {mixed, nil, nil, devices(resourceClaim("a", "c", selects(profile+`.startsWith("3g")`))), 1},
		"two claims": {both, nil, nil,
			[]runtime.Object{pod("a", "p", "", two, unplaced), c, resourceClaim("a", "d")}, 2},
		"a claim that two share":  {both, nil, nil, devices(pod("a", "q", "", two, unplaced), c, resourceClaim("a", "d")), 2},
		"a claim not made yet":    {both, nil, nil, devices(), 0},
		"more than there are":     {both, nil, nil, devices(resourceClaim("a", "c", three)), 0},
		"counted":                 {counted, nil, nil, counts(2), 1},
		"two who wait":            {counted, nil, nil, append(counts(2), pod("a", "q", "", asks(mig, 1), unplaced)), 2},
		"others have one":         {counted, nil, nil, append(counts(2), pod("a", "h", "w", asks(mig, 1))), 2},
		"the pool keeps":          {[]Pool{{Name: "p", Resources: small().Resources, Keeps: true}}, nil, nil, counts(2), 0},
		"of what no pool names":   {counted, nil, nil, []runtime.Object{pod("a", "p", "", asks("example.com/other", 1), unplaced)}, 0},
		"a label":                 {counted, nil, nil, counts(2, elsewhere), 0},
		"pinned":                  {counted, nil, nil, counts(2, pinned("w")), 1},
		"pinned elsewhere":        {counted, nil, nil, counts(2, pinned("v")), 0},
		"a label that is greater": {counted, nil, nil, counts(2, affine(is(corev1.NodeSelectorOpGt, "nvidia.com/gpu.memory", "80000"))), 1},
		"a label that is not": {counted, nil, nil,
			counts(2, affine(is(corev1.NodeSelectorOpNotIn, "nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"))), 0},
		"a taint": {counted, tainted(corev1.TaintEffectNoSchedule), nil, counts(2), 0},
		"it is tolerated": {counted, tainted(corev1.TaintEffectNoSchedule), nil,
			counts(2, tolerates(corev1.Toleration{Key: "dedicated", Value: "7"})), 1},
		"another effect is": {counted, tainted(corev1.TaintEffectNoExecute), nil,
			counts(2, tolerates(corev1.Toleration{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule})), 0},
		"a cordon": {counted, func(n *corev1.Node) { n.Spec.Unschedulable = true }, nil, counts(2), 0},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(filled(), c.objects...)
			if c.node != nil {
				c.node(objects[0].(*corev1.Node))
			}
			o := options(serve(objects...))
			o.Pools, o.Now = c.pools, func() quantity.Instant { return at(0) }
			inv := opened(t, o)
			if c.costs != nil {
				inv.Reckon(func([]job.SliceID) map[job.SliceID]core.Cost { return c.costs })
			}
			got := inv.decided(at(0), func(id job.SliceID) (core.Cost, bool) { x, known := c.costs[id]; return x, known })
			inv.look(func(inventory.Sighting) {})
			want := cut(inv.Held())
			if !slices.Equal(got, want) || len(got) != c.cut {
				t.Errorf("the core cuts %q, the inventory %q, want %d", got, want, c.cut)
			}
		})
	}
}

// TestTheCoreKeepsTheSameAhead of Kueue's Workloads, as they are translated, as the inventory does.
func TestTheCoreKeepsTheSameAhead(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	wants := func(n int64) *corev1.Pod { return pod("a", "x", "", asks(mig, n)) }
	ours := pod("s", "sluice-op-1", "v", ours("v/mig-1g.10gb.0"), asks(mig, 1), began(-time.Minute), lasts(time.Hour))
	half := []runtime.Object{node("v", has(mig, 2), inZone), ours}
	full := append(slices.Clip(half), pod("a", "h", "v", asks(mig, 1), of("Job", "h")))
	other := []runtime.Object{ours, node("v", has(mig, 2))}
	in := hasQuota("Admitted")
	holder := workload("h", 1, wants(1), in, runsFor(time.Hour))
	for name, c := range map[string]struct {
		objects   []runtime.Object
		workloads []*unstructured.Unstructured
		held      int
	}{
		"it is let in, and there is room": {half, []*unstructured.Unstructured{workload("j", 1, wants(1), in)}, 1},
		"two Pods, and room for one":      {half, []*unstructured.Unstructured{workload("j", 2, wants(1), in)}, 3},
		"more than there can ever be":     {half, []*unstructured.Unstructured{workload("j", 3, wants(1), in)}, 0},
		"no leave to start yet":           {half, []*unstructured.Unstructured{workload("j", 2, wants(1), hasQuota())}, 2},
		"its flavor is of other machines": {other, []*unstructured.Unstructured{workload("j", 1, wants(1), in)}, 0},
		"its Pods are there":              {full, []*unstructured.Unstructured{workload("h", 1, wants(1), in)}, 0},
		"nothing says how long": {full,
			[]*unstructured.Unstructured{workload("j", 1, wants(1)), workload("h", 1, wants(1), in)}, 0},
		"it waits for what ends":       {full, []*unstructured.Unstructured{workload("j", 1, wants(1)), holder}, 1},
		"it will not hold it for ever": {full, []*unstructured.Unstructured{workload("j", 1, wants(1), runsFor(time.Hour)), holder}, 1},
		"it waits for more than ends":  {full, []*unstructured.Unstructured{workload("j", 2, wants(1)), holder}, 0},
		"who is first": {full,
			[]*unstructured.Unstructured{workload("j", 1, wants(1)), workload("k", 1, wants(1), ranks(5)), holder}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(serve(c.objects...))
			o.Pools, o.Now, o.Dynamic = []Pool{small()}, func() quantity.Instant { return at(0) }, kueueOf(c.workloads...)
			inv := opened(t, o)
			inv.mu.Lock()
			k := inv.keeper()
			inv.mu.Unlock()
			k.Decide(at(0), nil)
			var list []inventory.Sighting
			for _, h := range k.Holds("v") {
				list = append(list, inventory.Sighting{Slice: h.Slice, Holds: []protocol.Reservation{
					{Kind: protocol.ForReclaim, Start: h.Start, End: h.End, Source: h.Who, Truncate: h.Truncate},
				}})
			}
			got := ahead(list)
			inv.look(func(inventory.Sighting) {})
			want := ahead(inv.Held())
			slices.Sort(got)
			slices.Sort(want)
			got, want = slices.Compact(got), slices.Compact(want)
			if !slices.Equal(got, want) || len(got) != c.held {
				t.Errorf("the core holds\n%q, the inventory\n%q, want %d", got, want, c.held)
			}
		})
	}
}
