package jobs

import (
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	"sluice.dev/sluice/internal/face/cli/clitest"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/face/api/apitest"
)

// TestStandingOf is the line of wait, for one job and for several.
func TestStandingOf(t *testing.T) {
	a := clitest.Session(t, apitest.New(), apitest.Now)
	c, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	ask := func(names ...string) []*pb.Job {
		resp, err := waitOnce(t.Context(), c, names, 0)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Jobs
	}
	lines := &pb.Job{Name: "many", State: pb.Job_RUNNING, Progress: 50, Reported: 5, Total: 200, Skipped: 20, Unit: "line", Running: 2,
		Started: timestamppb.Now()}
	if got, want := standingOf(a, []*pb.Job{lines}), "many  RUNNING  30+5/200 17%, 20 skipped  2 running"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for _, x := range []struct {
		want  string
		names []string
	}{
		{"count-words  RUNNING  4000+900/10000 49%  1 running  may be done in 5m to 8m", []string{"count-words"}},
		{"train  PENDING  0/90000 0%  may start in 10m to 30m  no window is long enough: needs 5m15s", []string{"train"}},
		{"gang  FAILED  0/1 0%", []string{"gang"}},
		{"1 of 2 jobs over  1 running  74%  may be done in 5m to 8m", []string{"count-words", "gang"}},
		{"1 of 3 jobs over  1 running  49%", []string{"count-words", "train", "gang"}},
	} {
		if got := standingOf(a, ask(x.names...)); got != x.want {
			t.Errorf("%q, want %q", got, x.want)
		}
	}
}
