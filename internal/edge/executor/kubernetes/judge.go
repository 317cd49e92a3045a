//go:build kubernetes

package kubernetes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

// deletedByGC is the condition's reason when the Pod garbage collector fails Pods of machines that are gone: not a kubelet's word.
const deletedByGC = "DeletionByPodGC"

// spoken reports whether a kubelet has said that the Pod is over: nothing of it runs.
func spoken(p *corev1.Pod) bool {
	return terminal(p) && !collected(p) && !anyRuns(p)
}

// terminal reports whether a Pod's phase is final.
func terminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// anyRuns reports whether any container of a Pod is shown as running.
func anyRuns(p *corev1.Pod) bool {
	for _, all := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range all {
			if all[i].State.Running != nil {
				return true
			}
		}
	}
	return false
}

// parted reports whether the subjob's container has ended while its Pod goes on for containers that a webhook injected (sidecars).
func parted(p *corev1.Pod) bool {
	if s := ours(p); terminal(p) || s == nil || s.State.Terminated == nil {
		return false
	}
	return anyRuns(p) || slices.ContainsFunc(p.Status.ContainerStatuses,
		func(s corev1.ContainerStatus) bool { return s.State.Terminated == nil })
}

// collected reports whether the Pod garbage collector failed a Pod since its machine is gone. For machines with the taint
// node.kubernetes.io/out-of-service it gives no reason: it sets the phase of Pods being deleted, while their last status still shows a
// container as running.
func collected(p *corev1.Pod) bool {
	if terminal(p) && p.DeletionTimestamp != nil && anyRuns(p) {
		return true
	}
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == deletedByGC {
			return true
		}
	}
	return false
}

// deletedEarly reports whether the deletion of a Pod was requested before its lease ended: by a person, its owner, the garbage collector
// of its machine, or by us to stop it. After the end of the lease we delete any Pod that has not ended by itself.
func deletedEarly(p *corev1.Pod, end quantity.Instant) bool {
	if p.DeletionTimestamp == nil {
		return false
	}
	var grace time.Duration
	if s := p.DeletionGracePeriodSeconds; s != nil {
		grace = time.Duration(*s) * time.Second
	}
	return quantity.At(p.DeletionTimestamp.Add(-grace)) < end
}

// neverBound reports whether a Pod has no machine and never will: a Pod being deleted is not bound any more.
func neverBound(p *corev1.Pod) bool { return p.DeletionTimestamp != nil && p.Spec.NodeName == "" }

// ours is the status of the subjob's container; nil: none yet.
func ours(p *corev1.Pod) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].Name == container {
			return &p.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// running reports whether the subjob's container is shown as running.
func running(p *corev1.Pod) bool {
	s := ours(p)
	return s != nil && s.State.Running != nil
}

// latest is until when a Pod may run unheard of: its first process ends it by its own clock, and so does its kubelet.
func latest(p *corev1.Pod, end quantity.Instant, o *Options) quantity.Instant {
	if end == quantity.Never {
		return end
	}
	until := end.Add(o.Linger)
	if p != nil && p.Status.StartTime != nil && p.Spec.ActiveDeadlineSeconds != nil {
		until = max(until, quantity.At(p.Status.StartTime.Time).Add(time.Duration(*p.Spec.ActiveDeadlineSeconds)*time.Second))
	}
	if p != nil && p.Spec.TerminationGracePeriodSeconds != nil {
		until = until.Add(time.Duration(*p.Spec.TerminationGracePeriodSeconds) * time.Second)
	}
	return until.Add(o.Skew)
}

// ended derives a subjob's end from a Pod that is over. It is a function of the Pod alone, so every asker gets the same.
func ended(p *corev1.Pod, rec *record) pod.Said {
	var t corev1.ContainerStateTerminated
	if s := ours(p); s != nil && s.State.Terminated != nil {
		t = *s.State.Terminated
	} else if began := vanished(p, s); !began.IsZero() {
		t = *s.LastTerminationState.Terminated
		t.StartedAt = began
	}
	if said, ok := pod.Decode(t.Message); ok {
		return heard(said, p, &t)
	}
	r := job.Result{ExitCode: -1, Progress: rec.Range.From, End: quantity.At(when(p, &t))}
	var words []string
	if !t.StartedAt.IsZero() {
		r.Start = min(quantity.At(t.StartedAt.Time), r.End)
		r.Outcome = outcome(p.Status.Reason, t.Reason)
		if r.Outcome == job.Lost && deletedEarly(p, rec.End) {
			r.Outcome = job.NodeFailed
			words = append(words, "somebody has deleted its Pod")
		}
		if t.Reason == oomKilled {
			r.Signal = int(syscall.SIGKILL)
			words = append(words, outOfMemory)
		}
		words = append(words, fmt.Sprintf("its first process ended with status %d and did not say how it went", t.ExitCode))
	} else {
		r.Outcome = job.NodeFailed
		switch {
		case t.Reason == "StartError" || t.Reason == "ContainerCannotRun":
			r.Outcome = job.StartFailed
		case p.DeletionTimestamp != nil:
			r.Outcome = job.Stopped
		}
		words = append(words, "its container did not start")
	}
	for _, w := range []string{t.Reason, t.Message, p.Status.Reason, p.Status.Message} {
		if w != "" && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	for i := range p.Status.InitContainerStatuses {
		if t := p.Status.InitContainerStatuses[i].State.Terminated; t != nil && t.ExitCode != 0 {
			words = append(words, fmt.Sprintf("what puts sluice-shim there ended with status %d: %s %s", t.ExitCode, t.Reason, t.Message))
		}
	}
	r.Detail = strings.Join(words, "; ")
	return pod.Said{Result: r}
}

// vanished is when the container began, at the earliest, of a Pod whose kubelet removed it without reading its exit, as on eviction
// (reason ContainerStatusUnknown, only given for containers that ran); zero: it is not such a Pod.
func vanished(p *corev1.Pod, s *corev1.ContainerStatus) (began metav1.Time) {
	if s == nil || s.LastTerminationState.Terminated == nil || s.LastTerminationState.Terminated.Reason != "ContainerStatusUnknown" {
		return began
	}
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodInitialized && c.Status == corev1.ConditionTrue {
			return c.LastTransitionTime
		}
	}
	return p.CreationTimestamp
}

// heard completes what a subjob's first process said of its end with what only the kubelet knows: that the kernel's OOM killer was the
// sender of a signal, and why the Pod had to end.
func heard(said pod.Said, p *corev1.Pod, t *corev1.ContainerStateTerminated) pod.Said {
	r := &said.Result
	if r.Outcome == job.ExitFailed && r.Signal == int(syscall.SIGKILL) && t.Reason == oomKilled {
		r.Detail = strings.TrimSuffix(outOfMemory+"; "+r.Detail, "; ")
	}
	if r.Outcome != job.Done && p.Status.Reason != "" {
		r.Detail = strings.TrimSuffix(fmt.Sprintf("%s: %s; %s", p.Status.Reason, p.Status.Message, r.Detail), "; ")
	}
	return said
}

// oomKilled is a container's reason when the kernel killed one of its processes for lack of host memory. Only device memory is sold, so the
// job outgrew no slice and its profile is not raised: it counts as the job's failure, as any SIGKILL that Sluice did not send does, and not
// as job.MemoryKilled.
const (
	oomKilled   = "OOMKilled"
	outOfMemory = "the kernel ended it: its container, or its machine, had no more memory (not the slice's)"
)

// outcome of a Pod whose first process left no result, by the kubelet's reasons for Pod and container. Lost, which counts as the job's
// failure, where the machine stayed up: the program itself may have killed that process.
func outcome(ofPod, ofContainer string) job.Outcome {
	switch {
	case ofContainer == oomKilled:
		return job.ExitFailed
	case ofPod == "DeadlineExceeded":
		return job.DeadlineKilled
	case slices.Contains([]string{"Evicted", "Preempting", "Terminated", "NodeShutdown", "Shutdown"}, ofPod):
		return job.Stopped
	case slices.Contains(unread, ofContainer):
		return job.NodeFailed
	}
	return job.Lost
}

// unread are the reasons of a container whose exit status was never read: containerd's for one from before a restart of the machine or of
// containerd, and the kubelet's for one that it no longer finds. Nothing shows that the program ended these, so the node answers for them.
var unread = []string{"Unknown", "ContainerStatusUnknown"} //nolint:gochecknoglobals // read-only by use

// when a Pod was over, as far as its status says.
func when(p *corev1.Pod, t *corev1.ContainerStateTerminated) time.Time {
	at := p.CreationTimestamp.Time
	switch {
	case !t.FinishedAt.IsZero():
		return t.FinishedAt.Time
	case p.DeletionTimestamp != nil:
		at = p.DeletionTimestamp.Time
	}
	for i := range p.Status.Conditions {
		if c := p.Status.Conditions[i].LastTransitionTime.Time; p.DeletionTimestamp == nil && c.After(at) {
			at = c
		}
	}
	return at
}

// hopeless is why a Pod will not start; empty: it may. Causes that may pass are given until late. The kind is Invalid where the job's own
// image does not exist or its container can't be made or run, and Exhausted for causes that are not the job's, such as an init container's.
func hopeless(p *corev1.Pod, late bool) (why string, kind errkind.Kind) {
	for i, all := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for j := range all {
			w := all[j].State.Waiting
			if w == nil {
				continue
			}
			kind = errkind.Exhausted
			switch w.Reason {
			case "InvalidImageName", "ErrImageNeverPull":
				kind = errkind.Invalid
			case "ErrImagePull", "ImagePullBackOff":
				if lacks(w.Message) {
					kind = errkind.Invalid
				}
				if !late {
					continue
				}
			case "CreateContainerError", "RunContainerError":
				kind = errkind.Invalid
				if !late {
					continue
				}
			case "RegistryUnavailable", "CreateContainerConfigError":
				if !late {
					continue
				}
			default:
				continue
			}
			if i == 0 { // our own image
				kind = errkind.Exhausted
			}
			return fmt.Sprintf("its image %s can't be run: %s %s", all[j].Image, w.Reason, w.Message), kind
		}
	}
	return "", errkind.Unknown
}

// lacks reports whether a registry answered that it has no such image, or not for us, as opposed to not answering.
func lacks(said string) bool {
	said = strings.ToLower(said)
	return slices.ContainsFunc([]string{"not found", "manifest unknown", "does not exist", "unauthorized", "authorization failed", "denied",
		"forbidden"}, func(word string) bool { return strings.Contains(said, word) })
}

// unscheduled is kube-scheduler's word about a Pod that is not bound.
func unscheduled(p *corev1.Pod) string {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return cmp.Or(c.Message, c.Reason)
		}
	}
	return "no scheduler has bound it"
}
