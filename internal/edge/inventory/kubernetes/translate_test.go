//go:build kubernetes

package kubernetes

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
)

// TestAsMuchIsGivenBackAsObjectsMean: what is translated of each kind of wish and machine is what it says.
func TestAsMuchIsGivenBackAsObjectsMean(t *testing.T) {
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
		return []runtime.Object{newPod("a", "p", "", append([]func(*corev1.Pod){asks(mig, n), unplaced}, changes...)...)}
	}
	devices := func(more ...runtime.Object) []runtime.Object {
		return append([]runtime.Object{newPod("a", "p", "", claims("c"), unplaced)}, more...)
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
		costs   map[job.SliceID]reclaim.Cost
		objects []runtime.Object
		cut     int
	}{
		"a device":       {both, nil, nil, devices(c), 1},
		"costs are told": {both, nil, map[job.SliceID]reclaim.Cost{"w/gpu-0-mig-3g-0": {}}, devices(c), 1},
		"all of the GPU": {[]Pool{{Name: "mig", Classes: migs("3g.40gb").Classes, Notice: time.Minute}}, nil, nil,
			devices(resourceClaim("a", "c", wanted("whole")), deviceClass("whole", ofDriver, profile+` == '7g.80gb'`)), 2},
		"by its capacity": {mixed, nil, nil,
			devices(resourceClaim("a", "c", selects(profile+` == "3g.40gb" && `+memory+`("40Gi")) >= 0`))), 1},
		"by a larger one": {mixed, nil, nil,
			devices(resourceClaim("a", "c", wanted("any"), selects(memory+`("41Gi")) > 0`)), deviceClass("any", ofDriver)), 2},
		"by what is not understood": {mixed, nil, nil, devices(resourceClaim("a", "c", selects(profile+`.startsWith("3g")`))), 1},
		"two claims": {both, nil, nil,
			[]runtime.Object{newPod("a", "p", "", two, unplaced), c, resourceClaim("a", "d")}, 2},
		"a claim that two share":  {both, nil, nil, devices(newPod("a", "q", "", two, unplaced), c, resourceClaim("a", "d")), 2},
		"a claim not made yet":    {both, nil, nil, devices(), 0},
		"more than there are":     {both, nil, nil, devices(resourceClaim("a", "c", three)), 0},
		"counted":                 {counted, nil, nil, counts(2), 1},
		"two who wait":            {counted, nil, nil, append(counts(2), newPod("a", "q", "", asks(mig, 1), unplaced)), 2},
		"others have one":         {counted, nil, nil, append(counts(2), newPod("a", "h", "w", asks(mig, 1))), 2},
		"the pool keeps":          {[]Pool{{Name: "p", Resources: small().Resources, NeverGives: true}}, nil, nil, counts(2), 0},
		"of what no pool names":   {counted, nil, nil, []runtime.Object{newPod("a", "p", "", asks("example.com/other", 1), unplaced)}, 0},
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
			g := gives(opened(t, o))
			g.costs = func(id job.SliceID) (reclaim.Cost, bool) { x, known := c.costs[id]; return x, known }
			g.look()
			if got := cut(g.held()); len(got) != c.cut {
				t.Errorf("cut are %q, want %d", got, c.cut)
			}
		})
	}
}
