//go:build kubernetes && machine

package machine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/test/kube/plane"
)

// hostWaits is how many hosts' Pods come in each way.
const hostWaits = 6

// hostsWait logs what a host's Pod waits for a device that a subjob holds, until it runs under the real kubelet, and the same where a bare
// Pod of low priority holds it, in turn. Both end as soon as their program is told.
func hostsWait(t *testing.T, p *plane.Plane, namespace string) {
	const bareClass = "bare"
	ctx, pods := t.Context(), p.Client().CoreV1().Pods(namespace)
	_, err := p.Client().SchedulingV1().PriorityClasses().Create(ctx, &schedulingv1.PriorityClass{
		ObjectMeta: metav1.ObjectMeta{Name: bareClass}, Value: -1000}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = p.Kubectl("delete", "priorityclass", bareClass) })
	kubectl := func(stdin string, args ...string) {
		t.Helper()
		if out, err := p.KubectlWith(stdin, append([]string{"-n", namespace}, args...)...); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	// hold waits until as many Pods run there as there are devices.
	hold := func(what string) {
		t.Helper()
		plane.Eventually(t, "both devices are held by "+what, func() (bool, string) {
			list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
			if err != nil {
				return false, err.Error()
			}
			return len(list.Items) == 2, fmt.Sprint(len(list.Items))
		})
	}
	create := func(name, class, way string) time.Time {
		t.Helper()
		made := time.Now()
		if _, err := pods.Create(ctx, smallest(name, class, way), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		return made
	}
	// host is how long a host's Pod waits until a watch shows that it runs, and is gone thereafter.
	host := func(name string) time.Duration {
		t.Helper()
		seen, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		if err != nil {
			t.Fatal(err)
		}
		defer seen.Stop()
		made, late := create(name, "", "pause"), time.After(2*time.Minute)
		for {
			select {
			case e := <-seen.ResultChan():
				if pod, is := e.Object.(*corev1.Pod); is && pod.Status.Phase == corev1.PodRunning {
					took := time.Since(made).Round(10 * time.Millisecond)
					kubectl("", "delete", "pod", name, "--timeout=60s")
					return took
				}
			case <-late:
				t.Fatalf("%s does not run", name)
			}
		}
	}
	waits := map[string][]time.Duration{}
	for i := range hostWaits {
		for j := range 2 {
			create(fmt.Sprintf("bare-%d-%d", i, j), bareClass, "pause")
		}
		hold("bare Pods")
		waits["bare"] = append(waits["bare"], host(fmt.Sprintf("host-%d", i)))
		kubectl("", "delete", "pods", "-l", "bare=yes", "--timeout=60s")

		kubectl(fmt.Sprintf("apiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: filler-%d}\nspec:\n  items: {total: 1000, "+
			"perItem: 60s, parallelism: 2}\n  memory: 64Mi\n  image: %s\n  command: [/program, polite]\n", i, programImage),
			"apply", "-f", "-")
		hold("subjobs")
		waits["subjobs"] = append(waits["subjobs"], host(fmt.Sprintf("host-of-%d", i)))
		kubectl("", "delete", "jobs.sluice.dev", fmt.Sprintf("filler-%d", i), "--timeout=60s")
		plane.Eventually(t, "its Pods are gone", func() (bool, string) {
			list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: "status.phase=Running"})
			return err == nil && len(list.Items) == 0, fmt.Sprint(err)
		})
	}
	var b strings.Builder
	for _, beside := range []string{"bare", "subjobs"} {
		slices.Sort(waits[beside])
		fmt.Fprintf(&b, "\n%s: %v", beside, waits[beside])
	}
	t.Logf("a host's Pod waits for a device beside%s", b.String())
}

// smallest is a Pod with one device.
func smallest(name, class, way string) *corev1.Pod {
	yes, no, user := true, false, int64(1000)
	labels := map[string]string{}
	if class != "" {
		labels["bare"] = "yes"
	}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Spec: corev1.PodSpec{
		PriorityClassName: class, RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no,
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name: "main", Image: programImage, ImagePullPolicy: corev1.PullNever, Command: []string{"/program", way},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no,
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{mig: resource.MustParse("1")}},
		}},
	}}
}
