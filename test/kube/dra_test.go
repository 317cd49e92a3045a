//go:build kubernetes

package kube

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/test/kube/plane"
)

// claim makes a claim for one device of a class that the expressions (CEL) all hold for.
func claim(t *testing.T, p *plane.Plane, namespace, name, class string, expressions ...string) {
	t.Helper()
	exactly := &resourcev1.ExactDeviceRequest{DeviceClassName: class}
	for _, e := range expressions {
		exactly.Selectors = append(exactly.Selectors, resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: e}})
	}
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{Name: "slice",
			Exactly: exactly}}}}}
	if _, err := p.Client().ResourceV1().ResourceClaims(namespace).Create(context.Background(), c, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// with is a Pod with a claim; the Pod and the claim have one name.
func with(p *corev1.Pod) {
	name := p.Name
	p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "slice", ResourceClaimName: &name}}
	p.Spec.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "slice"}}
}

// pinned is a Pod that may run on one machine alone, by the scheduler's own decision: it is not bound by us.
func pinned(machine string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name",
					Operator: corev1.NodeSelectorOpIn, Values: []string{machine}}}}}}}}
	}
}

// has is a Pod that asks for one of an extended resource.
func has(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceName(name): one}
	}
}

func class(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = name }
}

// allocated is the device that a claim was given, as POOL/DEVICE; "" for none.
func allocated(t *testing.T, p *plane.Plane, namespace, name string) string {
	t.Helper()
	c, err := p.Client().ResourceV1().ResourceClaims(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Status.Allocation == nil {
		return ""
	}
	r := c.Status.Allocation.Devices.Results
	if len(r) != 1 {
		t.Fatalf("claim %s has %d devices: %+v", name, len(r), r)
	}
	return r[0].Pool + "/" + r[0].Device
}

// slot is CEL for the MIG device of a machine's GPU 0 that begins at a memory slice. It names what the driver says of the device, as no
// expression can name a device or its pool.
func slot(machine, profile string, at int) string {
	return fmt.Sprintf(
		`device.attributes["gpu.nvidia.com"].parentUUID == "GPU-%s-0" && device.attributes["gpu.nvidia.com"].profile == "%s" && "memorySlice%d" in device.capacity["gpu.nvidia.com"]`, machine, profile, at)
}

// priorities makes the class of leftovers, which preempts nobody and is below all, and one of the hosts' Pods.
func priorities(t *testing.T, p *plane.Plane) {
	t.Helper()
	never := corev1.PreemptNever
	for _, c := range []*schedulingv1.PriorityClass{
		{ObjectMeta: metav1.ObjectMeta{Name: "test-leftover"}, Value: -1_000_000, PreemptionPolicy: &never},
		{ObjectMeta: metav1.ObjectMeta{Name: "test-host"}, Value: 1_000_000},
	} {
		if _, err := p.Client().SchedulingV1().PriorityClasses().Create(context.Background(), c, metav1.CreateOptions{}); err != nil &&
			!apierrors.IsAlreadyExists(err) {
			t.Fatal(err)
		}
	}
}

// refused says that the scheduler has looked at a Pod and found no place, and why.
func refused(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return true
		}
	}
	return false
}

// TestAClaimGetsTheVeryDevice: one device is asked for by what its driver says of it, and that one is given, whichever order they are
// asked in.
func TestAClaimGetsTheVeryDevice(t *testing.T) {
	p := plane.Of(t)
	ns := p.Namespace(t)
	p.Classes(t)
	for _, m := range []string{"exact-1", "exact-2"} {
		p.Machine(t, m, nil)
		p.GPUs(t, m, 1)
	}
	for _, c := range []struct {
		name, machine string
		at            int
	}{{"five", "exact-2", 5}, {"zero", "exact-1", 0}, {"three", "exact-2", 3}, {"six", "exact-1", 6}} {
		claim(t, p, ns, c.name, plane.MIGClass, slot(c.machine, "1g.10gb", c.at))
		create(t, p, ns, filler(c.name, with, pinned(c.machine)))
		got := p.Pod(t, ns, c.name, "runs", plane.In(corev1.PodRunning))
		want := fmt.Sprintf("%s/gpu-0-mig-1g10gb-%d", c.machine, c.at)
		if a := allocated(t, p, ns, c.name); a != want || got.Spec.NodeName != c.machine {
			t.Errorf("%s runs on %s with %s, want %s", c.name, got.Spec.NodeName, a, want)
		}
	}
	// What shares counters with them waits: memory slices 3 and 5 of exact-2 are taken.
	claim(t, p, ns, "wide", plane.MIGClass, slot("exact-2", "3g.40gb", 4))
	create(t, p, ns, filler("wide", with, pinned("exact-2")))
	p.Pod(t, ns, "wide", "is refused", refused)
	// An expression that names the device or its pool is refused outright.
	for _, e := range []string{`device.name == "gpu-0"`, `device.pool == "exact-1"`} {
		bad := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: "bad"},
			Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{Requests: []resourcev1.DeviceRequest{{
				Name: "slice", Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: plane.MIGClass,
					Selectors: []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: e}}}}}}}}}
		if _, err := p.Client().ResourceV1().ResourceClaims(ns).Create(context.Background(), bad,
			metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want it refused: if it is not any more, a claim can name its device", e, err)
		}
	}
}

// TestNobodyIsPreemptedForADevice: the scheduler preempts a filler for an extended resource, and not for a device of DRA (KEP-5690): there
// a filler has to yield by itself.
func TestNobodyIsPreemptedForADevice(t *testing.T) {
	p, ctx := plane.Of(t), context.Background()
	ns := p.Namespace(t)
	priorities(t, p)
	p.Classes(t)

	p.Machine(t, "preempt-dra", nil)
	p.GPUs(t, "preempt-dra", 1)
	claim(t, p, ns, "filler-dra", plane.MIGClass, slot("preempt-dra", "7g.80gb", 0))
	create(t, p, ns, filler("filler-dra", with, class("test-leftover")))
	p.Pod(t, ns, "filler-dra", "runs", plane.In(corev1.PodRunning))
	claim(t, p, ns, "host-dra", plane.MIGClass, slot("preempt-dra", "1g.10gb", 0))
	create(t, p, ns, filler("host-dra", with, class("test-host")))
	p.Pod(t, ns, "host-dra", "is refused", refused)

	// The scheduler has time to preempt for both: the second begins when the first has been refused.
	p.Machine(t, "preempt-ext", map[string]int64{"nvidia.com/mig-1g.10gb": 1})
	create(t, p, ns, filler("filler-ext", has("nvidia.com/mig-1g.10gb"), class("test-leftover")))
	p.Pod(t, ns, "filler-ext", "runs", plane.In(corev1.PodRunning))
	create(t, p, ns, filler("host-ext", has("nvidia.com/mig-1g.10gb"), class("test-host")))
	p.Pod(t, ns, "host-ext", "runs in its place", plane.In(corev1.PodRunning))
	if _, err := p.Client().CoreV1().Pods(ns).Get(ctx, "filler-ext", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the filler that was preempted: %v, want it gone", err)
	}

	if got, err := p.Client().CoreV1().Pods(ns).Get(ctx, "filler-dra", metav1.GetOptions{}); err != nil || got.DeletionTimestamp != nil ||
		got.Status.Phase != corev1.PodRunning {
		t.Fatalf("the filler with the device: %v, %+v: Kubernetes preempts for devices now; giving back can be left to it", err, got.Status)
	}
	host, err := p.Client().CoreV1().Pods(ns).Get(ctx, "host-dra", metav1.GetOptions{})
	if err != nil || host.Status.NominatedNodeName != "" || !refused(host) {
		t.Fatalf("the host's Pod: %v, %+v, want it waiting", err, host.Status)
	}
	// Once the filler yields it is bound.
	if err := p.Client().CoreV1().Pods(ns).Delete(ctx, "filler-dra", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Pod(t, ns, "host-dra", "runs", plane.In(corev1.PodRunning))
	if a := allocated(t, p, ns, "host-dra"); !strings.HasSuffix(a, "1g10gb-0") {
		t.Errorf("the host has %s", a)
	}
}

// TestADevicesClaimIsFreedByTheEndNotTheDeletion: a device is free again once its Pod has a terminal phase, though a finalizer keeps the
// Pod.
func TestADevicesClaimIsFreedByTheEndNotTheDeletion(t *testing.T) {
	p := plane.Of(t)
	ns := p.Namespace(t)
	p.Classes(t)
	p.Machine(t, "freed", nil)
	p.GPUs(t, "freed", 1)
	keep := func(pod *corev1.Pod) { pod.Finalizers = []string{"test.dev/kept"} }
	claim(t, p, ns, "first", plane.MIGClass, slot("freed", "7g.80gb", 0))
	create(t, p, ns, filler("first", with, keep, seconds("1")))
	claim(t, p, ns, "second", plane.MIGClass, slot("freed", "7g.80gb", 0))
	create(t, p, ns, filler("second", with))
	p.Pod(t, ns, "second", "runs after the first", plane.In(corev1.PodRunning))
	first := p.Pod(t, ns, "first", "is kept", plane.In(corev1.PodSucceeded))
	first.Finalizers = nil
	if _, err := p.Client().CoreV1().Pods(ns).Update(context.Background(), first, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}
