//go:build kubernetes

package measure

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/test/kube/plane"
)

// fillWithJobs fills every device with Pods of a low-priority Job, as one does who has nothing but Kubernetes; each runs for some seconds.
// It returns when all devices are taken.
func (w *world) fillWithJobs(seconds int) { w.fillWith(seconds, nil, nil) }

// fillWithSlowJobs is the same with Pods that take as long as a subjob's program to end once they are told: a crowd is their kubelet.
func (w *world) fillWithSlowJobs(reaction time.Duration) {
	w.t.Helper()
	newCrowd(w.t, w.p.Client(), time.Second, reaction)
	w.fillWith(3600, map[string]string{cluster.LabelOperator: "none"},
		map[string]string{cluster.AnnotationRun: `{"Range":{"From":0,"To":1000000000}}`})
}

func (w *world) fillWith(seconds int, labels, annotations map[string]string) {
	t, ctx := w.t, context.Background()
	t.Helper()
	w.template(w.namespace)
	said := map[string]string{plane.Seconds: strconv.Itoa(seconds)}
	maps.Copy(said, annotations)
	devices := int32(w.device.pieces * len(w.machines)) //nolint:gosec // some thousands
	backoff, ends := int32(1<<30), devices              // who is preempted has failed
	if len(labels) > 0 {
		ends = 1 << 30 // or has succeeded, and another is to come
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "filler"}, Spec: batchv1.JobSpec{
		Parallelism: &devices, Completions: &ends, BackoffLimit: &backoff,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: said}, Spec: w.spec(leftoverClass)},
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
		return n >= int(devices), fmt.Sprintf("%d of %d run", n, devices)
	})
}
