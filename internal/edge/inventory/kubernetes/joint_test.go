//go:build kubernetes

package kubernetes

import (
	"fmt"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"

	"sluice.dev/sluice/internal/edge/inventory"
)

// eight is what eight GPUs of a machine can be cut into, in one pool.
func eight(machine string) []*resourcev1.ResourceSlice {
	one := partitionable(machine)
	sets, devices := one[0].DeepCopy(), one[1].DeepCopy()
	sets.Spec.SharedCounters, devices.Spec.Devices = nil, nil
	for gpu := range 8 {
		name := fmt.Sprint("gpu-", gpu)
		set := *one[0].Spec.SharedCounters[0].DeepCopy()
		set.Name = name
		sets.Spec.SharedCounters = append(sets.Spec.SharedCounters, set)
		for i := range one[1].Spec.Devices {
			d := *one[1].Spec.Devices[i].DeepCopy()
			d.Name, d.ConsumesCounters[0].CounterSet = name+d.Name[len("gpu-0"):], name
			devices.Spec.Devices = append(devices.Spec.Devices, d)
		}
	}
	return []*resourcev1.ResourceSlice{sets, devices}
}

// BenchmarkAPlaceAmongEightGPUs looks for several large devices on 128 machines with eight GPUs each, all of whose small ones have subjobs
// of ours.
func BenchmarkAPlaceAmongEightGPUs(b *testing.B) {
	for _, n := range []int64{1, 2, 8} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			o := options(serve())
			o.Pools = []Pool{migs("1g.10gb")}
			inv := opened(b, o)
			if err := inv.Close(); err != nil { // its sources are filled by hand
				b.Fatal(err)
			}
			for i := range 128 {
				name := fmt.Sprintf("machine-%03d", i)
				inv.hears(b, inv.nodes, node(name))
				for _, s := range eight(name) {
					inv.hears(b, inv.offers, s)
				}
				for k := range 56 {
					device, own := fmt.Sprintf("gpu-%d-mig-1g-%d", k/7, k%7), fmt.Sprintf("p-%s-%d", name, k)
					inv.hears(b, inv.claims, resourceClaim("a", own, ourClaim, allocated(name, device, own)))
					inv.hears(b, inv.pods, pod("a", own, name, claims(own), began(-time.Duration(k*k%57)*time.Minute), lasts(time.Hour),
						ours(name+"/"+device)))
				}
				inv.touch(name)
			}
			inv.look(nil)
			inv.hears(b, inv.classes, deviceClass("mig.nvidia.com", `device.driver == "gpu.nvidia.com"`))
			inv.hears(b, inv.claims, resourceClaim("a", "c", selects(`device.attributes["gpu.nvidia.com"].profile == "3g.40gb"`),
				func(c *resourcev1.ResourceClaim) { c.Spec.Devices.Requests[0].Exactly.Count = n }))
			inv.hears(b, inv.pods, pod("a", "p", "", claims("c"), unplaced))
			for b.Loop() {
				inv.reclaims = newReclaims()
				inv.look(func(inventory.Sighting) {})
				if len(inv.reclaims.by) != 1 {
					b.Fatal("there is no place")
				}
			}
		})
	}
}
