//go:build kubernetes

package slices

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/test/kube/plane"
)

// said waits until this and no more is said of a slice's GPU; empty: it is well.
func (w *world) said(what, slice, want string) {
	w.Helper()
	plane.Eventually(w, what, func() (bool, string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		got := ""
		for _, s := range w.sick[job.SliceID(w.machine+"/"+slice)] {
			got += s.Cause.String() + " " + s.Text
		}
		return got == want, fmt.Sprintf("%s is %q, want %q", slice, got, want)
	})
}

// TestAGPUThatFails by the word of its driver, of a person and of its machine, while a subjob of ours runs there: each is heard, and is
// over when it is taken back. The cluster does with the Pod what we think that it does.
func TestAGPUThatFails(t *testing.T) {
	w, ctx := watching(t, "sick", "3g.40gb"), context.Background()
	const slice = "gpu-0-mig-3g40gb-0"
	w.pod("ours", "3g.40gb", 0, slice)
	w.Pod(t, w.ns, "ours", "runs", plane.In(corev1.PodRunning))
	w.said("nothing is wrong", slice, "")

	list, err := w.Client().ResourceV1().ResourceSlices().List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	taint := func(taints ...resourcev1.DeviceTaint) {
		t.Helper()
		for _, s := range list.Items {
			for i, d := range s.Spec.Devices {
				if s.Spec.Pool.Name != w.machine || d.Name != slice {
					continue
				}
				now, err := w.Client().ResourceV1().ResourceSlices().Get(ctx, s.Name, metav1.GetOptions{})
				if err != nil {
					t.Fatal(err)
				}
				now.Spec.Devices[i].Taints = taints
				if now, err = w.Client().ResourceV1().ResourceSlices().Update(ctx, now, metav1.UpdateOptions{}); err != nil {
					t.Fatal(err)
				}
				if len(now.Spec.Devices[i].Taints) != len(taints) {
					t.Fatalf("the API server has dropped the taint: %+v", now.Spec.Devices[i])
				}
			}
		}
	}
	taint(resourcev1.DeviceTaint{Key: "gpu.nvidia.com/xid", Value: "63", Effect: resourcev1.DeviceTaintEffectNoSchedule})
	w.said("its driver keeps new work away", slice, "closed device taint gpu.nvidia.com/xid=63")
	w.said("the other instance is well", "gpu-0-mig-3g40gb-4", "")
	taint()
	w.said("it is taken back", slice, "")

	condition := func(status corev1.ConditionStatus) {
		t.Helper()
		patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"AcceleratedHardwareReady","status":%q,"reason":"NvidiaXID79Error"}]}}`,
			status)
		if _, err := w.Client().CoreV1().Nodes().Patch(ctx, w.machine, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{},
			"status"); err != nil {
			t.Fatal(err)
		}
	}
	condition(corev1.ConditionFalse)
	w.said("its machine says that its GPUs are broken", slice, "closed node condition AcceleratedHardwareReady is False (NvidiaXID79Error)")
	condition(corev1.ConditionTrue)
	w.said("they are well again", slice, "")

	rule := &resourcev1beta2.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: "sick-gpu"}, Spec: resourcev1beta2.DeviceTaintRuleSpec{
		DeviceSelector: &resourcev1beta2.DeviceTaintSelector{Driver: new(plane.Driver), Pool: new(w.machine), Device: new(slice)},
		Taint:          resourcev1beta2.DeviceTaint{Key: "example.com/sick", Effect: resourcev1beta2.DeviceTaintEffectNoExecute},
	}}
	if _, err := w.Client().ResourceV1beta2().DeviceTaintRules().Create(ctx, rule, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.said("a person has it emptied", slice, "evicted device taint example.com/sick of DeviceTaintRule sick-gpu")
	plane.Eventually(t, "the cluster evicts what runs there", func() (bool, string) {
		p, err := w.Client().CoreV1().Pods(w.ns).Get(ctx, "ours", metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && p.DeletionTimestamp != nil, fmt.Sprintf("%+v, %v", p.Status.Phase, err)
	})
	if err := w.Client().ResourceV1beta2().DeviceTaintRules().Delete(ctx, rule.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.said("it is taken back", slice, "")
}
