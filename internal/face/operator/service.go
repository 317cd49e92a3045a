//go:build kubernetes

package operator

import (
	"context"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/face/api"
)

// service is the daemon's API less what the custom resources control.
type service struct{ api.Service }

// SubmitAll refuses jobs that can't be Pods, as for objects.
func (s service) SubmitAll(ctx context.Context, jobs []api.Submission, workdir []byte) []api.Outcome {
	for i := range jobs {
		err := startable(jobs[i].Spec)
		if err == nil && !job.ValidName(jobs[i].Spec.Name) {
			err = errkind.Errorf(errkind.Invalid, "metadata.name: jobs with a namespace in front are objects: kubectl apply it")
		}
		if err != nil {
			out := make([]api.Outcome, len(jobs))
			for j := range out {
				out[j].Err = errkind.Errorf(errkind.Of(err), "job %s: %w", jobs[i].Spec.Name, err)
			}
			return out
		}
	}
	return s.Service.SubmitAll(ctx, jobs, workdir)
}

// DryRun refuses what SubmitAll does.
func (s service) DryRun(ctx context.Context, spec *job.Spec) (status.Explanation, error) {
	if err := startable(spec); err != nil {
		return status.Explanation{}, errkind.Errorf(errkind.Of(err), "job %s: %w", spec.Name, err)
	}
	return s.Service.DryRun(ctx, spec)
}

// SetQueue refuses: the next reconciliation of Queue objects would undo it.
func (s service) SetQueue(_ context.Context, _ string, q protocol.Queue) error {
	return errkind.Errorf(errkind.Denied, "queue %s: queues are objects of the cluster here: kubectl apply a Queue of that name", q.Name)
}
