//go:build kubernetes

package plane

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Annotations that say how a Pod on a machine of kwok goes on: seconds after its start at which it ends (whole ones; without it it runs until it is told to end),
// its exit code and its termination message.
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

// Namespace makes a namespace that goes with the test, with labels (pairs of key and value). Where the plane has Controllers it waits for the account that Pods there have.
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
	t.Cleanup(func() { _ = p.Client().CoreV1().Namespaces().Delete(ctx, made.Name, metav1.DeleteOptions{}) }) // the plane may be stopped, or ends anyway
	if p.has(Controllers) {
		Eventually(t, "the account of namespace "+made.Name, func() (bool, string) {
			_, err := p.Client().CoreV1().ServiceAccounts(made.Name).Get(ctx, "default", metav1.GetOptions{})
			return err == nil, fmt.Sprint(err)
		})
	}
	return made.Name
}

// Machine makes a machine of kwok with 64 CPUs, 512 GiB, room for 110 Pods and extended resources, such as {"nvidia.com/mig-1g.10gb": 7}, and returns once Pods
// can be bound to it. It goes with the test.
func (p *Plane) Machine(t testing.TB, name string, resources map[string]int64) {
	t.Helper()
	p.Machines(t, []string{name}, resources)
}

// Machines makes many at once.
func (p *Plane) Machines(t testing.TB, names []string, resources map[string]int64) {
	t.Helper()
	for _, name := range names {
		p.node(t, name, map[string]string{"type": "kwok"}, resources)
	}
	for _, name := range names {
		p.takesPods(t, name)
	}
}

// Host makes a machine as Machine does whose Pods are somebody else's to run: kwok leaves it alone. Until the test is over it looks alive, as its kubelet would
// have it.
func (p *Plane) Host(t testing.TB, name string, resources map[string]int64) {
	t.Helper()
	node := p.node(t, name, nil, resources)
	ctx, cancel := context.WithCancel(context.Background())
	var alive sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		alive.Wait()
	})
	ready := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","lastHeartbeatTime":%q,"lastTransitionTime":%[1]q}]}}`, time.Now().UTC().Format(time.RFC3339))
	if _, err := p.Client().CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(ready), metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	leases, seconds := p.Client().CoordinationV1().Leases("kube-node-lease"), int32(40)
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: &seconds, RenewTime: &metav1.MicroTime{Time: time.Now()}},
	}
	if _, err := leases.Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	alive.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(5 * time.Second):
			}
			renew := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, time.Now().UTC().Format(metav1.RFC3339Micro))
			_, _ = leases.Patch(ctx, name, types.MergePatchType, []byte(renew), metav1.PatchOptions{}) // the API server may be down: the next one counts
		}
	})
	p.takesPods(t, name)
}

// node makes a machine's object, which goes with the test.
func (p *Plane) node(t testing.TB, name string, labels map[string]string, resources map[string]int64) *corev1.Node {
	t.Helper()
	ctx := context.Background()
	room := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"), corev1.ResourcePods: resource.MustParse("110"),
		corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
	}
	for name, n := range resources {
		room[corev1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name}, Annotations: map[string]string{"node.alpha.kubernetes.io/ttl": "0"}},
		Status:     corev1.NodeStatus{Allocatable: room, Capacity: room},
	}
	maps.Copy(node.Labels, labels)
	nodes := p.Client().CoreV1().Nodes()
	made, err := nodes.Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.Delete(ctx, name, metav1.DeleteOptions{}) })
	return made
}

// takesPods waits until a machine is ready and has no taint.
func (p *Plane) takesPods(t testing.TB, name string) {
	t.Helper()
	Eventually(t, "machine "+name+" is ready", func() (bool, string) {
		n, err := p.Client().CoreV1().Nodes().Get(context.Background(), name, metav1.GetOptions{})
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
