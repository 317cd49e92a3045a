package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/users"
	"sluice.dev/sluice/internal/face/api/again"
)

// handler turns API calls into calls of the service.
type handler struct {
	service  Service
	machines Machines // nil: this daemon is no head
	// containers: subjobs are started from images.
	containers bool
	now        func() time.Time
}

// answer wraps a message, or the error as it is sent.
func answer[T any](m *T, err error) (*connect.Response[T], error) {
	if err != nil {
		return nil, wire(err)
	}
	return connect.NewResponse(m), nil
}

// Submit accepts the jobs of one file.
func (h *handler) Submit(ctx context.Context, r *connect.Request[pb.SubmitRequest]) (*connect.Response[pb.SubmitResponse], error) {
	m := r.Msg
	var f fields
	id := f.request(m.RequestId)
	workdir := m.Snapshot
	switch {
	case len(workdir) > MaxWorkdir:
		f.wrong("snapshot", "has %d bytes; at most %d are taken", len(workdir), MaxWorkdir)
	case len(workdir) > 0 && (len(workdir) < 2 || workdir[0] != 0x1f || workdir[1] != 0x8b):
		f.wrong("snapshot", "is no gzip; want a tar.gz of the work directory")
	case len(workdir) == 0:
		workdir = nil
	}
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	jobs, err := config.ParseJobs(fileName(m.FileName), []byte(m.Job))
	if err != nil {
		return nil, wire(err)
	}
	if err := maySubmit(ctx, jobs); err != nil {
		return nil, wire(err)
	}
	for _, j := range jobs {
		if j.Workdir != "" && j.Stored() == "" && workdir == nil {
			f.wrong(string(j.Spec.Name), "its workdir %q did not come along; send it as snapshot, a tar.gz, or leave workdir out",
				j.Workdir)
		}
	}
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	if err := h.refused(ctx, jobs); err != nil {
		return nil, wire(err)
	}
	list := make([]Submission, len(jobs))
	for i, j := range jobs {
		list[i] = Submission{Request: id, Spec: j.Spec, Replace: m.Replace, Workdir: j.Stored()}
		if id != "" && len(jobs) > 1 {
			list[i].Request = id + "/" + string(j.Spec.Name)
		}
	}
	var out pb.SubmitResponse
	var failed error
	for i, o := range h.service.SubmitAll(ctx, list, workdir) {
		if o.Err != nil {
			if r := again.Receipt(ctx, h.service.Job, &jobs[i], workdir, m.Replace, o.Err); r != nil {
				out.Receipts = append(out.Receipts, r)
				continue
			}
			if failed == nil {
				failed = &errkind.Error{Kind: errkind.Of(o.Err), Err: of(jobs, i, o.Err)}
			}
			continue
		}
		m := &pb.Receipt{
			Name: string(o.Name), Created: o.Created, Warnings: slices.Concat(jobs[i].Renamed,
				config.Warnings(jobs[i].Spec, workdir != nil || jobs[i].Stored() != "", h.containers, time.Now())),
			JournalSeq: o.Position.Seq, JournalDigest: o.Position.String(), Generation: uint32(o.Generation),
		}
		if v := o.Verdict; v.State.Final() {
			m.State, m.Reason = stateOf(v.State), v.Reason
		}
		out.Receipts = append(out.Receipts, m)
	}
	if failed != nil {
		return nil, wire(partly(failed, out.Receipts))
	}
	return connect.NewResponse(&out), nil
}

// of says which job of a file of several an error is about.
func of(jobs []config.Job, i int, err error) error {
	if len(jobs) < 2 {
		return err
	}
	return fmt.Errorf("%s: %w", jobs[i].Spec.Name, err)
}

// refused says of all jobs of a file what would keep them from being accepted, before any is, so that a file with a job
// that can never run changes nothing. A job that is there already is the same job again, or is refused in its turn; and
// what passes by itself, such as a full queue, does not speak against the file.
func (h *handler) refused(ctx context.Context, jobs []config.Job) error {
	if len(jobs) < 2 {
		return nil
	}
	specs := make([]*job.Spec, len(jobs))
	for i, j := range jobs {
		specs[i] = j.Spec
	}
	all, err := h.service.Check(ctx, specs)
	if err != nil {
		return err
	}
	if all = slices.DeleteFunc(all, func(err error) bool { return err == nil || errkind.Of(err) != errkind.Invalid }); len(all) == 0 {
		return nil
	}
	return errkind.Errorf(errkind.Invalid, "%w", errors.Join(all...))
}

// partly names the jobs of a file that were accepted when another one is refused.
func partly(err error, done []*pb.Receipt) error {
	if len(done) == 0 {
		return err
	}
	names := make([]string, len(done))
	for i, r := range done {
		names[i] = r.Name
	}
	return &errkind.Error{Kind: errkind.Of(err), Err: fmt.Errorf("%w\naccepted, and standing: %s; submitting the file again is safe", err,
		strings.Join(names, ", "))}
}

// fileName is what a job file is called in messages.
func fileName(name string) string {
	if name == "" || len(name) > 255 {
		return "job"
	}
	return name
}

// DryRun says what Submit would do.
func (h *handler) DryRun(ctx context.Context, r *connect.Request[pb.DryRunRequest]) (*connect.Response[pb.DryRunResponse], error) {
	jobs, err := config.ParseJobs(fileName(r.Msg.FileName), []byte(r.Msg.Job))
	if err != nil {
		return nil, wire(err)
	}
	if err := maySubmit(ctx, jobs); err != nil {
		return nil, wire(err)
	}
	var out pb.DryRunResponse
	var errs []error
	kind := errkind.Unknown
	for _, j := range jobs {
		e, err := h.service.DryRun(ctx, j.Spec)
		if err != nil {
			errs, kind = append(errs, err), errkind.Of(err)
			continue
		}
		out.Explanations = append(out.Explanations, explanationMessage(&e))
		for _, w := range slices.Concat(j.Renamed, config.Warnings(j.Spec, j.Workdir != "", h.containers, time.Now())) {
			out.Warnings = append(out.Warnings, string(j.Spec.Name)+": "+w)
		}
	}
	if len(errs) > 0 {
		return nil, wire(&errkind.Error{Kind: kind, Err: errors.Join(errs...)})
	}
	return connect.NewResponse(&out), nil
}

// Cancel ends a job.
func (h *handler) Cancel(ctx context.Context, r *connect.Request[pb.CancelRequest]) (*connect.Response[pb.CancelResponse], error) {
	var f fields
	id, name := f.request(r.Msg.RequestId), h.job(ctx, &f, "name", r.Msg.Name)
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	return answer(&pb.CancelResponse{}, h.service.Cancel(ctx, id, name))
}

// Requeue begins another life of a job that is over.
func (h *handler) Requeue(ctx context.Context, r *connect.Request[pb.RequeueRequest]) (*connect.Response[pb.RequeueResponse], error) {
	m := r.Msg
	var f fields
	id, name, deadline := f.request(m.RequestId), f.id("name", m.Name), f.instant("deadline", m.Deadline, 0)
	if m.NoDeadline {
		if m.Deadline != nil {
			f.wrong("deadline", "is given, and no_deadline too; want one of them")
		}
		deadline = quantity.Never
	}
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	if err := h.mayRequeue(ctx, name); err != nil {
		return nil, wire(err)
	}
	generation, err := h.service.Requeue(ctx, id, name, deadline)
	return answer(&pb.RequeueResponse{Generation: uint32(generation)}, err)
}

// Delete forgets a job that is over.
func (h *handler) Delete(ctx context.Context, r *connect.Request[pb.DeleteRequest]) (*connect.Response[pb.DeleteResponse], error) {
	var f fields
	id, name := f.request(r.Msg.RequestId), f.id("name", r.Msg.Name)
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	return answer(&pb.DeleteResponse{}, h.service.Delete(ctx, id, name))
}

// PauseJob holds a job back or lets it go on.
func (h *handler) PauseJob(ctx context.Context, r *connect.Request[pb.PauseJobRequest]) (*connect.Response[pb.PauseJobResponse], error) {
	var f fields
	id, name := f.request(r.Msg.RequestId), h.job(ctx, &f, "name", r.Msg.Name)
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	return answer(&pb.PauseJobResponse{}, h.service.PauseJob(ctx, id, name, r.Msg.Pause))
}

// GetJob is one job with its history.
func (h *handler) GetJob(ctx context.Context, r *connect.Request[pb.GetJobRequest]) (*connect.Response[pb.GetJobResponse], error) {
	var f fields
	name := h.job(ctx, &f, "name", r.Msg.Name)
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	j, err := h.service.Job(ctx, name)
	if err != nil {
		return nil, wire(err)
	}
	out := h.shown(ctx, &j)
	if c := users.Of(ctx); j.Spec != nil && (c == nil || c.Reads(j.Owner())) {
		workdir := ""
		if j.Spec.Launch.Workdir != "" {
			workdir = "."
		}
		spec := *j.Spec // what was accepted has no name, a job file has
		spec.Name = j.Name
		text, err := config.RenderJob(&spec, workdir)
		if err != nil {
			return nil, wire(err)
		}
		out.Spec = string(text)
	}
	return connect.NewResponse(&pb.GetJobResponse{Job: out}), nil
}

// shown is a job as the caller may see it: what it says of what another user's job wrote is left out.
func (h *handler) shown(ctx context.Context, j *status.Job) *pb.Job {
	m := jobMessage(j)
	if c := users.Of(ctx); c == nil || c.Reads(j.Owner()) {
		return m
	}
	m.Reason = status.Unquoted(m.Reason)
	for _, s := range m.History {
		s.Detail = ""
	}
	return m
}

// explained is an explanation as the caller may see it.
func (h *handler) explained(ctx context.Context, e *status.Explanation) *pb.Explanation {
	m := explanationMessage(e)
	if c := users.Of(ctx); c == nil || c.Reads(e.Job.Owner()) {
		return m
	}
	m.Job, m.Summary = h.shown(ctx, &e.Job), status.Unquoted(m.Summary)
	for _, r := range m.Reasons {
		r.Text = status.Unquoted(r.Text)
	}
	return m
}

// Explain says why a job waits or where it ran.
func (h *handler) Explain(ctx context.Context, r *connect.Request[pb.ExplainRequest]) (*connect.Response[pb.ExplainResponse], error) {
	var f fields
	name := h.job(ctx, &f, "name", r.Msg.Name)
	if err := f.err(); err != nil {
		return nil, wire(err)
	}
	e, err := h.service.Explain(ctx, name)
	if err != nil {
		return nil, wire(err)
	}
	return connect.NewResponse(&pb.ExplainResponse{Explanation: h.explained(ctx, &e)}), nil
}

// ExplanationMessage is an explanation as Explain answers with it, for those who answer by another way.
func ExplanationMessage(e *status.Explanation) *pb.Explanation { return explanationMessage(e) }

// GetJob answers a GetJob call of the same process. Errors are of the kinds of the service.
func GetJob(ctx context.Context, s Service, name job.ID) (*pb.Job, error) {
	h := &handler{service: s, containers: true}
	resp, err := h.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: string(name)}))
	if err != nil {
		return nil, err
	}
	return resp.Msg.Job, nil
}
