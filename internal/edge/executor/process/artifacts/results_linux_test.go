package artifacts

import (
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// TestWhatMayCount goes into the store: of members of a gang that saves all that they wrote, since how far it came the first one says.
func TestWhatMayCount(t *testing.T) {
	for _, c := range []struct {
		name   string
		saves  bool
		member int
		result job.Result
		want   bool
	}{
		{"nothing done", false, 0, job.Result{Progress: 10}, false},
		{"some done", false, 0, job.Result{Progress: 11}, true},
		{"a checkpoint", false, 0, job.Result{Progress: 10, Checkpoint: true}, true},
		{"nothing done by the first of a gang that saves", true, 0, job.Result{Progress: 10}, false},
		{"nothing done by another", true, 1, job.Result{Progress: 10, Outcome: job.ExitFailed}, true},
		{"nothing done by another of a gang that does not save", false, 1, job.Result{Progress: 10}, false},
	} {
		l := &shim.Lease{Part: executor.Part{Kind: job.Rigid, Range: job.Range{From: 10, To: 20}, Saves: c.saves, Member: c.member}}
		if got := Counts(&c.result, l); got != c.want {
			t.Errorf("%s: it may count: %v", c.name, got)
		}
	}
}
