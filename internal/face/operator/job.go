//go:build kubernetes

package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/host"
)

// keep reconciles a job with its object.
func (c *controller) keep(ctx context.Context, id job.ID, o *object) (time.Duration, error) {
	s := c.of(keyOf(o), o.GetUID())
	old := conditionsOf(o)
	stands, known, err := c.standing(ctx, id)
	if err != nil {
		return 0, err
	}
	// The daemon's job of this name is this object's if the object's status says so: a new object under a deleted one's name has no status.
	state, _, _ := unstructured.NestedString(o.Object, "status", "state")
	s.ours = s.ours || state != ""
	if s.ours && !known && over(old) {
		return 0, nil // forgotten by the daemon; the object says how it ended
	}
	if before, was := has(old, accepted); s.verdict.status == "" && s.ours && known && was &&
		before.ObservedGeneration == o.GetGeneration() {
		s.verdict = yes(before.ObservedGeneration, before.Message) // accepted by an earlier process
	}
	settled := s.settled(o.GetGeneration())
	if !s.taken && (o.GetAnnotations()[cluster.AnnotationOwner] != c.name || !settled && !slices.Contains(o.GetFinalizers(), holding)) {
		if o, err = c.take(ctx, o); err != nil || o == nil {
			return 0, err
		}
		s.taken = true
	}
	if !settled {
		was := s.verdict
		if s.verdict, err = c.offer(ctx, id, o, s.ours, known); err != nil {
			return 0, err
		}
		s.ours = s.ours || s.verdict.status == metav1.ConditionTrue
		if s.verdict.reason != was.reason || s.verdict.message != was.message {
			s.refused = 0
			c.event(o, s.verdict.status != metav1.ConditionTrue, s.verdict.reason, "%s", s.verdict.message)
		}
		if stands, known, err = c.standing(ctx, id); err != nil {
			return 0, err
		}
	}
	known = known && s.ours
	if known && !stands.State.Final() && o.GetAnnotations()[cluster.AnnotationCancel] == "true" {
		if err = c.daemon.Cancel(ctx, request(o, "cancel"), id); err != nil && errkind.Of(err) != errkind.Conflict {
			return 0, err
		}
		if stands, _, err = c.standing(ctx, id); err != nil {
			return 0, err
		}
	}
	c.tell(o, s, &stands, known)
	said := jobStatus(s.verdict, &stands, known, old)
	if !c.older.Load() {
		said["operator"] = c.name
	}
	after, err := c.write(ctx, o, s, said)
	if err == nil && !s.settled(o.GetGeneration()) {
		again := min(askAgain<<min(s.refused, 10), resync)
		s.refused++
		if after == 0 || again < after {
			after = again
		}
	}
	return after, err
}

// settled reports whether only a change of the object can change its verdict.
func (s *seen) settled(generation int64) bool {
	return s.verdict.generation == generation && (s.verdict.status == metav1.ConditionTrue || s.verdict.reason == invalid ||
		s.verdict.reason == changed)
}

// over reports whether an object's conditions say that its job is over.
func over(list []metav1.Condition) bool {
	_, done := has(list, complete)
	_, not := has(list, failed)
	return done || not
}

// offer submits an object's job. Object UID and generation identify the request, so that another process may repeat it. A refusal is
// returned as a verdict; an error says nothing about the job.
func (c *controller) offer(ctx context.Context, id job.ID, o *object, ours, known bool) (verdict, error) {
	generation := o.GetGeneration()
	j, err := parseJob(o, ours || known)
	if err == nil {
		err = c.admitted(o.GetNamespace(), j.Spec.Queue)
	}
	if err != nil {
		reason := invalid
		if errkind.Of(err) == errkind.Denied {
			reason = "Denied"
		}
		return no(generation, reason, err.Error()), nil
	}
	var v verdict
	if !ours && known {
		v, err = c.offerAnew(ctx, id, o, j)
	} else {
		v, err = c.answered(generation, c.submit(ctx, o, j, false))
	}
	if v.status == metav1.ConditionTrue && len(j.Renamed) > 0 {
		older := strings.Join(j.Renamed, "; ")
		v.message += "; " + older
		c.event(o, true, "OlderKeys", "%s", older)
	}
	return v, err
}

// submit passes an object's job to the daemon.
func (c *controller) submit(ctx context.Context, o *object, j config.Job, replace bool) host.Outcome {
	return c.daemon.SubmitAll(ctx, []host.Submission{{Request: request(o, "submit"), Spec: j.Spec, Workdir: j.Stored(), Replace: replace}},
		nil)[0]
}

// offerAnew offers a job whose name the daemon already has: either our own submission, made before a crash, or the job of an object that
// was deleted while no operator ran, which makes way.
func (c *controller) offerAnew(ctx context.Context, id job.ID, o *object, j config.Job) (verdict, error) {
	out := c.submit(ctx, o, j, false)
	if errkind.Of(out.Err) != errkind.Exists {
		return c.answered(o.GetGeneration(), out)
	}
	if err := c.daemon.Cancel(ctx, request(o, "replace"), id); err != nil && errkind.Of(err) != errkind.Conflict {
		return verdict{}, err
	}
	return c.answered(o.GetGeneration(), c.submit(ctx, o, j, true))
}

// answered turns a submission's outcome into a verdict.
func (c *controller) answered(generation int64, out host.Outcome) (verdict, error) {
	switch kind := errkind.Of(out.Err); {
	case out.Err == nil:
		return yes(generation, welcome), nil
	case kind == errkind.Unavailable || kind == errkind.Unknown:
		return verdict{}, out.Err
	case kind == errkind.Exists:
		return no(generation, changed, "a job can't be changed once it was accepted, and goes on as it was: put spec back, or delete it "+
			"and apply it again"), nil
	default:
		word := kind.String()
		return no(generation, "Refused", word+": "+out.Err.Error()), nil
	}
}

// request identifies a call about an object, equal for repetitions by any process.
func request(o *object, what string) string {
	return fmt.Sprintf("%s.%d.%s", o.GetUID(), o.GetGeneration(), what)
}

// standing is a job's status; false: the daemon does not have it.
func (c *controller) standing(ctx context.Context, id job.ID) (status.Job, bool, error) {
	list, err := c.daemon.Standing(ctx, []job.ID{id})
	if errkind.Of(err) == errkind.NotFound {
		return status.Job{}, false, nil
	}
	if err != nil {
		return status.Job{}, false, err
	}
	if namespace, _, ours := cluster.SplitJob(id); ours { // readers of the object may not know other namespaces
		list[0].Reason = cluster.Discreet(list[0].Reason, namespace)
	}
	return list[0], true, nil
}

// leave ends a job whose object is being deleted (o), or is gone or another operator's (nil): the job is cancelled and deleted from the
// daemon, and then the object is released.
func (c *controller) leave(ctx context.Context, id job.ID, o *object) (time.Duration, error) {
	if o != nil && !slices.Contains(o.GetFinalizers(), holding) {
		return 0, nil // only others' finalizers are left
	}
	_, known, err := c.standing(ctx, id)
	if err != nil {
		return 0, err
	}
	if known {
		name := "gone." + string(id)
		if o != nil {
			name = string(o.GetUID())
		}
		if err := c.daemon.Cancel(ctx, name+".cancel", id); err != nil && errkind.Of(err) != errkind.Conflict &&
			errkind.Of(err) != errkind.NotFound {
			return 0, err
		}
		switch err := c.daemon.Delete(ctx, "", id); errkind.Of(err) {
		case errkind.Conflict: // something of it still runs
			return whileEnding, nil
		case errkind.NotFound:
		default:
			if err != nil {
				return 0, err
			}
		}
	}
	if o == nil {
		namespace, name, _ := cluster.SplitJob(id)
		c.forget(namespace + "/" + name)
		return 0, nil
	}
	return 0, c.release(ctx, o)
}

// release removes our finalizer from an object, also one that a restored backup brought along.
func (c *controller) release(ctx context.Context, o *object) error {
	left := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == holding })
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/resourceVersion", "value": o.GetResourceVersion()},
		{"op": "replace", "path": "/metadata/finalizers", "value": left},
	})
	if err != nil {
		return err
	}
	_, err = c.client.Resource(jobs).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: manager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// apply writes an object's status by server-side apply. Nothing is done if the object is gone; the UID keeps apply from creating it anew.
func (c *controller) apply(ctx context.Context, o *object, said map[string]any) error {
	meta := map[string]any{"name": o.GetName(), "uid": string(o.GetUID())}
	if ns := o.GetNamespace(); ns != "" {
		meta["namespace"] = ns
	}
	data, err := json.Marshal(map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": meta, "status": said})
	if err != nil {
		return err
	}
	resource := map[string]schema.GroupVersionResource{config.JobKind: jobs, config.QueueKind: queues,
		config.SlicePoolKind: slicePools}[o.GetKind()]
	force := true
	_, err = c.client.Resource(resource).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, data,
		metav1.PatchOptions{FieldManager: manager, Force: &force}, "status")
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil && strings.Contains(err.Error(), ".status.operator: field not declared in schema"): // Helm does not upgrade CRDs
		if c.older.Swap(true) {
			return err // made before older was set: the retry leaves the field out
		}
		c.log.Warn("the definitions of the custom resources are an older version's: a Job's operator is not in its status. kubectl "+
			"apply --server-side --force-conflicts -f those of this version", "error", err)
		without := maps.Clone(said)
		delete(without, "operator")
		return c.apply(ctx, o, without)
	}
	return err
}

// write writes a status if it differs from the last one, at most once in every interval between. It returns when to write what is left.
func (c *controller) write(ctx context.Context, o *object, s *seen, said map[string]any) (time.Duration, error) {
	text, err := json.Marshal(said)
	if err != nil {
		return 0, err
	}
	now := time.Now()
	there, err := json.Marshal(o.Object["status"])
	if err != nil {
		return 0, err
	}
	switch {
	case string(text) == string(there):
		s.wrote = string(text)
		return 0, nil
	case string(text) == s.wrote && now.Sub(s.at) < settle: // the cache may not have our last write yet
		return settle, nil
	}
	if wait := between - now.Sub(s.at); !s.at.IsZero() && wait > 0 {
		return wait, nil
	}
	if err := c.apply(ctx, o, said); err != nil {
		return 0, err
	}
	s.wrote, s.at = string(text), now
	return 0, nil
}

// tell records Events for a job's changes of state.
func (c *controller) tell(o *object, s *seen, j *status.Job, known bool) {
	if !known || s.told && s.state == j.State {
		return
	}
	first := !s.told
	s.state, s.told = j.State, true
	if word, _, _ := unstructured.NestedString(o.Object, "status", "state"); first && word == j.State.String() {
		return // an earlier process recorded it
	}
	switch {
	case j.State == job.Finished:
		c.event(o, false, complete, "all %d are committed, in %d subjobs", j.Total, j.Subjobs)
	case j.State.Final():
		c.event(o, true, hasFailed(j).reason, "%s", j.Reason)
	case j.Running > 0:
		c.event(o, false, running, "its first subjobs run")
	}
}
