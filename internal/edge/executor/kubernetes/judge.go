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

// deletedByGC is the reason of the condition by which the cluster's garbage collector ends Pods of machines that are gone: no kubelet has said that.
const deletedByGC = "DeletionByPodGC"

// spoken says whether a Pod is over by the word of a kubelet: of all that ran nothing does.
func spoken(p *corev1.Pod) bool {
	return terminal(p) && !collected(p) && !anyRuns(p)
}

// terminal says whether a Pod has a phase that it keeps.
func terminal(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// anyRuns says whether a container of a Pod is shown as running, whoever's it is.
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

// parted says whether the subjob's container has ended and its Pod goes on, for containers that others have put into it (sidecars, by a webhook): it waits for all of them.
func parted(p *corev1.Pod) bool {
	if s := ours(p); terminal(p) || s == nil || s.State.Terminated == nil {
		return false
	}
	return anyRuns(p) || slices.ContainsFunc(p.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool { return s.State.Terminated == nil })
}

// collected says whether the cluster's garbage collector has ended a Pod, since its machine is no more. Where an administrator has said that a machine is out of service
// (node.kubernetes.io/out-of-service) it gives no reason: it sets the phase of Pods that are being deleted there, and what their kubelet said last stands, that a container runs.
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

// neverBound says whether no machine has had a Pod, nor ever will: what is being deleted is not bound any more.
func neverBound(p *corev1.Pod) bool { return p.DeletionTimestamp != nil && p.Spec.NodeName == "" }

// ours is the status of the subjob's container, nil if there is none.
func ours(p *corev1.Pod) *corev1.ContainerStatus {
	for i := range p.Status.ContainerStatuses {
		if p.Status.ContainerStatuses[i].Name == container {
			return &p.Status.ContainerStatuses[i]
		}
	}
	return nil
}

// running says whether a kubelet says that the subjob's container runs.
func running(p *corev1.Pod) bool {
	s := ours(p)
	return s != nil && s.State.Running != nil
}

// latest is until when something of a Pod may run though nothing is heard of it: until its first process has ended it by its own clock, or its kubelet by its.
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

// ended is how a subjob ended whose Pod a kubelet says is over. It says the same of the same Pod, whoever asks and when.
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

// vanished is when the container began of a Pod whose kubelet has removed it before it read how it ended, as it does with what it evicts; zero: that is not so. Kubelets
// say so of what used to run, and of nothing else; when it began is then no more than when it could.
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

// heard is what a subjob's first process said of its end, with what only the kubelet knows: that the kernel ended its program for memory, which to a process is a
// signal like others, and why the Pod had to end.
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

// oomKilled is the reason of a container's end in which the kernel has ended something for its memory. That is not the memory that was sold, which is the device's: the
// job has outgrown no slice, and may run on another machine as it is. So it is a signal like others that nobody of ours has sent, and not job.MemoryKilled.
const (
	oomKilled   = "OOMKilled"
	outOfMemory = "the kernel ended it: its container, or its machine, had no more memory (not the slice's)"
)

// outcome of a process that did not say how it went, by the reasons that the kubelet gives for the Pod and for the container.
func outcome(ofPod, ofContainer string) job.Outcome {
	switch {
	case ofContainer == oomKilled:
		return job.ExitFailed
	case ofPod == "DeadlineExceeded":
		return job.DeadlineKilled
	case slices.Contains([]string{"Evicted", "Preempting", "Terminated", "NodeShutdown", "Shutdown"}, ofPod):
		return job.Stopped
	}
	return job.Lost
}

// when a Pod was over, as far as it says so itself.
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

// hopeless is why a Pod can't start, however long it is waited for; empty: it may. What may pass by itself is given until late. Invalid: it is the job's own image that is
// none; Exhausted: nobody's fault of those who have jobs.
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
			if i == 0 { // ours
				kind = errkind.Exhausted
			}
			return fmt.Sprintf("its image %s can't be run: %s %s", all[j].Image, w.Reason, w.Message), kind
		}
	}
	return "", errkind.Unknown
}

// lacks says whether a registry has answered that it has no such image, or not for us: it is not away.
func lacks(said string) bool {
	said = strings.ToLower(said)
	return slices.ContainsFunc([]string{"not found", "manifest unknown", "does not exist", "unauthorized", "authorization failed", "denied", "forbidden"}, func(word string) bool { return strings.Contains(said, word) })
}

// unscheduled is what the scheduler says of a Pod that no machine has.
func unscheduled(p *corev1.Pod) string {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return cmp.Or(c.Message, c.Reason)
		}
	}
	return "no scheduler has bound it"
}
