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
	"k8s.io/apimachinery/pkg/runtime"

	"sluice.dev/sluice/internal/core/quantity"
)

// hasClaims is a Pod with several claims by their names.
func hasClaims(names ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		for _, name := range names {
			p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: name, ResourceClaimName: ptr(name)})
		}
	}
}

// board is a machine with whole GPUs a0, a1, b0 and b1, of which a and b are told apart by their root; change is made to each of them.
func board(machine string, change ...func(*resourcev1.Device)) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: meta("", machine+"-gpus")}
	s.Spec.Driver, s.Spec.NodeName, s.Spec.Pool = driver, ptr(machine), resourcev1.ResourcePool{Name: machine, ResourceSliceCount: 1}
	for _, name := range []string{"a0", "a1", "b0", "b1"} {
		d := migDevice("7g.80gb", 0, 7, 80)
		d.Name, d.ConsumesCounters = name, nil
		d.Attributes["root"] = resourcev1.DeviceAttribute{StringValue: ptr(name[:1])}
		for _, f := range change {
			f(&d)
		}
		s.Spec.Devices = append(s.Spec.Devices, d)
	}
	return s
}

// filler is a subjob of ours on a device, from an instant on, with its claim.
func filler(machine, device string, since time.Duration) []runtime.Object {
	name := "sluice-op-" + machine + "-" + device
	return []runtime.Object{
		newPod("s", name, machine, ours(machine+"/"+device), claims(name), began(since), lasts(time.Hour)),
		resourceClaim("s", name, ourClaim, allocated(machine, device, name)),
	}
}

// wholes is a pool of whole GPUs.
func wholes() Pool {
	return Pool{Name: "whole", Classes: []Class{{Name: "gpu.nvidia.com", Driver: driver}}}
}

// cutOf are the slices that are cut short in a cluster of these objects, without when and for whom.
func cutOf(t *testing.T, pool Pool, objects ...runtime.Object) (list []string) {
	t.Helper()
	o := options(serve(objects...))
	o.Pools, o.Now = []Pool{pool}, func() quantity.Instant { return at(0) }
	g := gives(opened(t, o))
	g.look()
	for _, line := range cut(g.held()) {
		slice, _, _ := strings.Cut(line, " ")
		list = append(list, slice)
	}
	return list
}

// TestWhatAClaimWants: of what no pool offers nothing is given back, and nothing is kept from being given back because of it.
func TestWhatAClaimWants(t *testing.T) {
	asked := func(change ...func(*resourcev1.ResourceClaim)) []runtime.Object {
		return []runtime.Object{resourceClaim("a", "c", append([]func(*resourcev1.ResourceClaim){wanted("gpu.nvidia.com")}, change...)...),
			newPod("a", "p", "", claims("c"), unplaced)}
	}
	beside := func(class string, more ...runtime.Object) []runtime.Object {
		return append([]runtime.Object{resourceClaim("a", "c", wanted("gpu.nvidia.com")), resourceClaim("a", "n", wanted(class)),
			newPod("a", "p", "", hasClaims("c", "n"), unplaced)}, more...)
	}
	count := func(n int64) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests[0].Exactly.Count = n }
	}
	constrained := func(k resourcev1.DeviceConstraint) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Constraints = []resourcev1.DeviceConstraint{k} }
	}
	all := func(c *resourcev1.ResourceClaim) {
		c.Spec.Devices.Requests[0].Exactly.AllocationMode, c.Spec.Devices.Requests[0].Exactly.Count = resourcev1.DeviceAllocationModeAll, 0
	}
	either := func(list ...resourcev1.DeviceSubRequest) func(*resourcev1.ResourceClaim) {
		return func(c *resourcev1.ResourceClaim) {
			for i := range list {
				list[i].Name = fmt.Sprint("s", i)
			}
			c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu", FirstAvailable: list}}
		}
	}
	root, free := ptr(resourcev1.FullyQualifiedName(driver+"/root")), resourceClaim("b", "held", allocated("w", "b1", "gone"))
	// Ours are on three of the four: a0 and b0 cost least. The last one is somebody else's, or free.
	mine := slices.Concat([]runtime.Object{node("w"), board("w")}, filler("w", "a0", -time.Minute), filler("w", "b0", -2*time.Minute),
		filler("w", "a1", -3*time.Minute))
	held := append(slices.Clip(mine), free)
	for _, c := range []struct {
		name    string
		objects [][]runtime.Object
		want    string
	}{
		{"a GPU", [][]runtime.Object{held, asked()}, "[w/a0]"},
		{"and a NIC of another driver", [][]runtime.Object{held, beside("nic", deviceClass("nic", `device.driver == "dra.net"`))},
			"[w/a0]"},
		{"and one whose class is not understood", [][]runtime.Object{held,
			beside("nic", deviceClass("nic", `device.driver.startsWith("dra.") || false`))}, "[w/a0]"},
		{"and one whose class nobody has seen", [][]runtime.Object{held, beside("nic")}, "[w/a0]"},
		{"a NIC alone", [][]runtime.Object{held, asked(wanted("nic")), {deviceClass("nic", `device.attributes["dra.net"].rdma == true`)}},
			"[]"},
		{"two that are not understood, of the driver", [][]runtime.Object{held, asked(wanted("odd"), count(2)),
			{deviceClass("odd", `device.driver == "gpu.nvidia.com" || false`)}}, "[w/a0 w/b0]"},
		{"two of any root", [][]runtime.Object{held, asked(count(2))}, "[w/a0 w/b0]"},
		{"two of one root", [][]runtime.Object{held, asked(count(2), constrained(resourcev1.DeviceConstraint{MatchAttribute: root}))},
			"[w/a0 w/a1]"},
		{"two of one root, of which one is free", [][]runtime.Object{mine,
			asked(count(2), constrained(resourcev1.DeviceConstraint{Requests: []string{"gpu"}, MatchAttribute: root}))}, "[w/b0]"},
		{"three of one root", [][]runtime.Object{held, asked(count(3), constrained(resourcev1.DeviceConstraint{MatchAttribute: root}))},
			"[]"},
		{"one root, for another request", [][]runtime.Object{held,
			asked(count(2), constrained(resourcev1.DeviceConstraint{Requests: []string{"other"}, MatchAttribute: root}))}, "[w/a0 w/b0]"},
		{"of roots that none of them has", [][]runtime.Object{held,
			asked(count(2), constrained(resourcev1.DeviceConstraint{MatchAttribute: ptr(resourcev1.FullyQualifiedName("x/root"))}))}, "[]"},
		{"a constraint that is not understood: what is free may not do",
			[][]runtime.Object{mine, asked(count(2), constrained(resourcev1.DeviceConstraint{DistinctAttribute: root}))}, "[w/a0 w/b0]"},
		{"all there are", [][]runtime.Object{mine, asked(all)}, "[w/a0 w/a1 w/b0]"},
		{"all there are, of which others have one", [][]runtime.Object{held, asked(all)}, "[]"},
		{"all that it means", [][]runtime.Object{held, asked(all, selects(`device.attributes["gpu.nvidia.com"].root == "a"`))},
			"[w/a0 w/a1]"},
		{"the first that a pool offers", [][]runtime.Object{held, asked(either(
			resourcev1.DeviceSubRequest{DeviceClassName: "other", Count: 1}, resourcev1.DeviceSubRequest{DeviceClassName: "gpu.nvidia.com",
				Count: 1}))}, "[w/a0]"},
		{"the first for which there is room", [][]runtime.Object{held, asked(either(
			resourcev1.DeviceSubRequest{DeviceClassName: "gpu.nvidia.com", Count: 4},
			resourcev1.DeviceSubRequest{DeviceClassName: "gpu.nvidia.com", Count: 2}))}, "[w/a0 w/b0]"},
		{"the first, though the second would cost less", [][]runtime.Object{held, asked(either(
			resourcev1.DeviceSubRequest{DeviceClassName: "gpu.nvidia.com", Count: 2},
			resourcev1.DeviceSubRequest{DeviceClassName: "gpu.nvidia.com", Count: 1}))}, "[w/a0 w/b0]"},
		{"the second of one root", [][]runtime.Object{held, asked(either(
			resourcev1.DeviceSubRequest{DeviceClassName: "gpu.nvidia.com", Count: 4},
			resourcev1.DeviceSubRequest{DeviceClassName: "gpu.nvidia.com", Count: 2}),
			constrained(resourcev1.DeviceConstraint{Requests: []string{"gpu/s1"}, MatchAttribute: root}))}, "[w/a0 w/a1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := fmt.Sprint(cutOf(t, wholes(), slices.Concat(c.objects...)...)); got != c.want {
				t.Errorf("cut are %s, want %s", got, c.want)
			}
		})
	}
}

// TestOneClaimOfSeveralPods has its devices once: for whichever of them is first.
func TestOneClaimOfSeveralPods(t *testing.T) {
	mine := slices.Concat([]runtime.Object{node("w"), board("w")}, filler("w", "a0", -time.Minute), filler("w", "b0", -2*time.Minute),
		filler("w", "a1", -3*time.Minute), filler("w", "b1", -4*time.Minute))
	shared := []runtime.Object{resourceClaim("a", "c", wanted("gpu.nvidia.com")), newPod("a", "p", "", claims("c"), unplaced),
		newPod("a", "q", "", claims("c"), unplaced), newPod("a", "r", "", claims("c"), unplaced)}
	if got := cutOf(t, wholes(), append(mine, shared...)...); !slices.Equal(got, []string{"w/a0"}) {
		t.Errorf("cut are %q", got)
	}
	// What one of them wants beside it has to be where that is.
	other := slices.Concat(mine, []runtime.Object{node("v"), board("v")}, filler("v", "a0", -time.Second), []runtime.Object{
		resourceClaim("a", "c", wanted("gpu.nvidia.com"), selects(`device.attributes["gpu.nvidia.com"].root == "b"`)),
		resourceClaim("a", "d", wanted("gpu.nvidia.com"), selects(`device.attributes["gpu.nvidia.com"].root == "a"`)),
		newPod("a", "p", "", claims("c"), unplaced, pinned("w")), newPod("a", "q", "", hasClaims("c", "d"), unplaced),
	})
	if got := cutOf(t, wholes(), other...); !slices.Equal(got, []string{"w/a0", "w/b0"}) {
		t.Errorf("cut are %q", got)
	}
}

// TestADeviceOfManyIsNotOffered: its driver lets several have a part of it each, and what is left of it nobody knows here.
func TestADeviceOfManyIsNotOffered(t *testing.T) {
	several := board("w", func(d *resourcev1.Device) {
		if d.Name == "a0" || d.Name == "b1" {
			d.AllowMultipleAllocations = ptr(true)
		}
	})
	x := sceneOf([]Pool{wholes()}, node("w"), several).evaluate(&stand{})
	if got, want := x.told(), "w/a1\nw/b0"; got != want {
		t.Errorf("it has\n%s\nwant\n%s", got, want)
	}
	if want := "devices of gpu.nvidia.com are for several at once"; x.leftOut[omission{wholes().Name, want}] != 2 || len(x.leftOut) != 1 {
		t.Errorf("left out are %v, want 2: %q", x.leftOut, want)
	}
}
