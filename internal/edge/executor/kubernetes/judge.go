//go:build kubernetes

package kubernetes

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim/pod"
)

// deletedByGC is the reason of the condition by which the cluster's garbage collector ends Pods of machines that are gone: no kubelet has said that.
const deletedByGC = "DeletionByPodGC"

// spoken says whether a Pod is over by the word of a kubelet: of all that ran nothing does.
func spoken(p *corev1.Pod) bool {
	if p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
		return false
	}
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && c.Reason == deletedByGC {
			return false
		}
	}
	for _, all := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range all {
			if all[i].State.Running != nil {
				return false
			}
		}
	}
	return true
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

// ended is how a subjob ended whose Pod a kubelet says is over.
func ended(p *corev1.Pod, rec *record, now quantity.Instant) pod.Said {
	s := ours(p)
	if s != nil && s.State.Terminated != nil {
		if said, ok := pod.Decode(s.State.Terminated.Message); ok {
			return said
		}
	}
	r := job.Result{Outcome: job.Lost, ExitCode: -1, Progress: rec.Range.From, End: now}
	var words []string
	say := func(text string) {
		if text != "" {
			words = append(words, text)
		}
	}
	if s != nil && s.State.Terminated != nil {
		t := s.State.Terminated
		if !t.StartedAt.IsZero() {
			r.Start, r.End = quantity.At(t.StartedAt.Time), quantity.At(t.FinishedAt.Time)
		}
		switch {
		case t.Reason == "OOMKilled":
			r.Outcome = job.MemoryKilled
			say("the kernel ended it: it passed the memory limit of its container")
		case r.Start == 0:
			r.Outcome = job.StartFailed
			say("its container did not start: " + t.Reason)
		default:
			say(fmt.Sprintf("its first process ended with status %d and did not say how it went", t.ExitCode))
		}
		say(t.Message)
	}
	switch p.Status.Reason {
	case "DeadlineExceeded":
		r.Outcome = job.DeadlineKilled
	case "Evicted", "Preempting", "Terminated", "NodeShutdown", "Shutdown":
		if r.Outcome == job.Lost {
			r.Outcome = job.Stopped
		}
	case "UnexpectedAdmissionError", "NodeAffinity", "OutOfcpu", "OutOfmemory", "OutOfpods":
		r.Outcome = job.NodeFailed
	}
	if s == nil && r.Outcome == job.Lost { // no container of ours began
		r.Outcome, r.Start = job.NodeFailed, 0
	}
	if p.Status.Reason != "" {
		say("its kubelet says " + p.Status.Reason)
	}
	say(p.Status.Message)
	if r.Detail = strings.Join(words, "; "); r.Detail == "" {
		r.Detail = "its Pod is over, and nobody said how it went"
	}
	return pod.Said{Result: r}
}

// hopeless is why a Pod can't start, however long it is waited for; empty: it may. What may pass by itself is given until late.
func hopeless(p *corev1.Pod, late bool) string {
	for _, all := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range all {
			w := all[i].State.Waiting
			if w == nil {
				continue
			}
			switch w.Reason {
			case "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError":
			case "ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "CreateContainerError", "RunContainerError":
				if !late {
					continue
				}
			default:
				continue
			}
			return fmt.Sprintf("its image %s can't be run: %s %s", all[i].Image, w.Reason, w.Message)
		}
	}
	return ""
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
