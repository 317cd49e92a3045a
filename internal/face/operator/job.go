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
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/host"
)

const (
	// manager is who we are where fields of an object have owners.
	manager = "sluice-operator"
	// holding is the finalizer of a Job: it stays until nothing of it runs and the daemon has forgotten it.
	holding = "sluice.dev/job"
	// whileEnding is how often a job is looked at that ends, besides when it changes.
	whileEnding = 2 * time.Second
	// settle is how long after a write an object that says something else counts as old news, and not as written to by somebody else.
	settle = 10 * time.Second
)

type object = unstructured.Unstructured

// keyOf is the key of an object.
func keyOf(o *object) string { return o.GetNamespace() + "/" + o.GetName() }

// object is a copy of what an informer has under a key, nil if there is none.
func (c *controller) object(of cache.SharedIndexInformer, key string) (*object, error) {
	found, there, err := of.GetStore().GetByKey(key)
	if err != nil || !there {
		return nil, err
	}
	o, ok := found.(*object)
	if !ok {
		return nil, fmt.Errorf("%s is kept as %T", key, found)
	}
	return o.DeepCopy(), nil
}

// keep brings a job and its object together.
func (c *controller) keep(ctx context.Context, id job.ID, o *object) (time.Duration, error) {
	s := c.of(keyOf(o), o.GetUID())
	old := conditionsOf(o)
	stands, known, err := c.standing(ctx, id)
	if err != nil {
		return 0, err
	}
	// What the daemon has under this name is this object's where we have said so of it: a new object under the name of one that went has no status.
	state, _, _ := unstructured.NestedString(o.Object, "status", "state")
	s.ours = s.ours || state != ""
	if s.ours && !known && over(old) {
		return 0, nil // it was forgotten since; its object says how it ended
	}
	if generation, before := has(old, accepted); s.verdict.status == "" && s.ours && known && before && generation == o.GetGeneration() {
		s.verdict = yes(generation, welcome) // whoever was here before us has offered it
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

// settled says whether nothing but a change of the object changes what was said of it.
func (s *seen) settled(generation int64) bool {
	return s.verdict.generation == generation && (s.verdict.status == metav1.ConditionTrue || s.verdict.reason == invalid || s.verdict.reason == changed)
}

// over says whether an object's conditions say that its job is over.
func over(list []metav1.Condition) bool {
	_, done := has(list, complete)
	_, not := has(list, failed)
	return done || not
}

// The reasons of objects that no waiting makes good, and what is said of a job that was accepted.
const (
	invalid = "Invalid"
	changed = "Changed"
	welcome = "its pieces are cut to fit what is left over, as it comes"
)

// offer submits an object's job. The same object in the same generation is the same request, so that it may be offered again by whoever comes after us. What
// keeps it from being accepted is a verdict; an error is what says nothing of the job.
func (c *controller) offer(ctx context.Context, id job.ID, o *object, ours, known bool) (verdict, error) {
	generation := o.GetGeneration()
	j, err := parseJob(o)
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
	if !ours && known {
		return c.offerAnew(ctx, id, o, j)
	}
	return c.answered(generation, c.submit(ctx, o, j, false))
}

// submit sends an object's job to the daemon.
func (c *controller) submit(ctx context.Context, o *object, j config.Job, replace bool) host.Outcome {
	return c.daemon.SubmitAll(ctx, []host.Submission{{Request: request(o, "submit"), Spec: j.Spec, Workdir: j.Stored(), Replace: replace}}, nil)[0]
}

// offerAnew offers a job whose name the daemon has already. It is the same job, where we submitted it and did not come to say so. Else it is what is left of an
// object that went while nobody looked, and gives way.
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

// answered is what became of a submission.
func (c *controller) answered(generation int64, out host.Outcome) (verdict, error) {
	switch kind := errkind.Of(out.Err); {
	case out.Err == nil:
		return yes(generation, welcome), nil
	case kind == errkind.Unavailable || kind == errkind.Unknown:
		return verdict{}, out.Err
	case kind == errkind.Exists:
		return no(generation, changed, "a job can't be changed once it was accepted, and goes on as it was: put spec back, or delete it and apply it again"), nil
	default:
		word := kind.String()
		return no(generation, "Refused", word+": "+out.Err.Error()), nil
	}
}

// request identifies a call about an object: the same one whoever makes it again.
func request(o *object, what string) string {
	return fmt.Sprintf("%s.%d.%s", o.GetUID(), o.GetGeneration(), what)
}

// standing is how a job stands; false: the daemon does not have it.
func (c *controller) standing(ctx context.Context, id job.ID) (status.Job, bool, error) {
	list, err := c.daemon.Standing(ctx, []job.ID{id})
	if errkind.Of(err) == errkind.NotFound {
		return status.Job{}, false, nil
	}
	if err != nil {
		return status.Job{}, false, err
	}
	if namespace, _, ours := cluster.SplitJob(id); ours { // whoever may read the object may not know of others
		list[0].Reason = cluster.Discreet(list[0].Reason, namespace)
	}
	return list[0], true, nil
}

// leave ends a job whose object is to go (o), or has gone (nil): it is cancelled, what runs of it ends as a cancelled job's does, and once the daemon has forgotten
// it the object may go.
func (c *controller) leave(ctx context.Context, id job.ID, o *object) (time.Duration, error) {
	if o != nil && !slices.Contains(o.GetFinalizers(), holding) {
		return 0, nil // others hold it
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
		if err := c.daemon.Cancel(ctx, name+".cancel", id); err != nil && errkind.Of(err) != errkind.Conflict && errkind.Of(err) != errkind.NotFound {
			return 0, err
		}
		switch err := c.daemon.Delete(ctx, "", id); errkind.Of(err) {
		case errkind.Conflict: // something of it runs still
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

// release takes our finalizer off an object, whoever has put it there: a copy that was restored with it came from others.
func (c *controller) release(ctx context.Context, o *object) error {
	left := slices.DeleteFunc(slices.Clone(o.GetFinalizers()), func(f string) bool { return f == holding })
	patch, err := json.Marshal([]map[string]any{
		{"op": "test", "path": "/metadata/resourceVersion", "value": o.GetResourceVersion()}, {"op": "replace", "path": "/metadata/finalizers", "value": left},
	})
	if err != nil {
		return err
	}
	_, err = c.client.Resource(jobs).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: manager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// apply writes the status of an object, which is ours, by server-side apply. An object that is gone needs nothing; with its uid no other is made in its place.
func (c *controller) apply(ctx context.Context, o *object, said map[string]any) error {
	meta := map[string]any{"name": o.GetName(), "uid": string(o.GetUID())}
	if ns := o.GetNamespace(); ns != "" {
		meta["namespace"] = ns
	}
	data, err := json.Marshal(map[string]any{"apiVersion": o.GetAPIVersion(), "kind": o.GetKind(), "metadata": meta, "status": said})
	if err != nil {
		return err
	}
	resource := map[string]schema.GroupVersionResource{config.JobKind: jobs, config.QueueKind: queues, config.SlicePoolKind: slicePools}[o.GetKind()]
	force := true
	_, err = c.client.Resource(resource).Namespace(o.GetNamespace()).Patch(ctx, o.GetName(), types.ApplyPatchType, data, metav1.PatchOptions{FieldManager: manager, Force: &force}, "status")
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil && strings.Contains(err.Error(), ".status.operator: field not declared in schema"): // helm upgrade leaves definitions as they are
		if c.older.Swap(true) {
			return err // said already, and this one was made before
		}
		c.log.Warn("the definitions of the custom resources are an older version's: a Job's operator is not in its status. kubectl apply --server-side --force-conflicts -f those of this version", "error", err)
		without := maps.Clone(said)
		delete(without, "operator")
		return c.apply(ctx, o, without)
	}
	return err
}

// write writes a status where it is not what was written last. It is written at most once in between: what is left is written after what it says.
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
	case string(text) == s.wrote && now.Sub(s.at) < settle: // what we have of the object may be from before our last word
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

// tell makes events of what became of a job.
func (c *controller) tell(o *object, s *seen, j *status.Job, known bool) {
	if !known || s.told && s.state == j.State {
		return
	}
	first := !s.told
	s.state, s.told = j.State, true
	if word, _, _ := unstructured.NestedString(o.Object, "status", "state"); first && word == j.State.String() {
		return // whoever was here before us told it
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
