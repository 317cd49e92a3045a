//go:build kubernetes

package kubernetes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"sluice.dev/sluice/internal/edge/provider"
)

// over reports whether a Pod's phase is final: its kubelet says that nothing of it runs, or the cluster that its machine is gone.
func over(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// seenOf is a Pod as a copy of its pilot.
func seenOf(p *corev1.Pod) provider.Seen {
	s := provider.Seen{Name: p.Labels[LabelPilot], ID: string(p.UID), State: provider.Waiting}
	if p.Status.StartTime != nil {
		s.State, s.Began = provider.Running, p.Status.StartTime.Time
		if limit := p.Spec.ActiveDeadlineSeconds; limit != nil {
			s.End = s.Began.Add(time.Duration(*limit)*time.Second - graceOf(p))
		}
	}
	taken := takenBack(p)
	if taken != nil {
		s.Preempted, s.Why = true, cmp.Or(taken.Message, taken.Reason)
		s.End = earlier(s.End, taken.LastTransitionTime.Add(graceOf(p)))
	}
	deleted := p.DeletionTimestamp
	switch {
	case over(p):
		s.State, s.End = provider.Ended, finished(p)
		// Whoever deletes a Pod cancels it, and a Pod that was told to end may not exit with 0.
		s.Failed = p.Status.Phase == corev1.PodFailed && deleted == nil
		s.Why = cmp.Or(s.Why, last(p))
	case deleted != nil:
		s.State, s.End = provider.Ending, earlier(s.End, deleted.Time)
		s.Why = cmp.Or(s.Why, "its Pod was deleted")
	case s.State == provider.Waiting:
		s.Why = unscheduled(p)
	}
	return s
}

// graceOf is how long a Pod has from SIGTERM to SIGKILL.
func graceOf(p *corev1.Pod) time.Duration {
	if g := p.Spec.TerminationGracePeriodSeconds; g != nil {
		return time.Duration(*g) * time.Second
	}
	return 0
}

// earlier is the earlier of two moments; a zero one is not known.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// takers are the reasons for which a cluster takes a Pod back that did nothing wrong: for others, for a drain, for its machine. A kubelet
// that evicts it for what it used is none.
//
//nolint:gochecknoglobals // read-only by use
var takers = []string{corev1.PodReasonPreemptionByScheduler, "EvictionByEvictionAPI", "DeletionByTaintManager"}

// takenBack is the condition that says so; nil: there is none.
func takenBack(p *corev1.Pod) *corev1.PodCondition {
	for i := range p.Status.Conditions {
		c := &p.Status.Conditions[i]
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue && slices.Contains(takers, c.Reason) {
			return c
		}
	}
	return nil
}

// statuses are those of the Pod's containers, the installer's first.
func statuses(p *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(p.Status.InitContainerStatuses, p.Status.ContainerStatuses)
}

// finished is when a Pod was over, as far as its status says; zero: it says nothing.
func finished(p *corev1.Pod) (at time.Time) {
	for _, s := range statuses(p) {
		if t := s.State.Terminated; t != nil && t.FinishedAt.After(at) {
			at = t.FinishedAt.Time
		}
	}
	return at
}

// last is what an ended Pod said last.
func last(p *corev1.Pod) string {
	words := strings.TrimSpace(p.Status.Reason + " " + p.Status.Message)
	for _, s := range statuses(p) {
		if t := s.State.Terminated; t != nil && t.ExitCode != 0 {
			lines := strings.Split(strings.TrimSpace(t.Message), "\n")
			words = strings.TrimSpace(fmt.Sprintf("%s %s %d %s", words, cmp.Or(t.Reason, "Error"), t.ExitCode, lines[len(lines)-1]))
		}
	}
	return brief(words)
}

// unscheduled is kube-scheduler's word about a Pod that has no machine; empty where it has said nothing.
func unscheduled(p *corev1.Pod) string {
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return brief(cmp.Or(c.Message, c.Reason))
		}
	}
	return ""
}

// stuck says why a Pod can't start on its machine; empty: it may. ours: no other Pod of this pool would either, until a person has mended
// its image or settings; else a registry may just be away. asked: its registry was asked just now, or not reached.
func stuck(p *corev1.Pod) (why string, ours, asked bool) {
	for _, s := range statuses(p) {
		w := s.State.Waiting
		if w == nil {
			continue
		}
		switch w.Reason {
		case "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError":
			ours = true
		case "ErrImagePull", "ImagePullBackOff":
			ours, asked = lacks(w.Message), w.Reason == "ErrImagePull"
		case "RegistryUnavailable":
			asked = true
		case "CreateContainerError", "RunContainerError": // or its machine is to blame
		default:
			continue
		}
		return brief(fmt.Sprintf("image %s: %s: %s", s.Image, w.Reason, w.Message)), ours, asked
	}
	return "", false, false
}

// lacks reports whether a registry answered that it has no such image, or not for us, as opposed to not answering.
func lacks(said string) bool {
	said = strings.ToLower(said)
	return slices.ContainsFunc([]string{"not found", "manifest unknown", "does not exist", "unauthorized", "authorization failed", "denied",
		"forbidden"}, func(word string) bool { return strings.Contains(said, word) })
}

// brief is what was said, for one line, and not longer than people read.
func brief(said string) string {
	said = strings.Join(strings.Fields(said), " ")
	if len(said) > 400 {
		said = strings.ToValidUTF8(said[:400], "") + "..."
	}
	return said
}
