//go:build kubernetes

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"connectrpc.com/connect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/face/operator"
)

// heard is how long a submission waits for the operator's verdict, without which the object stays, and a deletion for its end.
const heard = 10 * time.Second

// Submit creates objects for a file's jobs and reports the operator's verdicts. A work directory that is sent along is uploaded first.
func (h *handler) Submit(ctx context.Context, r *connect.Request[pb.SubmitRequest]) (*connect.Response[pb.SubmitResponse], error) {
	list, err := config.ParseJobs(r.Msg.FileName, []byte(r.Msg.Job))
	if err != nil {
		return nil, sent(err)
	}
	out, workdir, owner := &pb.SubmitResponse{}, "", ""
	for _, j := range list {
		if j.Workdir != "" && j.Stored() == "" {
			if workdir == "" {
				if workdir, owner, err = h.upload(ctx, r.Msg.Snapshot); err != nil {
					return nil, sent(fmt.Errorf("its workdir: %w", err))
				}
			}
			j.Workdir = workdir
		}
		receipt, err := h.submit(ctx, j, owner, r.Msg)
		if err != nil {
			return nil, sent(err)
		}
		out.Receipts = append(out.Receipts, receipt)
	}
	return connect.NewResponse(out), nil
}

// submit creates one job's object, assigned to the operator whose store has its work directory, if one was uploaded.
func (h *handler) submit(ctx context.Context, j config.Job, owner string, m *pb.SubmitRequest) (*pb.Receipt, error) {
	o, err := objectOf(j)
	if err != nil {
		return nil, err
	}
	marks := map[string]string{cluster.AnnotationRequest: m.RequestId}
	if owner != "" {
		marks[cluster.AnnotationOwner] = owner
	}
	o.SetAnnotations(marks)
	made, err := h.in.of(jobs).Create(ctx, o, metav1.CreateOptions{FieldManager: manager})
	switch {
	case apierrors.IsAlreadyExists(err):
		return h.submitAgain(ctx, j, o, m)
	case err != nil:
		return nil, h.in.say.explain(err, "create", "jobs")
	}
	return h.judged(ctx, made)
}

// submitAgain handles a job whose name is taken, by itself or by another job.
func (h *handler) submitAgain(ctx context.Context, j config.Job, o *unstructured.Unstructured, m *pb.SubmitRequest) (*pb.Receipt, error) {
	there, err := h.in.get(ctx, o.GetName())
	if err != nil {
		return nil, err
	}
	same, err := alike(there, j)
	replaces := m.Replace && jobOf(there, time.Now()).Final
	switch {
	case err != nil:
		return nil, err
	// a repetition of the call that made it
	case same && m.RequestId != "" && there.GetAnnotations()[cluster.AnnotationRequest] == m.RequestId:
		return h.judged(ctx, there)
	case same && !replaces:
		return receiptOf(there, false), nil
	case !m.Replace:
		return nil, errkind.Errorf(errkind.Exists, "a job of this name is there already, with another spec: choose another name, or put "+
			"this one in its place with --replace when it is over, which removes its output")
	}
	if err = h.replace(ctx, j, there); err != nil {
		return nil, err
	}
	made, err := h.in.of(jobs).Create(ctx, o, metav1.CreateOptions{FieldManager: manager})
	if err != nil {
		return nil, h.in.say.explain(err, "create", "jobs")
	}
	return h.judged(ctx, made)
}

// replace removes a job that is over, with its output, if its operator would accept the new one; a job that no operator took is removed
// without asking.
func (h *handler) replace(ctx context.Context, j config.Job, there *unstructured.Unstructured) error {
	if !jobOf(there, time.Now()).Final && taken(there) {
		return errkind.Errorf(errkind.Conflict, "the job of that name is not over; only one that is can be replaced: cancel it first, "+
			"or choose another name")
	}
	if taken(there) {
		if _, err := h.dryRun(ctx, j, operator.Owner(there)); err != nil {
			return err
		}
	}
	return h.in.remove(ctx, there)
}

// judged waits for the operator's verdict on a new object. A refused one is deleted again: nothing was submitted.
func (h *handler) judged(ctx context.Context, o *unstructured.Unstructured) (*pb.Receipt, error) {
	over := time.After(heard)
	for {
		switch v := accepted(o); {
		case v.status == metav1.ConditionTrue || taken(o):
			return receiptOf(o, true), nil
		case v.status != "":
			err := errkind.Errorf(kindOf(v), "%s", v.message)
			uid, version := o.GetUID(), o.GetResourceVersion() // preconditions: it may be accepted meanwhile
			gone := h.in.of(jobs).Delete(ctx, o.GetName(),
				metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
			switch {
			case gone == nil || apierrors.IsNotFound(gone):
				return nil, err
			case !apierrors.IsConflict(gone):
				return nil, errkind.Errorf(errkind.Of(err), "%w (and its object stays, and is offered again: %s)", err, words(gone))
			}
		}
		select {
		case <-time.After(look / 4):
		case <-over:
			r := receiptOf(o, true)
			r.Warnings = append(r.Warnings, "no operator has taken it yet: it will be once one works; `kubectl get pods -A -l "+
				"app.kubernetes.io/name=sluice` shows whether one is there")
			return r, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		var err error
		if o, err = h.in.get(ctx, o.GetName()); err != nil {
			return nil, err
		}
	}
}

// kindOf is the error kind of a refusal: for the daemon's refusals the word before the message.
func kindOf(v said) errkind.Kind {
	word, _, _ := strings.Cut(v.message, ": ")
	for k := errkind.Unknown + 1; k <= errkind.Corrupt; k++ {
		if v.reason == operator.KindWord(k) || v.reason == "Refused" && word == k.String() {
			return k
		}
	}
	return errkind.Unknown
}

func receiptOf(o *unstructured.Unstructured, created bool) *pb.Receipt {
	r := &pb.Receipt{Name: o.GetName(), Created: created, Generation: 1}
	if j := jobOf(o, time.Now()); j.Final {
		r.State, r.Reason = j.State, j.Reason
	}
	return r
}

// objectOf is a job's object: the file with the parser's defaults.
func objectOf(j config.Job) (*unstructured.Unstructured, error) {
	text, err := config.RenderJob(j.Spec, j.Workdir)
	if err != nil {
		return nil, err
	}
	data, err := yaml.ToJSON(text)
	if err != nil {
		return nil, fmt.Errorf("job %s: %w", j.Spec.Name, err)
	}
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal(data, o); err != nil {
		return nil, fmt.Errorf("job %s: %w", j.Spec.Name, err)
	}
	return o, nil
}

// alike reports whether an object parses to the very job.
func alike(o *unstructured.Unstructured, j config.Job) (bool, error) {
	list, err := config.ParseObject(o.GetName(), operator.FileOf(o))
	if err != nil || len(list) != 1 {
		return false, nil //nolint:nilerr // one that does not parse is another job
	}
	there, err1 := config.RenderJob(list[0].Spec, list[0].Workdir)
	here, err2 := config.RenderJob(j.Spec, j.Workdir)
	if err1 != nil {
		return false, err1
	}
	return bytes.Equal(there, here), err2
}

// DryRun has the API server validate the objects and the operator judge them. Nothing is created.
func (h *handler) DryRun(ctx context.Context, r *connect.Request[pb.DryRunRequest]) (*connect.Response[pb.DryRunResponse], error) {
	list, err := config.ParseJobs(r.Msg.FileName, []byte(r.Msg.Job))
	if err != nil {
		return nil, sent(err)
	}
	out := &pb.DryRunResponse{}
	for _, j := range list {
		if j.Workdir != "" && j.Stored() == "" { // would be uploaded
			j.Workdir, j.Spec.Launch.Subdir = "", ""
		}
		o, err := objectOf(j)
		if err != nil {
			return nil, sent(err)
		}
		_, err = h.in.of(jobs).Create(ctx, o, metav1.CreateOptions{FieldManager: manager, DryRun: []string{metav1.DryRunAll}})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, sent(h.in.say.explain(err, "create", "jobs"))
		}
		e, err := h.dryRun(ctx, j, "")
		if err != nil {
			return nil, sent(err)
		}
		out.Explanations = append(out.Explanations, e)
	}
	return connect.NewResponse(out), nil
}

// dryRun asks the named operator, or any if none is named, to judge a job.
func (h *handler) dryRun(ctx context.Context, j config.Job, of string) (*pb.Explanation, error) {
	text, err := config.RenderJob(j.Spec, j.Workdir)
	if err != nil {
		return nil, err
	}
	var e pb.Explanation
	return &e, h.in.answer(ctx, map[string]any{"ask": config.AskDryRun, "file": string(text), "operator": of}, &e)
}
