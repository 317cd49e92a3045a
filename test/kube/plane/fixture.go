//go:build kubernetes

package plane

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations that say how a Pod on a machine of kwok goes on: seconds after its start at which it ends (whole ones; without it it runs
// until it is told to end), its exit code and its termination message.
const (
	Seconds = "plane.test/seconds"
	Exit    = "plane.test/exit"
	Message = "plane.test/message"
)

// Within is how long a test waits for something that has to come, however loaded the machine is.
const Within = 2 * time.Minute

// Eventually asks until is says true, and fails the test when it has not Within. What it says then, besides, is in the failure.
func Eventually(t testing.TB, what string, is func() (bool, string)) {
	t.Helper()
	began := time.Now()
	for {
		yes, said := is()
		if yes {
			return
		}
		if time.Since(began) > Within {
			t.Fatalf("not within %s: %s; last: %s", Within, what, said)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Namespace makes a namespace that goes with the test, with labels (pairs of key and value). Where the plane has Controllers it waits for
// the account that Pods there have.
func (p *Plane) Namespace(t testing.TB, labels ...string) string {
	t.Helper()
	ctx := context.Background()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-", Labels: map[string]string{}}}
	for i := 0; i+1 < len(labels); i += 2 {
		ns.Labels[labels[i]] = labels[i+1]
	}
	made, err := p.Client().CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	// the plane may be stopped, or ends anyway
	t.Cleanup(func() { _ = p.Client().CoreV1().Namespaces().Delete(ctx, made.Name, metav1.DeleteOptions{}) })
	if p.has(Controllers) {
		Eventually(t, "the account of namespace "+made.Name, func() (bool, string) {
			_, err := p.Client().CoreV1().ServiceAccounts(made.Name).Get(ctx, "default", metav1.GetOptions{})
			return err == nil, fmt.Sprint(err)
		})
	}
	return made.Name
}

// Machine makes a machine of kwok with 64 CPUs, 512 GiB, room for 110 Pods and extended resources, such as {"nvidia.com/mig-1g.10gb": 7},
// and returns once Pods can be bound to it. It goes with the test.
func (p *Plane) Machine(t testing.TB, name string, resources map[string]int64) {
	t.Helper()
	p.Machines(t, []string{name}, resources)
}

// Machines makes many at once.
func (p *Plane) Machines(t testing.TB, names []string, resources map[string]int64) {
	t.Helper()
	ctx := context.Background()
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods:             resource.MustParse("110"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	for name, n := range resources {
		room[corev1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	nodes := p.Client().CoreV1().Nodes()
	for _, name := range names {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"type": "kwok", "kubernetes.io/hostname": name},
				Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": "0"}},
			Status: corev1.NodeStatus{Allocatable: room, Capacity: room},
		}
		if _, err := nodes.Create(ctx, node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nodes.Delete(ctx, name, metav1.DeleteOptions{}) })
	}
	for _, name := range names {
		Eventually(t, "machine "+name+" is ready", func() (bool, string) {
			n, err := nodes.Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return false, err.Error()
			}
			for _, c := range n.Status.Conditions {
				if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue && len(n.Spec.Taints) == 0 {
					return true, ""
				}
			}
			return false, fmt.Sprintf("conditions %v, taints %v", n.Status.Conditions, n.Spec.Taints)
		})
	}
}

// Pod waits until a Pod is as is wants, and returns it.
func (p *Plane) Pod(t testing.TB, namespace, name, what string, is func(*corev1.Pod) bool) *corev1.Pod {
	t.Helper()
	var pod *corev1.Pod
	Eventually(t, fmt.Sprintf("Pod %s/%s %s", namespace, name, what), func() (bool, string) {
		got, err := p.Client().CoreV1().Pods(namespace).Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			return false, err.Error()
		}
		pod = got
		return is(got), fmt.Sprintf("on %q: %+v", got.Spec.NodeName, got.Status)
	})
	return pod
}

// In is for Pod: it is in a phase.
func In(phase corev1.PodPhase) func(*corev1.Pod) bool {
	return func(p *corev1.Pod) bool { return p.Status.Phase == phase }
}
