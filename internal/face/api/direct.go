package api

import (
	"context"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
)

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
