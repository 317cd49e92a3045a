package submit

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
)

// How much is asked about in one call by check.
const (
	checkJobs  = 100
	checkBytes = 256 << 10
)

// check asks whether each of several jobs could run before the first is sent, so that one that never can changes nothing.
// What passes by itself, such as a full queue, and a daemon that does not answer are told when the job is sent.
func check(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, list []submission) error {
	if len(list) < 2 {
		return nil
	}
	var wrong []error
	for len(list) > 0 {
		var text []byte
		n := 0
		for n < len(list) && n < checkJobs && (n == 0 || len(text)+len(list[n].text) < checkBytes) {
			text = append(append(text, "---\n"...), list[n].text...)
			n++
		}
		_, err := c.DryRun(ctx, connect.NewRequest(&pb.DryRunRequest{Job: string(text), FileName: list[0].file}))
		if errkind.Of(err) == errkind.Invalid {
			wrong = append(wrong, checkEach(ctx, c, list[:n])...)
		}
		list = list[n:]
	}
	return allOf(wrong)
}

// checkEach names the jobs that could never run, but for those that are there already: to send them again is safe.
func checkEach(ctx context.Context, c sluicev1alpha1connect.SluiceServiceClient, list []submission) (wrong []error) {
	for _, s := range list {
		_, err := c.DryRun(ctx, connect.NewRequest(&pb.DryRunRequest{Job: string(s.text), FileName: s.file}))
		if errkind.Of(err) != errkind.Invalid {
			continue
		}
		if _, known := c.GetJob(ctx, connect.NewRequest(&pb.GetJobRequest{Name: s.name})); known == nil {
			continue
		}
		wrong = append(wrong, fmt.Errorf("%s: job %s: %w", s.file, s.name, err))
	}
	return wrong
}

// allOf joins errors into one of the kind of the first.
func allOf(wrong []error) error {
	if len(wrong) == 0 {
		return nil
	}
	return &errkind.Error{Kind: errkind.Of(wrong[0]), Err: errors.Join(wrong...)}
}
