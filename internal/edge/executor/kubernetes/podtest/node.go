//go:build kubernetes

package podtest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// register makes the machine of the kubelet; it goes with the test.
func (k *Kubelet) register(t testing.TB) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.o.Node, Labels: map[string]string{corev1.LabelHostname: k.o.Node}}}
	nodes := k.o.Client.CoreV1().Nodes()
	if _, err := nodes.Create(context.Background(), n, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nodes.Delete(context.Background(), k.o.Node, metav1.DeleteOptions{}) })
}

// beat says that the machine is ready, again and again, unless it is silent.
func (k *Kubelet) beat(ctx context.Context) {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"), corev1.ResourcePods: resource.MustParse("110")}
	for name, n := range k.o.Resources {
		room[corev1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	for ctx.Err() == nil {
		now := metav1.Now()
		status := corev1.NodeStatus{Allocatable: room, Capacity: room, Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now},
		}, Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}, DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: k.port}}}
		data, err := json.Marshal(map[string]any{"status": status})
		if err != nil {
			panic(err)
		}
		if !k.isSilent() {
			_, _ = k.o.Client.CoreV1().Nodes().Patch(ctx, k.o.Node, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
		}
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
		}
	}
}
