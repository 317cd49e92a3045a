//go:build kubernetes

package operator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Condition types of our objects.
const (
	accepted = "Accepted"
	running  = "Running"
	complete = "Complete"
	failed   = "Failed"
)

// longestMessage bounds a condition's message in bytes, as Kubernetes does.
const longestMessage = 32768

// verdict says whether an object was accepted, and why not.
type verdict struct {
	// status is True, False or Unknown; reason is one word, message is for people.
	status          metav1.ConditionStatus
	reason, message string
	// generation of the object that was judged.
	generation int64
}

func yes(generation int64, message string) verdict {
	return verdict{metav1.ConditionTrue, accepted, message, generation}
}

func no(generation int64, reason, message string) verdict {
	return verdict{metav1.ConditionFalse, reason, message, generation}
}

// jobStatus builds a Job's status. known: the daemon has the job.
func jobStatus(v verdict, j *status.Job, known bool, old []metav1.Condition) map[string]any {
	conditions := []metav1.Condition{condition(accepted, v, old)}
	out := map[string]any{"observedGeneration": v.generation}
	if known {
		out["state"], out["reason"] = j.State.String(), j.Reason
		out["progress"], out["committed"], out["total"] = progressOf(j), j.Progress, j.Total
		out["running"], out["subjobs"], out["lost"] = int64(j.Running), int64(j.Subjobs), int64(j.Lost)
		for key, at := range map[string]quantity.Instant{"submitted": j.Submitted, "started": j.Started, "ended": j.Ended} {
			if at != 0 {
				out[key] = at.Time().UTC().Format(time.RFC3339)
			}
		}
		for _, c := range []struct {
			kind string
			verdict
		}{{running, runs(j)}, {complete, completed(j)}, {failed, hasFailed(j)}} {
			c.generation = v.generation
			conditions = append(conditions, condition(c.kind, c.verdict, old))
		}
	}
	out["conditions"] = plain(conditions)
	return out
}

func runs(j *status.Job) verdict {
	switch {
	case j.Running > 0:
		return verdict{status: metav1.ConditionTrue, reason: "SubjobsRun", message: fmt.Sprintf("%d of its subjobs run now", j.Running)}
	case j.State.Final():
		return verdict{status: metav1.ConditionFalse, reason: "Over", message: j.Reason}
	}
	return verdict{status: metav1.ConditionFalse, reason: "Waiting", message: j.Reason}
}

// progressOf is how far a job is, for people: of a chain whose length nobody knows yet only how much is done.
func progressOf(j *status.Job) string {
	if j.Total == 0 {
		return fmt.Sprintf("%d/?", j.Progress)
	}
	return fmt.Sprintf("%d/%d", j.Progress, j.Total)
}

func completed(j *status.Job) verdict {
	if j.State == job.Finished {
		return verdict{status: metav1.ConditionTrue, reason: "Complete", message: j.Reason}
	}
	return verdict{status: metav1.ConditionFalse, reason: "NotComplete", message: progressOf(j) + " are committed"}
}

func hasFailed(j *status.Job) verdict {
	if j.State.Final() && j.State != job.Finished {
		word := strings.ToLower(j.State.String())
		return verdict{status: metav1.ConditionTrue, reason: strings.ToUpper(word[:1]) + word[1:], message: j.Reason}
	}
	return verdict{status: metav1.ConditionFalse, reason: "NotFailed", message: ""}
}

// condition builds a condition; lastTransitionTime changes only with its status.
func condition(kind string, v verdict, old []metav1.Condition) metav1.Condition {
	c := metav1.Condition{Type: kind, Status: v.status, Reason: v.reason, Message: v.message, ObservedGeneration: v.generation,
		LastTransitionTime: metav1.Now().Rfc3339Copy()}
	if len(c.Message) > longestMessage {
		c.Message = strings.ToValidUTF8(c.Message[:longestMessage-3], "") + "..."
	}
	for i := range old {
		if old[i].Type == kind && old[i].Status == v.status {
			c.LastTransitionTime = old[i].LastTransitionTime
		}
	}
	return c
}

// plain converts conditions to unstructured content.
func plain(list []metav1.Condition) []any {
	out := make([]any, 0, len(list))
	for i := range list {
		m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&list[i])
		if err != nil {
			panic(err) // strings and numbers always convert
		}
		out = append(out, m)
	}
	return out
}

// conditionsOf reads an object's conditions.
func conditionsOf(o *unstructured.Unstructured) []metav1.Condition {
	list, _, err := unstructured.NestedSlice(o.Object, "status", "conditions")
	if err != nil {
		return nil // malformed: to be overwritten
	}
	out := make([]metav1.Condition, 0, len(list))
	for _, e := range list {
		m, ok := e.(map[string]any)
		var c metav1.Condition
		if ok && runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c) == nil {
			out = append(out, c)
		}
	}
	return out
}

// has is a condition that is True; false: it is not.
func has(list []metav1.Condition, kind string) (c metav1.Condition, is bool) {
	i := slices.IndexFunc(list, func(c metav1.Condition) bool { return c.Type == kind && c.Status == metav1.ConditionTrue })
	if i < 0 {
		return c, false
	}
	return list[i], true
}

// Reasons of final refusals, and the message of an acceptance.
const (
	invalid = "Invalid"
	changed = "Changed"
	welcome = "its pieces are cut to fit what is left over, as it comes"
)
