package cli

import (
	"context"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api/apitest"
	"sluice.dev/sluice/internal/face/cli/session"
)

// TestTopWithoutATerminal prints one picture, or what there is for programs.
func TestTopWithoutATerminal(t *testing.T) {
	addr := answering(t, apitest.New())
	r := sluice(t, addr, "", "top")
	if r.code != 0 || strings.Contains(r.out, "\x1b") || !strings.Contains(r.out, "count-words") ||
		!strings.Contains(r.out, "1 of 1 busy") {
		t.Errorf("%+v", r)
	}
	r = sluice(t, addr, "", "top", "-o", "json")
	if r.code != 0 || !strings.Contains(r.out, `"windows": [`) || !strings.Contains(r.out, `"slices": [`) {
		t.Errorf("%+v", r)
	}
	if r = sluice(t, addr, "", "top", "--every", "1ms"); r.code != command.ExitUsage {
		t.Errorf("%+v", r)
	}
}

// TestWatchWithoutATerminal prints the list again when it has changed, and only then.
func TestWatchWithoutATerminal(t *testing.T) {
	fake := apitest.New()
	addr := answering(t, fake)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out, errs safe
	done := make(chan int, 1)
	go func() {
		done <- Run(ctx, Deps{Args: []string{"jobs", "--watch", "--every", "100ms"}, Options: session.Options{Out: &out, Err: &errs,
			Now:      apitest.Now,
			Patience: -1,
			Getenv: func(k string) string {
				return map[string]string{"SLUICE_SERVER": addr}[k]
			}}})
	}()
	eventually(t, "the list is there", func() bool { return strings.Contains(out.String(), "count-words") })
	time.Sleep(300 * time.Millisecond) // looks that find nothing new
	fake.Set(status.Job{Name: "train", State: job.Finished, Kind: job.Steps, Total: 9, Progress: 9, Unit: "step"})
	eventually(t, "the change is there", func() bool { return strings.Contains(out.String(), "COMPLETED") })
	cancel()
	if code := <-done; code != 0 || strings.Count(out.String(), "count-words") != 2 || strings.Contains(out.String(), "\x1b") {
		t.Errorf("exit %d: %s%s", code, out.String(), errs.String())
	}
}
