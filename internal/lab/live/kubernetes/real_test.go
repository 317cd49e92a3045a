//go:build kubernetes && linux

package kubernetes

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"sluice.dev/sluice/internal/lab/history/record"
	"sluice.dev/sluice/test/kube/plane"
)

func TestMain(m *testing.M) {
	os.Exit(plane.Run(m, plane.With(plane.Scheduler, plane.Controllers, plane.Kwok)))
}

// lookUntil looks until a look finds what is wanted, and returns all lines until then.
func lookUntil(t *testing.T, s *Source, all []record.Line, what string, is func([]record.Line) bool) []record.Line {
	t.Helper()
	plane.Eventually(t, what, func() (bool, string) {
		lines, keep, err := s.Look(t.Context(), time.Now(), false)
		if err != nil {
			return false, err.Error()
		}
		keep()
		all = append(all, lines...)
		return is(lines), ""
	})
	return all
}

// TestARealCluster is read with the role of the docs alone, and what it says of Pods and nodes is what was done.
func TestARealCluster(t *testing.T) {
	p := plane.Of(t)
	ctx, client := t.Context(), p.Client()
	ns := p.Namespace(t)
	p.Machine(t, "live-n", map[string]int64{"nvidia.com/gpu": 2})
	user := "watcher-" + ns
	config := p.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user}
	s, err := connect(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Look(ctx, time.Now(), true); err == nil || !strings.Contains(err.Error(), `cannot list resource "pods"`) ||
		!strings.Contains(err.Error(), "docs/forecast.md") {
		t.Fatalf("without a role: %v", err)
	}
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "nodes"}, Verbs: []string{"list", "watch"}}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: []rbacv1.PolicyRule{rule}}
	if _, err := client.RbacV1().ClusterRoles().Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bound := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName,
		Kind: "ClusterRole", Name: user}, Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}}}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(ctx, bound, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	all := lookUntil(t, s, nil, "the node", func(lines []record.Line) bool {
		return slices.ContainsFunc(lines, func(l record.Line) bool {
			return slices.ContainsFunc(l.Hosts, func(h record.Host) bool { return h.Name == "live-n" && h.Devices["nvidia.com/gpu"] == 2 })
		})
	})
	for name, note := range map[string]map[string]string{"ends": {plane.Seconds: "1"}, "goes": {}} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: note}, Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, NodeSelector: map[string]string{"kubernetes.io/hostname": "live-n"},
			Containers: []corev1.Container{{Name: "c", Image: "none", Resources: corev1.ResourceRequirements{Limits: gpus(1)}}}}}
		if _, err := client.CoreV1().Pods(ns).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	p.Pod(t, ns, "ends", "is over", plane.In(corev1.PodSucceeded))
	p.Pod(t, ns, "goes", "runs", plane.In(corev1.PodRunning))
	none := int64(0)
	if err := client.CoreV1().Pods(ns).Delete(ctx, "goes", metav1.DeleteOptions{GracePeriodSeconds: &none}); err != nil {
		t.Fatal(err)
	}
	all = lookUntil(t, s, all, "the Pod that is gone", func(lines []record.Line) bool {
		return slices.ContainsFunc(lines, func(l record.Line) bool { return len(l.Left) > 0 })
	})
	all = lookUntil(t, s, all, "the Pod that is over", func([]record.Line) bool {
		return slices.ContainsFunc(podsOf(all), func(p record.Pod) bool { return p.Phase != "" })
	})
	last := map[string]record.Pod{}
	for _, p := range podsOf(all) {
		last[p.Name] = p
	}
	for name, pod := range last {
		if pod.Node != "live-n" || pod.Scheduled < pod.Created || pod.Scheduled == 0 || pod.Devices["nvidia.com/gpu"] != 1 ||
			name == "ends" && (pod.Phase != "Succeeded" || pod.Ended < pod.Scheduled) {
			t.Errorf("%+v", pod)
		}
	}
	if len(last) != 2 {
		t.Errorf("Pods %v", last)
	}
	node, err := client.CoreV1().Nodes().Get(ctx, "live-n", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	node.Spec.Unschedulable = true
	if _, err := client.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	lookUntil(t, s, nil, "the cordoned node", func(lines []record.Line) bool {
		return slices.ContainsFunc(lines, func(l record.Line) bool {
			return slices.ContainsFunc(l.Hosts, func(h record.Host) bool { return h.Name == "live-n" && h.Unschedulable })
		})
	})
}
