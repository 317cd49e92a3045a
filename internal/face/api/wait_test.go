package api_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/face/api/apitest"
)

// TestWait: it answers at once for jobs that are over, in time when nothing happens, and soon after a change.
func TestWait(t *testing.T) {
	fake := apitest.New()
	head := &bringing{}
	_, c := serve(t, api.Options{Service: fake, Machines: head})
	wait := func(d time.Duration, names ...string) *pb.WaitJobResponse {
		t.Helper()
		resp, err := c.WaitJob(t.Context(), connect.NewRequest(&pb.WaitJobRequest{Names: names, Timeout: durationpb.New(d)}))
		if err != nil {
			t.Fatal(err)
		}
		return resp.Msg
	}
	if got := wait(time.Minute, "gang"); !got.Done || got.Jobs[0].State != pb.Job_FAILED {
		t.Errorf("got %v", got)
	}
	if got := wait(10*time.Millisecond, "gang", "train"); got.Done || len(got.Jobs) != 2 {
		t.Errorf("got %v", got)
	}
	if _, err := c.WaitJob(t.Context(), connect.NewRequest(&pb.WaitJobRequest{Names: []string{"nobody"}})); api.Kind(
		err) != errkind.NotFound {
		t.Errorf("error %v", err)
	}
	go fake.Set(status.Job{Name: "train", State: job.Finished})
	if got := wait(time.Minute, "train"); !got.Done || got.Jobs[0].State != pb.Job_COMPLETED {
		t.Errorf("got %v", got)
	}
	if want := []job.ID{"gang", "train"}; !slices.Equal(head.brought, want) {
		t.Errorf("outputs were waited for of %v, want %v: of jobs that are over", head.brought, want)
	}
}

// bringing is a head that notes of which jobs it was to bring what machines have left.
type bringing struct {
	api.Machines
	brought []job.ID
}

func (b *bringing) Bring(_ context.Context, names ...job.ID) { b.brought = append(b.brought, names...) }
