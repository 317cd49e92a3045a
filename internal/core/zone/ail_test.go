package zone_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestANodesTroubleIsNoJobsFailure: a job whose node can't run it waits, with longer and longer pauses, and never fails; the
// others are served; and it goes on when the trouble is over.
func TestANodesTroubleIsNoJobsFailure(t *testing.T) {
	w := newWorld(t, 1024)
	trouble, starts := true, 0
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		if m.Job == "heavy" && trouble {
			starts++
			return 50 * time.Millisecond, job.Result{Outcome: job.NodeFailed, Progress: m.Body.(*protocol.Work).Range.From,
				Detail: "unpacking: no space left on device"}
		}
		return m.Body.(*protocol.Work).Plan.Wall, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
	}
	w.submit(items(t, "heavy", 20, 100, 1), items(t, "light", 200, 100, 1))
	w.until(20 * time.Minute)
	finished(t, w, "light")
	j, _ := w.z.Job(w.now, "heavy")
	if j.State != job.Waiting || !strings.Contains(j.Reason, "(Node)") || !strings.Contains(j.Reason, "no space left") {
		t.Fatalf("it is %v: %s", j.State, j.Reason)
	}
	if starts < 10 || starts > 40 {
		t.Errorf("it was tried %d times in 20 minutes, want pauses up to a minute", starts)
	}
	trouble = false
	w.until(5 * time.Minute)
	finished(t, w, "heavy")
}
