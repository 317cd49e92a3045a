//go:build kubernetes

package kubernetes

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/cluster"
)

// Objects as drivers, device plugins and people make them.

const driver = "gpu.nvidia.com"

var t0 = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) quantity.Instant { return quantity.At(t0.Add(d)) }

func ptr[T any](v T) *T { return &v }

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + namespace + "-" + name), ResourceVersion: "1"}
}

func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: meta("", name)}
	n.Labels = map[string]string{"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB", "nvidia.com/gpu.memory": "81920"}
	n.Status.Allocatable = corev1.ResourceList{}
	for _, f := range change {
		f(n)
	}
	return n
}

func has(name string, n int64) func(*corev1.Node) {
	return func(o *corev1.Node) {
		o.Status.Allocatable[corev1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
}

func newPod(namespace, name, machine string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(namespace, name)}
	p.Spec.NodeName, p.Spec.Containers = machine, []corev1.Container{{Name: "main"}}
	if machine != "" {
		p.Status.StartTime = &metav1.Time{Time: t0}
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func asks(name string, n int64) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(name): *resource.NewQuantity(n, resource.DecimalSI)}
	}
}

func lasts(d time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr(int64(d / time.Second)) }
}

func of(kind, name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: name, UID: types.UID("uid-" + p.Namespace + "-" + name),
			Controller: ptr(true)}}
	}
}

func claims(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: ptr(name)}}
	}
}

func ours(slice string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Labels, p.Annotations = map[string]string{cluster.LabelOperator: "op"}, map[string]string{cluster.AnnotationSlice: "op/" + slice}
	}
}

func resourceClaim(namespace, name string, change ...func(*resourcev1.ResourceClaim)) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: meta(namespace, name)}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Name: "gpu",
		Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: "mig.nvidia.com", Count: 1}}}
	for _, f := range change {
		f(c)
	}
	return c
}

func allocated(machine, device string, pods ...string) func(*resourcev1.ResourceClaim) {
	return func(c *resourcev1.ResourceClaim) {
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{
				{Request: "gpu", Driver: driver, Pool: machine, Device: device},
			}}}
		for _, p := range pods {
			c.Status.ReservedFor = append(c.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: p})
		}
	}
}

func ourClaim(c *resourcev1.ResourceClaim) {
	c.Labels = map[string]string{cluster.LabelOperator: "op"}
}

// migDevice is one as NVIDIA's driver publishes it: it takes memory slices from at on.
func migDevice(profile string, at, size int, gib int64) resourcev1.Device {
	uses := map[string]resourcev1.Counter{}
	for k := range size {
		uses["memory-slice-"+strconv.Itoa(at+k)] = resourcev1.Counter{Value: resource.MustParse("1")}
	}
	return resourcev1.Device{
		Name: fmt.Sprintf("gpu-0-mig-%s-%d", profile[:2], at),
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": {StringValue: ptr("mig")}, driver + "/profile": {StringValue: ptr(profile)},
			"productName": {StringValue: ptr("NVIDIA A100-SXM4-80GB")},
			"uuid":        {StringValue: ptr("MIG-not-kept")},
		},
		Capacity: map[resourcev1.QualifiedName]resourcev1.DeviceCapacity{"memory": {Value: *resource.NewQuantity(gib<<30,
			resource.BinarySI)}},
		ConsumesCounters: []resourcev1.DeviceCounterConsumption{{CounterSet: "gpu-0", Counters: uses}},
	}
}

// partitionable is a GPU of seven memory slices that can be cut as it is asked for: seven of one, two of three, one of all.
func partitionable(machine string) []*resourcev1.ResourceSlice {
	sets, devices := &resourcev1.ResourceSlice{ObjectMeta: meta("", machine+"-counters")},
		&resourcev1.ResourceSlice{ObjectMeta: meta("", machine+"-devices")}
	counters := map[string]resourcev1.Counter{}
	for k := range 7 {
		counters["memory-slice-"+strconv.Itoa(k)] = resourcev1.Counter{Value: resource.MustParse("1")}
		devices.Spec.Devices = append(devices.Spec.Devices, migDevice("1g.10gb", k, 1, 10))
	}
	devices.Spec.Devices = append(devices.Spec.Devices, migDevice("3g.40gb", 0, 3, 40), migDevice("3g.40gb", 3, 3, 40),
		migDevice("7g.80gb", 0, 7, 80))
	sets.Spec.SharedCounters = []resourcev1.CounterSet{{Name: "gpu-0", Counters: counters}}
	for _, s := range []*resourcev1.ResourceSlice{sets, devices} {
		s.Spec.Driver, s.Spec.NodeName, s.Spec.Pool = driver, ptr(machine), resourcev1.ResourcePool{Name: machine, Generation: 1,
			ResourceSliceCount: 2}
	}
	return []*resourcev1.ResourceSlice{sets, devices}
}

// mig is a pool of MIG devices of a profile; empty: of any.
func migs(profiles ...string) Pool {
	p := Pool{Name: "mig"}
	for _, name := range profiles {
		p.Classes = append(p.Classes, Class{Name: "mig.nvidia.com", Driver: driver,
			Attributes: map[string]string{"type": "mig", "profile": name}})
	}
	return p
}

// small is a pool of an extended resource.
func small() Pool {
	return Pool{Name: "small", Resources: []Resource{{Name: "nvidia.com/mig-1g.10gb"}}}
}
