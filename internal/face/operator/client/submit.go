//go:build kubernetes

package client

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"connectrpc.com/connect"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/cluster"
	"sluice.dev/sluice/internal/edge/config"
	pb "sluice.dev/sluice/internal/edge/wire/sluice/v1alpha1"
	"sluice.dev/sluice/internal/face/operator"
)

// heard is how long a submission waits for the operator's word. Without it the object stands all the same.
const heard = 10 * time.Second

// Submit makes the objects of a file's jobs, and says what the operator makes of them. A work directory that came along is uploaded first.
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
		receipt, err := h.submit(ctx, j, owner, r.Msg.Replace)
		if err != nil {
			return nil, sent(err)
		}
		out.Receipts = append(out.Receipts, receipt)
	}
	return connect.NewResponse(out), nil
}

// submit makes one job's object, for the operator whose store has its work directory, where one was uploaded.
func (h *handler) submit(ctx context.Context, j config.Job, owner string, replace bool) (*pb.Receipt, error) {
	o, err := objectOf(j)
	if err != nil {
		return nil, err
	}
	if owner != "" {
		o.SetAnnotations(map[string]string{cluster.AnnotationOwner: owner})
	}
	made, err := h.of(jobs).Create(ctx, o, metav1.CreateOptions{FieldManager: manager})
	if apierrors.IsAlreadyExists(err) {
		there, err := h.get(ctx, o.GetName())
		if err != nil {
			return nil, err
		}
		switch same, err := alike(there, j); {
		case err != nil:
			return nil, err
		case same:
			return receiptOf(there, false), nil
		case !replace:
			return nil, errkind.Errorf(errkind.Exists, "a job of this name is there already, with another spec: choose another name, or `kubectl sluice delete %s` when it is over", o.GetName())
		}
		if err = h.remove(ctx, there); err != nil {
			return nil, err
		}
		made, err = h.of(jobs).Create(ctx, o, metav1.CreateOptions{FieldManager: manager})
		if err != nil {
			return nil, h.say.explain(err, "create", "jobs")
		}
		return h.judged(ctx, made)
	}
	if err != nil {
		return nil, h.say.explain(err, "create", "jobs")
	}
	return h.judged(ctx, made)
}

// judged waits for what the operator says of a new object. One that can never be accepted goes again: nothing was submitted.
func (h *handler) judged(ctx context.Context, o *unstructured.Unstructured) (*pb.Receipt, error) {
	over := time.After(heard)
	for {
		v := accepted(o)
		switch {
		case v.status == metav1.ConditionTrue:
			return receiptOf(o, true), nil
		case v.reason == "Invalid":
			uid := o.GetUID()
			gone := h.of(jobs).Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			if gone != nil && !apierrors.IsNotFound(gone) {
				return nil, errkind.Errorf(errkind.Invalid, "%s (and the object stays: %w)", v.message, gone)
			}
			return nil, errkind.Errorf(errkind.Invalid, "%s", v.message)
		case v.status != "":
			r := receiptOf(o, true)
			r.Warnings = append(r.Warnings, "not accepted yet, and offered again by and by: "+v.message)
			return r, nil
		}
		select {
		case <-time.After(look / 4):
		case <-over:
			r := receiptOf(o, true)
			r.Warnings = append(r.Warnings, "no operator has taken it yet: it will be once one works; `kubectl get pods -A -l app.kubernetes.io/name=sluice` shows whether one is there")
			return r, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		var err error
		if o, err = h.get(ctx, o.GetName()); err != nil {
			return nil, err
		}
	}
}

func receiptOf(o *unstructured.Unstructured, created bool) *pb.Receipt {
	r := &pb.Receipt{Name: o.GetName(), Created: created, Generation: 1}
	if j := jobOf(o, time.Now()); j.Final {
		r.State, r.Reason = j.State, j.Reason
	}
	return r
}

// objectOf is a job as its object: what a person would have written in it, with what the reader fills in.
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

// alike says whether an object is the very job: what its reader makes of it is the same.
func alike(o *unstructured.Unstructured, j config.Job) (bool, error) {
	list, err := config.ParseJobs(o.GetName(), operator.FileOf(o))
	if err != nil || len(list) != 1 {
		return false, nil //nolint:nilerr // what can't be read is another job
	}
	there, err1 := config.RenderJob(list[0].Spec, list[0].Workdir)
	here, err2 := config.RenderJob(j.Spec, j.Workdir)
	if err1 != nil {
		return false, err1
	}
	return bytes.Equal(there, here), err2
}

// DryRun has the API server hold the objects against their definition, and makes none.
func (h *handler) DryRun(ctx context.Context, r *connect.Request[pb.DryRunRequest]) (*connect.Response[pb.DryRunResponse], error) {
	list, err := config.ParseJobs(r.Msg.FileName, []byte(r.Msg.Job))
	if err != nil {
		return nil, sent(err)
	}
	out := &pb.DryRunResponse{}
	for _, j := range list {
		if j.Workdir != "" && j.Stored() == "" {
			j.Workdir = ""
			j.Spec.Launch.Subdir = ""
		}
		o, err := objectOf(j)
		if err != nil {
			return nil, sent(err)
		}
		made, err := h.of(jobs).Create(ctx, o, metav1.CreateOptions{FieldManager: manager, DryRun: []string{metav1.DryRunAll}})
		if err != nil {
			return nil, sent(h.say.explain(err, "create", "jobs"))
		}
		out.Explanations = append(out.Explanations, &pb.Explanation{Job: jobOf(made, time.Now()), Summary: "the cluster would take it; when it would run, its operator says once it is there"})
	}
	return connect.NewResponse(out), nil
}
