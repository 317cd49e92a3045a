package supervisor

import (
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/adapter"
)

// TestWhoseFailureAnAdapterSays: two exit statuses are an adapter's words, and no command's without one.
func TestWhoseFailureAnAdapterSays(t *testing.T) {
	var plain, adapted shim.Lease
	adapted.Adapter.Lines.Input = "in"
	for _, c := range []struct {
		l    *shim.Lease
		was  job.Outcome
		code int
		want job.Outcome
	}{
		{&adapted, job.ExitFailed, adapter.Unready, job.StartFailed},
		{&adapted, job.ExitFailed, adapter.NoRoom, job.NodeFailed},
		{&adapted, job.ExitFailed, 1, job.ExitFailed},
		{&adapted, job.LimitKilled, adapter.NoRoom, job.LimitKilled},
		{&plain, job.ExitFailed, adapter.NoRoom, job.ExitFailed},
	} {
		r := job.Result{Outcome: c.was, ExitCode: c.code, Progress: 3, Detail: "exit status"}
		saysWhose(c.l, &r)
		if r.Outcome != c.want || r.Progress != 3 {
			t.Errorf("%v with status %d is %v at %d, want %v", c.was, c.code, r.Outcome, r.Progress, c.want)
		}
	}
}
