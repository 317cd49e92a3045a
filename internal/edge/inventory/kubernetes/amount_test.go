//go:build kubernetes

package kubernetes

import (
	"fmt"
	"slices"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"
)

// fractioned is a pool with one counter of which each device takes some.
func fractioned(total string, each ...string) []*resourcev1.ResourceSlice {
	counters := func(n string) map[string]resourcev1.Counter {
		return map[string]resourcev1.Counter{"cores": {Value: resource.MustParse(n)}}
	}
	sets, devices := &resourcev1.ResourceSlice{ObjectMeta: meta("", "w-counters")},
		&resourcev1.ResourceSlice{ObjectMeta: meta("", "w-devices")}
	sets.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "gpu", Counters: counters(total)}}
	for i, n := range each {
		devices.Spec.Devices = append(devices.Spec.Devices, resourcev1.Device{
			Name:             fmt.Sprintf("d%d", i),
			Capacity:         map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("1Gi")}},
			ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu", Counters: counters(n)}},
		})
	}
	for _, s := range []*resourcev1.ResourceSlice{sets, devices} {
		s.Spec.Driver, s.Spec.NodeName, s.Spec.Pool = driver, ptr("w"), resourcev1.ResourcePool{Name: "w", Generation: 1,
			ResourceSliceCount: 2}
	}
	return []*resourcev1.ResourceSlice{sets, devices}
}

func anyOf() []Pool { return []Pool{{Name: "p", Classes: []Class{{Name: "c", Driver: driver}}}} }

// Kubernetes adds counters with their fractions.
func TestFractionsOfCounters(t *testing.T) {
	for _, c := range []struct {
		total string
		each  []string
		want  int
	}{
		{"1500m", []string{"1", "1"}, 1},
		{"1500m", []string{"500m", "500m", "500m", "500m"}, 3},
		{"1.5", []string{"750m", "0.75", "1m"}, 2},
		{"1", []string{"333333333n", "333333333n", "333333333n", "2n"}, 3},
		{"1", []string{"333333333n", "333333333n", "333333333n", "1n"}, 4},
		{"2", []string{"1", "1", "1"}, 2},
		// Too large for billionths of it: what is taken is rounded up, never down.
		{"80Gi", []string{"40Gi", "42949672960000000001n", "1n"}, 2},
		{"10Gi", []string{"5Gi", "5368709119999999999n", "1n"}, 2},
		{"9223372036854775807", []string{"9223372036854775807", "500m"}, 1},
	} {
		x := sceneOf(anyOf(), node("w"), fractioned(c.total, c.each...)).evaluate(&stand{})
		if len(x.slices) != c.want {
			t.Errorf("%v of %s: %d are offered, want %d", c.each, c.total, len(x.slices), c.want)
		}
	}
}

// TestFractionsAddUpAsInKubernetes: whatever the fractions, a set of devices fits for us exactly where it fits with Kubernetes' own
// arithmetic.
func TestFractionsAddUpAsInKubernetes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := func(label string) string {
			return fmt.Sprintf("%d%s", rapid.IntRange(0, 2000).Draw(t, label),
				rapid.SampledFrom([]string{"", "m", "u", "n", "Ki", "k"}).Draw(t, label+"'s unit"))
		}
		total, each := text("total"), make([]string, rapid.IntRange(1, 5).Draw(t, "devices"))
		for i := range each {
			each[i] = text("use")
		}
		s := sceneOf(anyOf(), node("w"), fractioned(total, each...))
		list, broken := gather(s.resourceSlices, nil)
		if len(list) != 1 || len(broken) > 0 {
			t.Fatalf("%+v, %+v", list, broken)
		}
		left, exact := counters{}, resource.MustParse(total)
		for k, n := range list[0].total {
			left[k] = n
		}
		for i := range list[0].devices {
			d, use := &list[0].devices[i], resource.MustParse(each[i])
			if got, want := left.bear(d.uses), exact.Cmp(use) >= 0; got != want {
				t.Fatalf("%s of %s: %v, where %s is left of %s: %v", each[i], total, got, exact.String(), total, want)
			}
			left.add(d.uses, -1)
			exact.Sub(use)
		}
	})
}

// A pool of which Kubernetes allocates nothing is not offered, and it is said: a claim would wait for ever.
func TestAPoolThatContradictsItself(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func([]*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice
		want   string
	}{
		{"more slices than announced", func(list []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
			more := list[1].DeepCopy()
			more.Name, more.Spec.Devices[0].Name, more.Spec.Devices = "w-more", "extra", more.Spec.Devices[:1]
			return append(list, more)
		}, "has more ResourceSlices than it announces"},
		{"a device twice", func(list []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
			list[1].Spec.Devices[1].Name = list[1].Spec.Devices[0].Name
			return list
		}, "has two devices of one name"},
		{"a counter set twice", func(list []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
			again := list[0].DeepCopy()
			again.Name = "w-again"
			for _, s := range append(list, again) {
				s.Spec.Pool.ResourceSliceCount = 3
			}
			return append(list, again)
		}, "names counters twice"},
		{"a counter that is not there", func(list []*resourcev1.ResourceSlice) []*resourcev1.ResourceSlice {
			list[1].Spec.Devices[0].ConsumesCounters[0].CounterSet = "other"
			return list
		}, "has devices that use counters that are not there"},
	} {
		before := sceneOf(anyOf(), node("w"), fractioned("2", "1", "1")).evaluate(&stand{})
		x := sceneOf(anyOf(), node("w"), c.change(fractioned("2", "1", "1"))).evaluate(before)
		want := "the pool w of gpu.nvidia.com " + c.want + ", and Kubernetes allocates nothing of it"
		if n := x.leftOut[omission{"p", want}]; len(before.slices) != 2 || len(x.slices) > 0 || n < 2 || len(x.leftOut) != 1 {
			t.Errorf("%s: %d slices of %d are offered, left out %v; want %q", c.name, len(x.slices), len(before.slices), x.leftOut, want)
		}
	}
	// Fewer than announced are on their way: it is what it was.
	before := sceneOf(anyOf(), node("w"), fractioned("2", "1", "1")).evaluate(&stand{})
	late := fractioned("2", "1")
	for _, s := range late {
		s.Spec.Pool.Generation, s.Spec.Pool.ResourceSliceCount = 2, 3
	}
	if x := sceneOf(anyOf(), node("w"), late).evaluate(before); !slices.Equal(x.slices, before.slices) {
		t.Errorf("while parts are missing there are\n%s", x.told())
	}
}
