package api_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/host"
)

// full is a daemon whose disk is full: it accepts nothing.
type full struct{ *apitest.Fake }

func (full) SubmitAll(_ context.Context, jobs []host.Submission, _ []byte) []host.Outcome {
	out := make([]host.Outcome, len(jobs))
	for i := range out {
		out[i].Err = errkind.Errorf(errkind.Exhausted, "no space left on device: ask again once it is over")
	}
	return out
}

// TestAKnownJobNeedsNoRoom: on a full disk a job that is there already is known, and one with any other content is refused.
func TestAKnownJobNeedsNoRoom(t *testing.T) {
	fake := apitest.New()
	_, c := serve(t, api.Options{Service: full{fake}})
	text, packed := fmt.Sprintf(jobFile, "one", ", workdir: ."), []byte{0x1f, 0x8b, 1}
	list, err := config.ParseJobs("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	spec := *list[0].Spec
	spec.Name, spec.Launch.Workdir, spec.Launch.Files, spec.Launch.Bytes = "", fmt.Sprintf("%x", sha256.Sum256(packed)), 1, 2
	fake.Set(status.Job{Name: "one", State: job.Finished, Spec: &spec, Generation: 3, Reason: "so it is"})
	for what, r := range map[string]*pb.SubmitRequest{
		"the same":               {Job: text, Snapshot: packed},
		"another work directory": {Job: text, Snapshot: []byte{0x1f, 0x8b, 2}},
		"no work directory":      {Job: fmt.Sprintf(jobFile, "one", "")},
		"another command":        {Job: strings.Replace(text, "count.sh", "other.sh", 1), Snapshot: packed},
		"another name":           {Job: strings.Replace(text, "one", "two", 1), Snapshot: packed},
		"in its place":           {Job: text, Snapshot: packed, Replace: true},
	} {
		resp, err := c.Submit(t.Context(), connect.NewRequest(r))
		if what != "the same" {
			if api.Kind(err) != errkind.Exhausted {
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := resp.Msg.Receipts[0]; got.Name != "one" || got.Created || got.State != pb.Job_COMPLETED || got.Generation != 3 {
			t.Errorf("%+v", got)
		}
	}
}
