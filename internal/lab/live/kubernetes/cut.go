//go:build kubernetes

package kubernetes

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/lab/history/kubernetes"
	"sluice.dev/sluice/internal/lab/history/record"
)

// cutPod leaves of a Pod what is read; false: it asks for no device.
func cutPod(o any) (record.Pod, bool) {
	p, is := o.(*corev1.Pod)
	if !is {
		return record.Pod{}, false
	}
	x := record.Pod{UID: string(p.UID), Namespace: p.Namespace, Name: p.Name, Node: p.Spec.NodeName,
		Created:       max(0, p.CreationTimestamp.Unix()),
		PriorityClass: p.Spec.PriorityClassName, Devices: devices(&p.Spec), Claims: len(p.Spec.ResourceClaims) > 0}
	if len(x.Devices) == 0 && !x.Claims {
		return x, false
	}
	if x.Node != "" {
		x.Scheduled = bound(p)
	}
	if p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
		x.Phase = string(p.Status.Phase)
	}
	x.Ended = ended(p, x.Phase != "")
	return x, true
}

// bound is when a Pod got its node: its kubelet, which heard of it a little later, says so of one that no scheduler has bound.
func bound(p *corev1.Pod) int64 {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Unix()
		}
	}
	if p.Status.StartTime != nil {
		return p.Status.StartTime.Unix()
	}
	return 0
}

// ended is when the last container of a Pod ended that is over, or that is deleted and has none left that runs; 0 if it goes on or nobody
// says.
func ended(p *corev1.Pod, over bool) (last int64) {
	running := false
	for _, list := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range list {
			if t := list[i].State.Terminated; t == nil {
				running = true
			} else {
				last = max(last, t.FinishedAt.Unix())
			}
		}
	}
	if !over && (p.DeletionTimestamp == nil || running || len(p.Status.ContainerStatuses) < len(p.Spec.Containers)) {
		return 0
	}
	return last
}

// devices are how many of each resource of GPUs a Pod holds, as Kubernetes counts: its containers and sidecars together, or more while a
// container sets it up, beside which the sidecars before it run.
func devices(spec *corev1.PodSpec) map[string]int64 {
	var sum, most map[corev1.ResourceName]int64
	for i := range spec.Containers {
		add(&sum, &spec.Containers[i])
	}
	var aside map[corev1.ResourceName]int64
	for i := range spec.InitContainers {
		c := &spec.InitContainers[i]
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(&aside, c)
			continue
		}
		var own map[corev1.ResourceName]int64
		add(&own, c)
		for name, n := range own { //sluice:sorted each for itself
			if most == nil {
				most = map[corev1.ResourceName]int64{}
			}
			most[name] = max(most[name], n+aside[name])
		}
	}
	var out map[string]int64
	for _, of := range []map[corev1.ResourceName]int64{sum, most, aside} {
		for name := range of { //sluice:sorted each for itself
			if n := max(sum[name]+aside[name], most[name]); n > 0 {
				if out == nil {
					out = map[string]int64{}
				}
				out[string(name)] = min(n, kubernetes.Most)
			}
		}
	}
	return out
}

// add adds what a container asks for: a limit stands for a request that is not given.
func add(to *map[corev1.ResourceName]int64, c *corev1.Container) {
	one := func(name corev1.ResourceName, n int64) {
		if kubernetes.Device(string(name)) {
			if *to == nil {
				*to = map[corev1.ResourceName]int64{}
			}
			(*to)[name] += n
		}
	}
	for name, n := range c.Resources.Requests { //sluice:sorted sums do not depend on the order
		one(name, n.Value())
	}
	for name, n := range c.Resources.Limits { //sluice:sorted neither do these
		if _, is := c.Resources.Requests[name]; !is {
			one(name, n.Value())
		}
	}
}

// cutNode leaves of a node what is read; false: it has no devices.
func cutNode(o any) (record.Host, bool) {
	n, is := o.(*corev1.Node)
	if !is {
		return record.Host{}, false
	}
	h := record.Host{Name: n.Name, Devices: map[string]int64{}, Unschedulable: n.Spec.Unschedulable, NotReady: true,
		Product: n.Labels["nvidia.com/gpu.product"]}
	for name, count := range n.Status.Allocatable { //sluice:sorted each for itself
		if kubernetes.Device(string(name)) {
			h.Devices[string(name)] = min(count.Value(), kubernetes.Most)
		}
	}
	if replicas, err := strconv.ParseInt(n.Labels["nvidia.com/gpu.replicas"], 10, 32); err == nil {
		h.Replicas = min(max(replicas, 0), 1000)
	}
	for i := range n.Status.Conditions {
		if c := &n.Status.Conditions[i]; c.Type == corev1.NodeReady {
			h.NotReady = c.Status != corev1.ConditionTrue
		}
	}
	return h, len(h.Devices) > 0
}
