//go:build kubernetes

package kubernetes

import (
	"fmt"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
)

// What nothing else here would see if it were wrong, as bugs that were planted have shown.

// TestADeviceIsOfItsMachineAlone, though its pool has those of others, and others' slices say where all of theirs are: it is sold once.
func TestADeviceIsOfItsMachineAlone(t *testing.T) {
	pool := &resourcev1.ResourceSlice{ObjectMeta: meta("", "fabric")}
	pool.Spec.Driver, pool.Spec.Pool, pool.Spec.PerDeviceNodeSelection = driver,
		resourcev1.ResourcePool{Name: "fabric", ResourceSliceCount: 1}, ptr(true)
	for i, on := range []string{"v", "w", "w"} {
		d := migDevice("1g.10gb", i, 1, 10)
		d.NodeName, d.ConsumesCounters = ptr(on), nil
		pool.Spec.Devices = append(pool.Spec.Devices, d)
	}
	for on, want := range map[string]string{"v": "v/fabric.gpu-0-mig-1g-0", "w": "w/fabric.gpu-0-mig-1g-1\nw/fabric.gpu-0-mig-1g-2",
		"x": ""} {
		if got := sceneOf([]Pool{migs("1g.10gb")}, node(on), pool).evaluate(&stand{}).told(); got != want {
			t.Errorf("%s has\n%s\nwant\n%s", on, got, want)
		}
	}
}

// TestWhoseADeviceIs: ours is what our own journal says, and nothing that somebody else has too. It is free once the last of all who share
// it is gone.
func TestWhoseADeviceIs(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	before := func(l map[string]string) { l[cluster.LabelJournal] = "before" }
	mine := resourceClaim("s", "mine", ourClaim, allocated("w", "gpu-0-mig-3g-3", "x"))
	theirs := resourceClaim("a", "theirs", allocated("w", "gpu-0-mig-3g-3", "p"))
	p, q := newPod("a", "p", "w", claims("theirs"), lasts(time.Hour)), newPod("a", "q", "w", claims("theirs"), lasts(time.Minute))
	for name, c := range map[string]struct {
		pool    Pool
		objects []any
		want    string
	}{
		"a Pod of another journal": {small(), []any{newPod("s", "old", "w", asks(mig, 1), ours("w/mig-1g.10gb.0"),
			func(p *corev1.Pod) { before(p.Labels) })}, "w/mig-1g.10gb.0 foreign until ? for pod s/old"},
		"a claim of another journal": {migs("3g.40gb"),
			[]any{partitionable("w"), resourceClaim("s", "old", ourClaim, allocated("w", "gpu-0-mig-3g-3"),
				func(c *resourcev1.ResourceClaim) { before(c.Labels) })},
			"w/gpu-0-mig-3g-0\nw/gpu-0-mig-3g-3 foreign until ? for claim s/old"},
		"ours, and then somebody else's": {migs("3g.40gb"), []any{partitionable("w"), mine, theirs, p},
			"w/gpu-0-mig-3g-0\nw/gpu-0-mig-3g-3 foreign until 1h0m30s for pod a/p"},
		"somebody else's, and then ours": {migs("3g.40gb"), []any{partitionable("w"), theirs, mine, p},
			"w/gpu-0-mig-3g-0\nw/gpu-0-mig-3g-3 foreign until ? for claim s/mine"},
		"of several Pods": {migs("3g.40gb"), []any{partitionable("w"),
			resourceClaim("a", "theirs", allocated("w", "gpu-0-mig-3g-3", "p", "q")), p, q},
			"w/gpu-0-mig-3g-0\nw/gpu-0-mig-3g-3 foreign until 1h0m30s for pod a/q"},
	} {
		if got := sceneOf([]Pool{c.pool}, node("w", has(mig, 1)), c.objects...).evaluate(&stand{}).told(); got != c.want {
			t.Errorf("%s: it is\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// TestWhatClosesAMachineSaysWhenAndWhatIsCut: what runs there is over by a maintenance and by a calendar's entry, and by a taint that
// evicts; but not since nobody hears of the machine.
func TestWhatClosesAMachineSaysWhenAndWhatIsCut(t *testing.T) {
	m := (&slimmer{}).machine(node("w", func(n *corev1.Node) {
		n.Annotations = map[string]string{AnnotationMaintenance: "2026-11-23T13:00:00Z/2026-11-23T14:00:00Z"}
		n.Spec.Taints = []corev1.Taint{
			{Key: "old", Effect: corev1.TaintEffectNoExecute}, {Key: "team", Effect: corev1.TaintEffectNoSchedule},
			{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute},
			{Key: corev1.TaintNodeUnreachable, Effect: corev1.TaintEffectNoExecute},
		}
	}))
	p := Pool{Name: "p", Calendar: []Closing{
		{Name: "day", Start: at(3 * time.Hour), End: at(4 * time.Hour), Every: 24 * time.Hour},
	}}
	taint := func(key string, cuts bool) protocol.Reservation {
		return protocol.Reservation{Kind: protocol.ForMaintenance, End: quantity.Never, Source: "taint " + key, Truncate: cuts}
	}
	want := []protocol.Reservation{
		taint("old", true), taint("team", false), taint(corev1.TaintNodeNotReady, false), taint(corev1.TaintNodeUnreachable, false),
		{Kind: protocol.ForMaintenance, Start: at(time.Hour), End: at(2 * time.Hour), Source: "annotation " + AnnotationMaintenance,
			Truncate: true},
		{Kind: protocol.ForServing, Start: at(3 * time.Hour), End: at(4 * time.Hour), Every: 24 * time.Hour,
			Source: "calendar of pool p: day", Truncate: true},
	}
	if got := closes(&p, m); !slices.Equal(got, want) {
		t.Errorf("it is\n%+v\nwant\n%+v", got, want)
	}
}

// TestNobodyIsStoppedForWhoCanNotComeThere: the machine is closed to it.
func TestNobodyIsStoppedForWhoCanNotComeThere(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	tainted := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "team", Effect: corev1.TaintEffectNoSchedule}}
	}
	all := func(list ...corev1.Toleration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Tolerations = list }
	}
	bears := func(key string) func(*corev1.Pod) {
		return all(corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists})
	}
	// What the API server gives every Pod, and how a machine is marked that nothing is heard of.
	defaults := all(corev1.Toleration{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists,
		Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr(int64(300))})
	away := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule},
			{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoExecute}}
	}
	dedicated := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "7", Effect: corev1.TaintEffectNoSchedule}}
	}
	is := func(op corev1.TolerationOperator, value string) func(*corev1.Pod) {
		return all(corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists}, corev1.Toleration{Key: "dedicated", Operator: op,
			Value: value})
	}
	nothing := func(*corev1.Pod) {}
	for name, c := range map[string]struct {
		node func(*corev1.Node)
		pod  func(*corev1.Pod)
		cut  int
	}{
		"a taint":              {tainted, nothing, 0},
		"another one is borne": {tainted, bears("other"), 0},
		"it is borne":          {tainted, bears("team"), 1},
		"all are borne":        {tainted, bears(""), 1},
		"it does not answer, and is borne for a while once it runs there": {away, defaults, 0},
		"it does not answer, and is borne":                                {away, bears(corev1.TaintNodeNotReady), 1},
		"kept for somebody else":                                          {dedicated, is(corev1.TolerationOpEqual, "8"), 0},
		"kept for it":                                                     {dedicated, is(corev1.TolerationOpEqual, "7"), 1},
		"kept for it, as one writes too":                                  {dedicated, is("", "7"), 1},
		"kept for more than it":                                           {dedicated, is(corev1.TolerationOpGt, "7"), 0},
		"kept for less than it":                                           {dedicated, is(corev1.TolerationOpLt, "8"), 1},
		"kept for what is no number":                                      {dedicated, is(corev1.TolerationOpLt, "x"), 0},
		"a cordon": {func(n *corev1.Node) { n.Spec.Unschedulable = true }, nothing,
			0},
		"maintenance that is to come": {func(n *corev1.Node) {
			n.Annotations = map[string]string{AnnotationMaintenance: "2026-11-24T13:00:00Z/2026-11-24T14:00:00Z"}
		}, nothing, 1},
	} {
		t.Run(name, func(t *testing.T) {
			objects := append(filled(), newPod("a", "p", "", asks(mig, 2), unplaced, c.pod))
			c.node(objects[0].(*corev1.Node))
			o := options(serve(objects...))
			o.Pools, o.Now = []Pool{small()}, func() quantity.Instant { return at(0) }
			g := gives(opened(t, o))
			g.look()
			if got := cut(g.held()); len(got) != c.cut {
				t.Errorf("cut are %q, want %d", got, c.cut)
			}
		})
	}
}

// TestEachWhoWaitsHasAPlaceOfItsOwn: what is given back for one is neither given nor kept for the next, though our Pod is there still.
func TestEachWhoWaitsHasAPlaceOfItsOwn(t *testing.T) {
	_, look := clocked(t, newPod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c", wanted("mig.nvidia.com"),
		selects(`device.attributes["gpu.nvidia.com"].profile == "3g.40gb"`)))
	if got, want := look(0), []string{"w/gpu-0-mig-3g-3 at 30s for pod a/p, which waits for it"}; !slices.Equal(got, want) {
		t.Fatalf("cut are %q, want %q", got, want)
	}
	_, look = clocked(t, newPod("a", "p", "", claims("c"), unplaced), resourceClaim("a", "c"), newPod("a", "q", "", claims("d"), unplaced),
		resourceClaim("a", "d"), newPod("a", "r", "", claims("e"), unplaced), resourceClaim("a", "e"))
	want := []string{"w/gpu-0-mig-3g-0 at 30s for pod a/q, which waits for it", "w/gpu-0-mig-3g-3 at 30s for pod a/p, which waits for it"}
	for _, d := range []time.Duration{0, time.Second, 11 * time.Second} { // the third has none
		if got := look(d); !slices.Equal(got, want) {
			t.Errorf("after %v cut are %q, want %q", d, got, want)
		}
	}
}

// TestWhoWaitsLongestIsFirst, where there is not enough for all.
func TestWhoWaitsLongestIsFirst(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	later := func(p *corev1.Pod) {
		p.Status.Conditions[0].LastTransitionTime = metav1.Time{Time: t0.Add(time.Minute)}
	}
	_, look := clocked(t, newPod("a", "a", "", asks(mig, 3), unplaced, later), newPod("a", "b", "", asks(mig, 3), unplaced))
	want := []string{"w/mig-1g.10gb.0 at 2m30s for pod a/b, which waits for it", "w/mig-1g.10gb.1 at 2m30s for pod a/b, which waits for it"}
	if got := look(2 * time.Minute); !slices.Equal(got, want) {
		t.Errorf("cut are %q, want %q", got, want)
	}
}

// TestWhatComesLaterIsHeard: that a claim has nothing any more, and that a Job got a deadline, change what is held, though nothing came or
// went.
func TestWhatComesLaterIsHeard(t *testing.T) {
	parts := partitionable("w")
	c := serve(node("w"), parts[0], parts[1], resourceClaim("a", "c", allocated("w", "gpu-0-mig-3g-3", "p")),
		newPod("a", "q", "w", claims("d"), of("Job", "j")), resourceClaim("a", "d", allocated("w", "gpu-0-mig-3g-0", "q")))
	o := options(c)
	o.Pools = []Pool{migs("3g.40gb")}
	inv := opened(t, o)
	f := follow(t, inv)
	f.until(t, "w/gpu-0-mig-3g-0 held", "w/gpu-0-mig-3g-3 held")
	check[*resourcev1.ResourceClaim](t)(c.ResourceV1().ResourceClaims("a").Update(t.Context(),
		resourceClaim("a", "c", func(c *resourcev1.ResourceClaim) { c.ResourceVersion = "2" }), metav1.UpdateOptions{}))
	f.until(t, "w/gpu-0-mig-3g-0 held", "w/gpu-0-mig-3g-3")
	j := &batchv1.Job{ObjectMeta: meta("a", "j"), Spec: batchv1.JobSpec{ActiveDeadlineSeconds: ptr(int64(60))},
		Status: batchv1.JobStatus{StartTime: &metav1.Time{Time: t0}}}
	check[*batchv1.Job](t)(c.BatchV1().Jobs("a").Create(t.Context(), j, metav1.CreateOptions{}))
	endsAt(t, inv, at(90*time.Second))
}

// TestAPodHasEachOfItsClaims, whatever those are called that were made for it.
func TestAPodHasEachOfItsClaims(t *testing.T) {
	p := newPod("a", "p", "", func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "one", ResourceClaimTemplateName: ptr("t")},
			{Name: "two", ResourceClaimTemplateName: ptr("t")}, {Name: "three", ResourceClaimName: ptr("fixed")}}
		p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "one", ResourceClaimName: ptr("p-one-x")},
			{Name: "two", ResourceClaimName: ptr("p-two-y")}}
	})
	if got, want := fmt.Sprint((&slimmer{}).pod(p).need.claims), "[a/p-one-x a/p-two-y a/fixed]"; got != want {
		t.Errorf("they are %s, want %s", got, want)
	}
}

// TestAClassIsOfItsDriver: attributes of the same names and values are another driver's too.
func TestAClassIsOfItsDriver(t *testing.T) {
	p := migs("3g.40gb")
	p.Classes[0].Driver = "gpu.example.com"
	if x := sceneOf([]Pool{p}, node("w"), partitionable("w")).evaluate(&stand{}); len(x.slices) != 0 {
		t.Errorf("another driver's devices are offered: %s", x.told())
	}
}

// TestWhatIsFreeIsSoldBesideWhatIsHeld: until when a slice is held goes by what is left beside those that nobody holds, also of those
// after it.
func TestWhatIsFreeIsSoldBesideWhatIsHeld(t *testing.T) {
	uses := func(name string, n int64) device {
		return device{name: name, machine: "w", memory: 1, uses: []count{{"g", "m", amount{n: n}}}}
	}
	p := published{pooled: pooled{driver, "w"}, total: counters{{"g", "m"}: 3}, devices: []device{uses("a", 2), uses("b", 1), uses("c", 1),
		uses("d", 1)}}
	list := p.layout(&machine{ObjectMeta: meta("", "w"), pools: []int{0}}, []Pool{{Classes: []Class{{Name: "c", Driver: driver}}}}, nil,
		nil)
	held := p.held(list, map[string]stay{"c": {end: at(time.Minute), who: "c"}, "d": {end: at(time.Hour), who: "d"}})
	if r, is := held["w/a"]; len(held) != 1 || !is || r.End != at(time.Hour) || r.Source != "d" {
		t.Errorf("held are %+v; beside b the first fits once d is gone", held)
	}
}
