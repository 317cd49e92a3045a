//go:build kubernetes

package plane

import (
	"context"
	"fmt"
	"strings"
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Driver is the DRA driver that GPU speaks for: what it publishes has the shape of what NVIDIA's publishes with dynamic MIG.
const Driver = "gpu.nvidia.com"

// MIGClass and GPUClass are the device classes that Classes makes.
const (
	MIGClass = "mig.nvidia.com"
	GPUClass = "gpu.nvidia.com"
)

// profile is a way to cut a GPU of 80 GiB: its name, GiB, and each place as the first and the last of 8 memory slices, which no two
// devices in use may share.
type profile struct {
	name   string
	gib    int64
	places [][2]int
}

var profiles = []profile{ //nolint:gochecknoglobals // read-only by use
	{"1g.10gb", 10, [][2]int{{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}}},
	{"3g.40gb", 40, [][2]int{{0, 3}, {4, 7}}},
	{"7g.80gb", 80, [][2]int{{0, 7}}},
}

// GPUs publishes n GPUs of a machine in a pool of its name: each whole (gpu-0), and as partitionable devices (gpu-0-mig-1g10gb-3: at
// memory slice 3) that share its counters. It goes with the test.
func (p *Plane) GPUs(t testing.TB, machine string, n int) {
	t.Helper()
	ctx := context.Background()
	slices := p.Client().ResourceV1().ResourceSlices()
	var counters []resourcev1.CounterSet
	var devices []resourcev1.Device
	for gpu := range n {
		set, cut := partitions(machine, gpu)
		counters, devices = append(counters, set), append(devices, cut...)
	}
	// Counters and devices may not be in one slice, and of devices that consume counters not more than 64.
	const most = 64
	total := int64(1 + (len(devices)+most-1)/most)
	publish := func(name string, change func(*resourcev1.ResourceSliceSpec)) {
		s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: machine + "-" + name}, Spec: resourcev1.ResourceSliceSpec{
			Driver: Driver, NodeName: &machine, Pool: resourcev1.ResourcePool{Name: machine, Generation: 1, ResourceSliceCount: total}}}
		change(&s.Spec)
		if _, err := slices.Create(ctx, s, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = slices.Delete(ctx, s.Name, metav1.DeleteOptions{}) })
	}
	publish("counters", func(s *resourcev1.ResourceSliceSpec) { s.SharedCounters = counters })
	for i := 0; i*most < len(devices); i++ {
		publish(fmt.Sprintf("devices-%d", i),
			func(s *resourcev1.ResourceSliceSpec) { s.Devices = devices[i*most : min(len(devices), (i+1)*most)] })
	}
}

// partitions are the counters of a GPU, and its devices.
func partitions(machine string, gpu int) (resourcev1.CounterSet, []resourcev1.Device) {
	name := fmt.Sprintf("gpu-%d", gpu)
	uuid := fmt.Sprintf("GPU-%s-%d", machine, gpu)
	set := resourcev1.CounterSet{Name: name + "-counters", Counters: map[string]resourcev1.Counter{}}
	one := resource.MustParse("1")
	text := func(s string) resourcev1.DeviceAttribute { return resourcev1.DeviceAttribute{StringValue: &s} }
	uses := func(from, to int) []resourcev1.DeviceCounterConsumption {
		c := map[string]resourcev1.Counter{}
		for i := from; i <= to; i++ {
			c[fmt.Sprintf("memory-slice-%d", i)] = resourcev1.Counter{Value: one}
		}
		return []resourcev1.DeviceCounterConsumption{{CounterSet: set.Name, Counters: c}}
	}
	for i := range 8 {
		set.Counters[fmt.Sprintf("memory-slice-%d", i)] = resourcev1.Counter{Value: one}
	}
	devices := []resourcev1.Device{{
		Name: name,
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{"type": text("gpu"), "uuid": text(uuid),
			"productName": text("NVIDIA H100 80GB HBM3")},
		Capacity:         map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: resource.MustParse("80Gi")}},
		ConsumesCounters: uses(0, 7),
	}}
	for _, f := range profiles {
		for _, place := range f.places {
			capacity := map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: *resource.NewQuantity(f.gib<<30,
				resource.BinarySI)}}
			for i := place[0]; i <= place[1]; i++ {
				capacity[resourcev1.QualifiedName(fmt.Sprintf("memorySlice%d", i))] = resourcev1.DeviceCapacity{Value: one}
			}
			devices = append(devices, resourcev1.Device{
				Name: fmt.Sprintf("%s-mig-%s-%d", name, strings.ReplaceAll(f.name, ".", ""), place[0]),
				Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
					"type": text("mig"), "profile": text(f.name), "parentUUID": text(uuid), "productName": text("NVIDIA H100 80GB HBM3")},
				Capacity:         capacity,
				ConsumesCounters: uses(place[0], place[1]),
			})
		}
	}
	return set, devices
}

// Classes makes the device classes of GPUs, MIGClass, MIG1Class and GPUClass; where they are there already it leaves them. They stay:
// classes are the cluster's.
func (p *Plane) Classes(t testing.TB) {
	t.Helper()
	has := func(key, value string) string {
		return fmt.Sprintf(` && %q in device.attributes[%q] && device.attributes[%[2]q].%[1]s == %[3]q`, key, Driver, value)
	}
	for class, is := range map[string]string{MIGClass: has("type", "mig"), GPUClass: has("type", "gpu"),
		MIG1Class: has("profile", "1g.10gb")} {
		_, err := p.Client().ResourceV1().DeviceClasses().Create(context.Background(), &resourcev1.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: class},
			Spec: resourcev1.DeviceClassSpec{Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{
				Expression: fmt.Sprintf(`device.driver == %q`, Driver) + is}}}},
		}, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}
