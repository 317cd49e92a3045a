//go:build kubernetes

package client

import (
	"cmp"
	"context"
	"slices"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/face/api"
)

const (
	// page is the number of objects listed in one call.
	page = 500
	// look is the polling interval.
	look = time.Second
)

// ListJobs lists the namespace's newest jobs, ordered by submission.
func (h *handler) ListJobs(ctx context.Context, r *connect.Request[pb.ListJobsRequest]) (*connect.Response[pb.ListJobsResponse], error) {
	m := r.Msg
	states, err := api.States(m.States)
	if err != nil {
		return nil, sent(errkind.Errorf(errkind.Invalid, "states: %w", err))
	}
	if m.Owner != "" || m.Mine {
		return nil, sent(errkind.Errorf(errkind.Unsupported, "in a Kubernetes cluster who has submitted a job is not recorded: list by "+
			"queue, or use a namespace for each team"))
	}
	var list []*pb.Job
	for next := ""; ; {
		some, err := h.in.of(jobs).List(ctx, metav1.ListOptions{Limit: page, Continue: next})
		if err != nil {
			return nil, sent(h.in.say.explain(err, "list", "jobs"))
		}
		for i := range some.Items {
			list = append(list, jobOf(&some.Items[i], time.Now()))
		}
		if next = some.GetContinue(); next == "" {
			break
		}
	}
	slices.SortStableFunc(list, func(a, b *pb.Job) int {
		return cmp.Or(a.Submitted.AsTime().Compare(b.Submitted.AsTime()), cmp.Compare(a.Name, b.Name))
	})
	if m.Before != "" {
		at := slices.IndexFunc(list, func(j *pb.Job) bool { return j.Name == m.Before })
		if at < 0 {
			return nil, sent(errkind.Errorf(errkind.NotFound, "there is no job %s in %s", m.Before, h.in.say))
		}
		list = list[:at]
	}
	list = slices.DeleteFunc(list, func(j *pb.Job) bool {
		return m.Queue != "" && j.Queue != m.Queue || states != 0 && !states.Has(stateOf(j.State))
	})
	out := &pb.ListJobsResponse{Jobs: list}
	if older := len(list) - int(m.Limit); m.Limit > 0 && older > 0 {
		out.Jobs, out.LeftOut = list[older:], int32(min(older, 1<<31-1)) //nolint:gosec // bounded
	}
	return connect.NewResponse(out), nil
}

// WaitJob answers when the named jobs are over, or at its timeout.
func (h *handler) WaitJob(ctx context.Context, r *connect.Request[pb.WaitJobRequest]) (*connect.Response[pb.WaitJobResponse], error) {
	wait := api.DefaultWait
	if r.Msg.Timeout != nil {
		wait = r.Msg.Timeout.AsDuration()
	}
	over := time.After(wait)
	for {
		out := &pb.WaitJobResponse{Done: true}
		for _, name := range r.Msg.Names {
			o, err := h.in.get(ctx, name)
			if err != nil {
				return nil, sent(err)
			}
			j := jobOf(o, time.Now())
			out.Jobs, out.Done = append(out.Jobs, j), out.Done && j.Final
		}
		if out.Done {
			return connect.NewResponse(out), nil
		}
		select {
		case <-time.After(look):
		case <-over:
			return connect.NewResponse(out), nil
		case <-ctx.Done():
			return nil, connect.NewError(connect.CodeCanceled, context.Cause(ctx))
		}
	}
}

// get reads a job's object.
func (s *space) get(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	o, err := s.of(jobs).Get(ctx, name, metav1.GetOptions{})
	return o, s.say.explain(err, "get", "jobs")
}

// jobOf is a job as told by its object.
func jobOf(o *unstructured.Unstructured, now time.Time) *pb.Job {
	text := func(path ...string) string { s, _, _ := unstructured.NestedString(o.Object, path...); return s }
	count := func(path ...string) int64 { n, _, _ := unstructured.NestedInt64(o.Object, path...); return n }
	moment := func(key string) *timestamppb.Timestamp {
		if t, err := time.Parse(time.RFC3339, text("status", key)); err == nil {
			return timestamppb.New(t)
		}
		return nil
	}
	j := &pb.Job{
		Name: o.GetName(), Queue: cmp.Or(text("spec", "queue"), config.DefaultQueue), Priority: int32(count("spec", "priority")),
		//nolint:gosec // its definition bounds it
		State: pb.Value[pb.Job_State](text("status", "state")), Reason: text("status", "reason"), Progress: count("status", "committed"),
		Total:   count("status", "total"),
		Subjobs: int32(count("status", "subjobs")), Running: int32(count("status", "running")), Lost: int32(count("status", "lost")),
		//nolint:gosec // written from an int32
		Submitted: moment("submitted"), Started: moment("started"), Ended: moment("ended"), Wait: durationpb.New(0),
	}
	for _, kind := range []struct{ key, unit string }{{"items", "item"}, {"steps", "step"}, {"rigid", "run"}, {"external", "unit"}} {
		if _, there, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", kind.key); there {
			j.Kind, j.Unit = pb.Value[pb.Job_Kind](kind.key), cmp.Or(text("spec", kind.key, "unit"), kind.unit)
		}
	}
	if j.State == 0 { // not taken by an operator
		j.State, j.Reason = pb.Job_PENDING, notTaken(o)
		if j.Total = count("spec", pb.Word(j.Kind), "total"); j.Kind != pb.Job_STEPS { // a chain may have none
			j.Total = max(j.Total, 1)
		}
	}
	s := stateOf(j.State)
	j.StateCode, j.Final = s.Code(), s.Final()
	if j.Submitted == nil {
		j.Submitted = timestamppb.New(o.GetCreationTimestamp().Time)
	}
	until := now
	for _, t := range []*timestamppb.Timestamp{j.Ended, j.Started} {
		if t != nil {
			until = t.AsTime()
		}
	}
	j.Wait = durationpb.New(max(0, until.Sub(j.Submitted.AsTime())))
	return j
}

// stateOf is a state as the core has it; one of a later operator counts as waiting.
func stateOf(s pb.Job_State) job.State { return job.State(max(s, pb.Job_PENDING) - pb.Job_PENDING) }

// taken reports whether an operator has the job, whatever the object's conditions say.
func taken(o *unstructured.Unstructured) bool {
	state, _, _ := unstructured.NestedString(o.Object, "status", "state")
	return state != ""
}

// notTaken explains why no operator has a job.
func notTaken(o *unstructured.Unstructured) string {
	if v := accepted(o); v.status != "" && v.status != metav1.ConditionTrue {
		return "not accepted: " + v.message
	}
	return "no operator has taken it yet"
}

// said is a condition of an object, as far as it is shown.
type said struct {
	status          metav1.ConditionStatus
	reason, message string
	generation      int64
}

// accepted is the condition that says whether an operator took the job; zero: none yet.
func accepted(o *unstructured.Unstructured) said { return conditionOf(o, "Accepted") }

// conditionOf is a condition by type; zero: none.
func conditionOf(o *unstructured.Unstructured, kind string) said {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, e := range list {
		c, _ := e.(map[string]any)
		if c["type"] != kind {
			continue
		}
		word := func(key string) string { s, _ := c[key].(string); return s }
		generation, _ := c["observedGeneration"].(int64)
		return said{metav1.ConditionStatus(word("status")), word("reason"), word("message"), generation}
	}
	return said{}
}
