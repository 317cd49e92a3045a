//go:build kubernetes

package kubernetes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// sceneOf puts objects together as the inventory would.
func sceneOf(pools []Pool, n *corev1.Node, objects ...any) *scene {
	slim := &slimmer{operator: "op"}
	s := &scene{machine: slim.machine(n), pools: pools}
	s.machine.pools = poolsOf(pools, s.machine)
	pods, limits := map[string]*pod{}, map[types.UID]quantity.Instant{}
	for _, o := range objects {
		switch x := o.(type) {
		case *corev1.Pod:
			t := slim.pod(x)
			if pods[x.Namespace+"/"+x.Name] = t; t.machine == n.Name {
				s.pods = append(s.pods, t)
			}
		case *resourcev1.ResourceSlice:
			s.resourceSlices = append(s.resourceSlices, slim.resourceSlice(x))
		case []*resourcev1.ResourceSlice:
			for _, y := range x {
				s.resourceSlices = append(s.resourceSlices, slim.resourceSlice(y))
			}
		case *resourcev1.ResourceClaim:
			s.claims = append(s.claims, slim.claim(x))
		case *jobOrWorkload:
			limits[x.of] = x.end
		}
	}
	s.pod = func(key string) *pod { return pods[key] }
	s.limits = func(of types.UID) quantity.Instant {
		if end, there := limits[of]; there {
			return end
		}
		return quantity.Never
	}
	return s
}

// told is a stand in one line for each slice, holds by their kind and end in seconds from t0.
func (x *stand) told() string {
	var lines []string
	for _, s := range x.slices {
		line := string(s.ID)
		for _, r := range x.closures[s.ID] {
			end := "?"
			if r.End != quantity.Never {
				end = fmt.Sprint(r.End.Sub(at(0)))
			}
			line += fmt.Sprintf(" %v until %s for %s", r.Kind, end, r.Source)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func TestWhatOthersHoldOfAMachine(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	two := node("w", has(mig, 2))
	for _, c := range []struct {
		name    string
		pools   []Pool
		node    *corev1.Node
		objects []any
		want    string
	}{
		{"counted, and nobody is there", []Pool{small()}, two, []any{newPod("a", "cpu", "w"), newPod("a", "elsewhere", "x", asks(mig, 1))},
			"w/mig-1g.10gb.0\nw/mig-1g.10gb.1"},
		{"a Pod with a deadline", []Pool{small()}, two, []any{newPod("a", "p", "w", asks(mig, 1), lasts(time.Minute))},
			"w/mig-1g.10gb.0\nw/mig-1g.10gb.1 foreign until 1m30s for pod a/p"},
		{"one without, beside one of ours", []Pool{small()}, two,
			[]any{newPod("a", "p", "w", asks(mig, 1)), newPod("s", "sluice-op-1-2", "w", asks(mig, 1), ours("w/mig-1g.10gb.1"))},
			"w/mig-1g.10gb.0 foreign until ? for pod a/p\nw/mig-1g.10gb.1"},
		{"its Job has the deadline", []Pool{small()}, two, []any{newPod("a", "p", "w", asks(mig, 2), of("Job", "j")),
			&jobOrWorkload{of: "uid-a-j", end: at(time.Hour)}},
			"w/mig-1g.10gb.0 foreign until 1h0m30s for pod a/p\nw/mig-1g.10gb.1 foreign until 1h0m30s for pod a/p"},
		{"it is being deleted", []Pool{small()}, two,
			[]any{newPod("a", "p", "w", asks(mig, 1),
				func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: t0.Add(9 * time.Second)} })},
			"w/mig-1g.10gb.0\nw/mig-1g.10gb.1 foreign until 9s for pod a/p"},
		{"init containers and sidecars", []Pool{small()}, node("w", has(mig, 4)),
			[]any{newPod("a", "p", "w", asks(mig, 1), func(p *corev1.Pod) {
				side, init := *p.Spec.Containers[0].DeepCopy(), *p.Spec.Containers[0].DeepCopy()
				side.RestartPolicy, init.Resources.Limits[mig] = ptr(corev1.ContainerRestartPolicyAlways),
					init.Resources.Limits[mig].DeepCopy()
				p.Spec.InitContainers = []corev1.Container{side, init}
			})}, "w/mig-1g.10gb.0\nw/mig-1g.10gb.1\nw/mig-1g.10gb.2 foreign until ? for pod a/p\nw/mig-1g.10gb.3 foreign until ? for " +
				"pod a/p"},
		{"one of ours on a number that is gone", []Pool{small()}, two,
			[]any{newPod("s", "sluice-op-1", "w", asks(mig, 1), ours("w/mig-1g.10gb.7"))},
			"w/mig-1g.10gb.0\nw/mig-1g.10gb.1 foreign until ? for pod s/sluice-op-1"},
		{"a cordon and taints", []Pool{{Name: "p", Tolerates: []string{"nvidia.com/gpu"}, Resources: small().Resources}},
			node("w", has(mig, 1), func(n *corev1.Node) {
				n.Spec.Unschedulable = true
				n.Spec.Taints = []corev1.Taint{
					{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule},
					{Key: "nvidia.com/gpu", Effect: corev1.TaintEffectNoSchedule},
					{Key: "soft", Effect: corev1.TaintEffectPreferNoSchedule}, {Key: "team", Effect: corev1.TaintEffectNoSchedule},
				}
			}), nil, "w/mig-1g.10gb.0 maintenance until ? for taint team drain until ? for node w is cordoned"},
		{"maintenance and a calendar", []Pool{{
			Name: "p", Resources: small().Resources,
			Calendar: []Closing{{Name: "day", Start: at(0), End: at(time.Hour), Every: 24 * time.Hour}},
		}}, node("w", has(mig, 1), func(n *corev1.Node) {
			n.Annotations = map[string]string{AnnotationMaintenance: "2026-11-23T13:00:00Z/2026-11-23T14:00:00Z"}
		}), nil, "w/mig-1g.10gb.0 maintenance until 2h0m0s for annotation sluice.dev/maintenance serving until 1h0m0s for calendar of " +
			"pool p: day"},
		{"of no pool", []Pool{{Name: "p", Nodes: map[string]string{"gpu": "yes"}, Resources: small().Resources}}, two, nil, ""},
		{"devices side by side", []Pool{migs("3g.40gb", "1g.10gb")}, node("w"), []any{partitionable("w")},
			"w/gpu-0-mig-1g-6\nw/gpu-0-mig-3g-0\nw/gpu-0-mig-3g-3"},
		{"somebody has one", []Pool{migs("3g.40gb")}, node("w"),
			[]any{partitionable("w"), newPod("a", "p", "w", claims("c"), lasts(time.Minute)),
				resourceClaim("a", "c", allocated("w", "gpu-0-mig-3g-3", "p"))},
			"w/gpu-0-mig-3g-0\nw/gpu-0-mig-3g-3 foreign until 1m30s for pod a/p"},
		{"somebody has what it shares", []Pool{migs("3g.40gb")}, node("w"), []any{
			partitionable("w"), newPod("a", "p", "w", claims("c"), lasts(time.Minute)),
			newPod("a", "q", "w", claims("d"), lasts(2*time.Minute)),
			resourceClaim("a", "c", allocated("w", "gpu-0-mig-1g-1", "p")), resourceClaim("a", "d", allocated("w", "gpu-0-mig-1g-2", "q")),
		}, "w/gpu-0-mig-3g-0 foreign until 2m30s for pod a/q\nw/gpu-0-mig-3g-3"},
		{"ours is ours", []Pool{migs("3g.40gb")}, node("w"),
			[]any{partitionable("w"), resourceClaim("s", "c", ourClaim, allocated("w", "gpu-0-mig-3g-3", "x"))},
			"w/gpu-0-mig-3g-0\nw/gpu-0-mig-3g-3"},
		{"allocated, and its Pod is gone", []Pool{migs("3g.40gb")}, node("w"),
			[]any{partitionable("w"), resourceClaim("a", "c", allocated("w", "gpu-0-mig-3g-0", "gone"))},
			"w/gpu-0-mig-3g-0 foreign until ? for claim a/c\nw/gpu-0-mig-3g-3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := sceneOf(c.pools, c.node, c.objects...).evaluate(&stand{}).told(); got != c.want {
				t.Errorf("it is\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestASliceSaysWhatItIs(t *testing.T) {
	x := sceneOf([]Pool{migs("3g.40gb"), small()}, node("w", has("nvidia.com/mig-1g.10gb", 1)), partitionable("w")).evaluate(&stand{})
	want := []protocol.Slice{
		{ID: "w/gpu-0-mig-3g-0", Model: "NVIDIA A100-SXM4-80GB", Profile: "3g.40gb", Capacity: trp.Vector{40 << 30}, Speed: 428,
			Device: "dra:w/mig.nvidia.com/gpu.nvidia.com/w/gpu-0-mig-3g-0"},
		{ID: "w/gpu-0-mig-3g-3", Model: "NVIDIA A100-SXM4-80GB", Profile: "3g.40gb", Capacity: trp.Vector{40 << 30}, Speed: 428,
			Device: "dra:w/mig.nvidia.com/gpu.nvidia.com/w/gpu-0-mig-3g-3"},
		{ID: "w/mig-1g.10gb.0", Model: "NVIDIA A100-SXM4-80GB", Profile: "1g.10gb", Capacity: trp.Vector{9856 << 20}, Speed: 142,
			Device: "resource:w/nvidia.com%2Fmig-1g.10gb"},
	}
	if !slices.Equal(x.slices, want) {
		t.Errorf("they are\n%+v\nwant\n%+v", x.slices, want)
	}
}

// TestAPoolThatIsPublishedInPieces counts once all of its parts are there, and those of the generation before do not.
func TestAPoolThatIsPublishedInPieces(t *testing.T) {
	parts := partitionable("w")
	if x := sceneOf([]Pool{migs("3g.40gb")}, node("w"), parts[1]).evaluate(&stand{}); len(x.slices) != 0 {
		t.Error("half of it is taken for all")
	}
	// It was whole before: its devices stand, and what else happens on the machine is heard.
	before := sceneOf([]Pool{migs("3g.40gb")}, node("w"), parts).evaluate(&stand{})
	cordoned := node("w", func(n *corev1.Node) { n.Spec.Unschedulable = true })
	x := sceneOf([]Pool{migs("3g.40gb")}, cordoned, parts[1], resourceClaim("a", "c", allocated("w", "gpu-0-mig-3g-0"))).evaluate(before)
	if got, want := x.told(), "w/gpu-0-mig-3g-0 foreign until ? for claim a/c drain until ? for node w is cordoned\nw/gpu-0-mig-3g-3 "+
		"drain until ? for node w is cordoned"; got != want {
		t.Errorf("while it is published anew it is\n%s\nwant\n%s", got, want)
	}
	if again := sceneOf([]Pool{migs("3g.40gb")}, cordoned, parts[1]).evaluate(x); len(again.slices) != 2 {
		t.Errorf("it is forgotten: %+v", again)
	}
	old := parts[1].DeepCopy()
	old.Name, old.Spec.Devices = "old", []resourcev1.Device{{Name: "old"}}
	for _, s := range parts {
		s.Spec.Pool.Generation = 2
	}
	if x := sceneOf([]Pool{migs("3g.40gb")}, node("w"), old, parts).evaluate(&stand{}); len(x.slices) != 2 {
		t.Errorf("%+v", x)
	}
}

// TestAnAnnotationThatCannotBeReadCloses the machine.
func TestAnAnnotationThatCannotBeReadCloses(t *testing.T) {
	for _, text := range []string{"tomorrow", "2026-11-23T13:00:00Z", "2026-11-23T13:00:00Z/2026-11-23T13:00:00Z",
		"2026-11-23T13:00:00Z/2026-11-23T14:00:00Z,x", ","} {
		list := maintenance(text)
		if len(list) == 0 || list[len(list)-1].End != quantity.Never || list[len(list)-1].Start != 0 {
			t.Errorf("%q: %+v", text, list)
		}
	}
}

// TestSeats: every unit of others sits somewhere as long as there is room, nobody sits on ours while there is room elsewhere, who stays
// keeps its seat, and no two sit on one.
func TestSeats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 6).Draw(t, "slices")
		before := map[int]types.UID{}
		for round := range 6 {
			ours, taken := map[int]bool{}, 0
			for k := range n {
				if ours[k] = rapid.IntRange(0, 3).Draw(t, "ours") == 0; ours[k] {
					taken++
				}
			}
			var others []*pod
			units, total := map[types.UID]int64{}, 0
			for i := range rapid.IntRange(0, 4).Draw(t, "Pods") {
				uid := types.UID(rune('a' + i))
				units[uid] = int64(rapid.IntRange(1, 3).Draw(t, "units"))
				total += int(units[uid])
				others = append(others, &pod{ObjectMeta: metav1.ObjectMeta{UID: uid}})
			}
			seats := seat(n, before, others, func(t *pod) int64 { return units[t.UID] }, ours)
			got, onOurs := map[types.UID]int64{}, 0
			for k, uid := range seats {
				if got[uid]++; got[uid] > units[uid] || k < 0 || k >= n {
					t.Fatalf("round %d: %v for %v of %d", round, seats, units, n)
				}
				if ours[k] {
					onOurs++
				}
			}
			if len(seats) != min(n, total) || onOurs != max(0, min(n, total)-(n-taken)) {
				t.Fatalf("round %d: %d of %d sit, %d on ours of %d; there are %d", round, len(seats), total, onOurs, taken, n)
			}
			kept := map[types.UID]int64{}
			for k, uid := range before {
				if seats[k] == uid {
					kept[uid]++
				}
			}
			for uid, still := range units { // who was seated where none of ours is now stays there, as far as it still has as many
				could := int64(0)
				for k, was := range before {
					if was == uid && !ours[k] && k < n {
						could++
					}
				}
				if kept[uid] < min(could, still) {
					t.Fatalf("round %d: %s kept %d of %d seats: %v, then %v", round, uid, kept[uid], min(could, still), before, seats)
				}
			}
			before = seats
		}
	})
}

// TestSharedCountersAreNeverOversold: whoever has which of a driver's devices, those that are offered and not held can all be had at once,
// beside all that somebody has. Until when one is held: it could be had then if whoever is to be gone by then is. No fewer are offered
// than a single one that still fits.
func TestSharedCountersAreNeverOversold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := published{pooled: pooled{driver, "w"}, total: counters{}}
		for k := range 4 {
			p.total.add([]count{{"g", fmt.Sprint(k), amount{n: int64(rapid.IntRange(1, 3).Draw(t, "total"))}}}, 1)
		}
		for i := range rapid.IntRange(1, 8).Draw(t, "devices") {
			d := device{name: string(rune('a' + i)), machine: "w", memory: 1 << 30}
			for k := range 4 {
				if n := rapid.IntRange(0, 2).Draw(t, "uses"); n > 0 {
					d.uses = append(d.uses, count{"g", fmt.Sprint(k), amount{n: int64(n)}})
				}
			}
			p.devices = append(p.devices, d)
		}
		pools := []Pool{{Classes: []Class{{Name: "c", Driver: driver}}}}
		list := p.layout(&machine{ObjectMeta: metav1.ObjectMeta{Name: "w"}, pools: []int{0}}, pools, nil, nil)
		// Others take what a scheduler could give them.
		left, has := counters{}, map[string]stay{}
		for k, n := range p.total {
			left[k] = n
		}
		for i := range p.devices {
			if d := &p.devices[i]; left.bear(d.uses) && rapid.IntRange(0, 2).Draw(t, "somebody has it") == 0 {
				left.add(d.uses, -1)
				mine := slices.ContainsFunc(list, func(o offered) bool { return o.name == d.name }) && rapid.Bool().Draw(t, "ours")
				has[d.name] = stay{ours: mine, end: quantity.Instant(rapid.IntRange(1, 5).Draw(t, "end"))}
			}
		}
		held := p.held(list, has)
		at := func(when quantity.Instant, also string) bool { // all that can be had then is had
			now := counters{}
			for k, n := range p.total {
				now[k] = n
			}
			for i := range p.devices {
				s, taken := has[p.devices[i].name]
				if taken && (s.ours || s.end > when) {
					now.add(p.devices[i].uses, -1)
				}
			}
			for i := range list {
				o := &list[i]
				s, taken := has[o.name]
				_, is := held[o.slice.ID]
				if o.name == also || !is && !(taken && s.ours) {
					now.add(o.uses, -1)
				}
			}
			for _, n := range now {
				if n < 0 {
					return false
				}
			}
			return true
		}
		if !at(0, "") {
			t.Fatalf("oversold: %+v of %+v, held %+v, somebody has %+v", list, p, held, has)
		}
		for i := range list {
			o := &list[i]
			r, is := held[o.slice.ID]
			s, taken := has[o.name]
			switch {
			case taken && (s.ours == is || is && r.End != s.end):
				t.Fatalf("%s is held: %v %+v, and somebody has it: %+v", o.name, is, r, s)
			case taken || !is:
			case !at(r.End, o.name) || at(r.End-1, o.name):
				t.Fatalf("%s is held until %d, and could be had then: %v, before: %v", o.name, r.End, at(r.End, o.name),
					at(r.End-1, o.name))
			}
		}
	})
}

// TestIDsStandWhateverHappens: what is there does not depend on who holds it.
func TestIDsStandWhateverHappens(t *testing.T) {
	pools := []Pool{migs("3g.40gb", "1g.10gb"), small()}
	n := node("w", has("nvidia.com/mig-1g.10gb", 3))
	want := sceneOf(pools, n, partitionable("w")).evaluate(&stand{})
	got := sceneOf(pools, n, partitionable("w"), newPod("a", "p", "w", asks("nvidia.com/mig-1g.10gb", 2)),
		resourceClaim("a", "c", allocated("w", "gpu-0-mig-7g-0"))).evaluate(want)
	ids := func(x *stand) (list []job.SliceID) {
		for _, s := range x.slices {
			list = append(list, s.ID)
		}
		return list
	}
	if !slices.Equal(ids(want), ids(got)) || len(want.closures) > len(got.closures) {
		t.Errorf("%v, then %v", ids(want), ids(got))
	}
}

// TestADevicePluginStartsAnew: while it does there is nothing of it on its machine, and what is there is closed for a minute, but stays.
func TestADevicePluginStartsAnew(t *testing.T) {
	const mig = "nvidia.com/mig-1g.10gb"
	var keep slimmer
	before := &stand{}
	for i, c := range []struct {
		at     time.Duration
		n      int64
		listed int
		held   int
	}{{0, 2, 2, 0}, {time.Minute, 0, 2, 2}, {90 * time.Second, 1, 2, 1}, {100 * time.Second, 2, 2, 0}, {200 * time.Second, 0, 2, 2},
		{259 * time.Second, 0, 2, 2}, {260 * time.Second, 0, 0, 0}} {
		m := keep.machine(node("w", has(mig, c.n)))
		m.pools = []int{0}
		s := &scene{machine: m, pools: []Pool{small()}, limits: func(types.UID) quantity.Instant { return quantity.Never }, now: at(c.at)}
		before = s.evaluate(before)
		held := 0
		for _, list := range before.closures {
			held += min(1, len(list))
		}
		if len(before.slices) != c.listed || held != c.held {
			t.Errorf("%d: %d slices, %d of them held; want %d, %d", i, len(before.slices), held, c.listed, c.held)
		}
	}
}
