//go:build kubernetes

package kubernetes

import (
	"testing"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAClassSelectsItsDevices: a driver publishes whole GPUs beside what they can be cut into, and a pool names the class of the latter
// alone. Nothing is offered that the class rules out, since no claim could be given it; and the class may come, change and go.
func TestAClassSelectsItsDevices(t *testing.T) {
	parts := partitionable("w")
	whole := migDevice("7g.80gb", 0, 7, 80)
	whole.Name, whole.Attributes["type"] = "gpu-0", resourcev1.DeviceAttribute{StringValue: ptr("gpu")}
	parts[1].Spec.Devices = append(parts[1].Spec.Devices, whole)
	const name = "mig.nvidia.com"
	of := func(kind string) *resourcev1.DeviceClass {
		return deviceClass(name, `device.driver == "gpu.nvidia.com" && device.attributes["gpu.nvidia.com"].type == "`+kind+`"`)
	}
	c := serve(node("w"), parts[0], parts[1], of("mig"))
	o := options(c)
	o.Pools = []Pool{{Name: "dra", Classes: []Class{{Name: name, Driver: driver}}}}
	inv := opened(t, o)
	f := follow(t, inv)
	f.until(t, "w/gpu-0-mig-1g-0", "w/gpu-0-mig-1g-6", "w/gpu-0 gone")

	changed := of("gpu")
	changed.ResourceVersion = "2"
	check[*resourcev1.DeviceClass](t)(c.ResourceV1().DeviceClasses().Update(t.Context(), changed, metav1.UpdateOptions{}))
	f.until(t, "w/gpu-0", "w/gpu-0-mig-1g-0 gone")
	if err := inv.Offer(o.Pools); err != nil {
		t.Fatal(err)
	}
	check[*resourcev1.DeviceClass](t)(c.ResourceV1().DeviceClasses().Create(t.Context(), deviceClass("other"), metav1.CreateOptions{}))
	f.until(t, "w/gpu-0", "w/gpu-0-mig-1g-0 gone")
	if err := c.ResourceV1().DeviceClasses().Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Without its class nothing is known of what it means, and those that fit side by side are offered in order of name.
	f.until(t, "w/gpu-0", "w/gpu-0-mig-1g-0 gone")
}
