//go:build kubernetes

package podtest

import (
	"context"
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Register makes the machine's object, at first or where somebody has deleted it, and says that it is ready.
func (k *Kubelet) Register(ctx context.Context) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: k.o.Node, Labels: map[string]string{corev1.LabelHostname: k.o.Node}}}
	if _, err := k.o.Client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return err
	}
	return k.ready(ctx)
}

// beat says that the machine is ready, again and again, unless it is silent.
func (k *Kubelet) beat(ctx context.Context) {
	for {
		select {
		case <-time.After(5 * time.Second):
		case <-ctx.Done():
			return
		}
		if !k.isSilent() {
			_ = k.ready(ctx) // or the next time
		}
	}
}

// ready says that the machine is, and what it has.
func (k *Kubelet) ready(ctx context.Context) error {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("512Gi"),
		corev1.ResourcePods: resource.MustParse("110")}
	for name, n := range k.o.Resources {
		room[corev1.ResourceName(name)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	now := k.now()
	status := corev1.NodeStatus{Allocatable: room, Capacity: room, Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now},
	}, Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "127.0.0.1"}},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: k.port}}}
	data, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		panic(err)
	}
	_, err = k.o.Client.CoreV1().Nodes().Patch(ctx, k.o.Node, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	return err
}
