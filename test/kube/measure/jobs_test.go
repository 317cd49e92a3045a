//go:build kubernetes

package measure

import (
	"context"
	"fmt"
	"strconv"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/test/kube/plane"
)

// fillWithJobs fills every device with Pods of a low-priority Job, as one does who has nothing but Kubernetes; each runs for some seconds.
// It returns when all devices are taken.
func (w *world) fillWithJobs(seconds int) {
	t, ctx := w.t, context.Background()
	t.Helper()
	w.template(w.namespace)
	devices := int32(w.device.pieces * len(w.machines)) //nolint:gosec // some thousands
	backoff := int32(1 << 30)                           // who is preempted has failed
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "filler"}, Spec: batchv1.JobSpec{
		Parallelism: &devices, Completions: &devices, BackoffLimit: &backoff,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{plane.Seconds: strconv.Itoa(
			seconds)}}, Spec: w.spec(leftoverClass)},
	}}
	if _, err := w.p.Client().BatchV1().Jobs(w.namespace).Create(ctx, job, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	plane.Eventually(t, "all devices are taken", func() (bool, string) {
		pods, err := w.p.Client().CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
		if err != nil {
			return false, err.Error()
		}
		n := 0
		for i := range pods.Items {
			if pods.Items[i].Status.Phase == corev1.PodRunning {
				n++
			}
		}
		return n == int(devices), fmt.Sprintf("%d of %d run", n, devices)
	})
}
