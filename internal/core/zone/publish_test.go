package zone_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
)

// TestNobodyIsToldBeforeTheOutputIsThere: while a node has not said that output is in its place, what was committed of it is
// not shown and the job is not over, however often it is asked; then both are, also where the first word was lost, came
// twice, or came after the zone had started again.
func TestNobodyIsToldBeforeTheOutputIsThere(t *testing.T) {
	w := newWorld(t, 1024)
	w.submit(items(t, "a", 20, 100, 1))
	held, asked := true, map[job.Token]int{}
	w.lose = func(m *protocol.Message) bool {
		if m.Kind == protocol.Published {
			asked[m.Token]++
		}
		return m.Kind == protocol.Published && held
	}
	for i := range 120 {
		if i == 60 {
			w.restart()
		}
		w.tick()
		j, _ := w.z.Job(w.now, "a")
		if j.State.Final() || j.Progress != 0 {
			t.Fatalf("after %d ticks it is %v with %d of %d, and nothing of it is published", i, j.State, j.Progress, j.Total)
		}
		for _, s := range j.History {
			if !s.Committed.Empty() {
				t.Fatalf("%v of subjob %v is shown as committed", s.Committed, s.Token)
			}
		}
	}
	j, _ := w.z.Job(w.now, "a")
	if j.State != job.Running || len(j.History) == 0 || j.History[0].Outcome != "publishing" || j.Reason == "" {
		t.Errorf("all of it is done: %v %q, first subjob %q", j.State, j.Reason, j.History[0].Outcome)
	}
	for token, n := range asked {
		if n < 3 {
			t.Errorf("about subjob %v the node was asked %d times", token, n)
		}
	}
	held = false
	w.double, w.draw = 50, func(int) int { return 0 }
	w.until(time.Minute)
	finished(t, w, "a")
	if j, _ = w.z.Job(w.now, "a"); j.Progress != 20 || j.Subjobs != len(j.History) {
		t.Errorf("%d of 20 units, %d of %d subjobs", j.Progress, j.Subjobs, len(j.History))
	}
	before := len(asked)
	for range 10 {
		w.tick()
	}
	if len(w.facts) == 0 || len(asked) != before {
		t.Error("the node is asked about output that it has said is there")
	}
}

// TestAFailedJobKeepsWhatItPublishes: the verdict of a job that failed waits for its output as that of a finished one does;
// its owner's word does not.
func TestAFailedJobKeepsWhatItPublishes(t *testing.T) {
	for _, cancelled := range []bool{false, true} {
		w := newWorld(t, 1024)
		w.run = func(m *protocol.Message) (time.Duration, job.Result) {
			if m.Body.(*protocol.Work).Range.From > 0 {
				return time.Second, job.Result{Outcome: job.ExitFailed, ExitCode: 1, Progress: m.Body.(*protocol.Work).Range.From}
			}
			return m.Body.(*protocol.Work).Plan.Wall, job.Result{Outcome: job.Yielded, Progress: 10, Checkpoint: true}
		}
		held := true
		w.lose = func(m *protocol.Message) bool { return m.Kind == protocol.Published && held }
		w.submit(steps(t, "a", 100, 10, 100))
		w.until(20 * time.Minute)
		if cancelled {
			w.step(protocol.Message{Kind: protocol.Cancel, Job: "a", Epoch: 1, Body: &protocol.Cancellation{Text: "by its owner"}})
			w.until(time.Minute)
			if v, ok := w.closed["a"]; !ok || v.State != job.Cancelled {
				t.Errorf("cancelled by its owner: %v", v)
			}
			continue
		}
		if v, ok := w.closed["a"]; ok {
			t.Fatalf("it is over (%v) and what counts of it is not published", v)
		}
		if j, _ := w.z.Job(w.now, "a"); !strings.Contains(j.Reason, "being put in its place") {
			t.Errorf("it waits for its output and says %q", j.Reason)
		}
		held = false
		w.until(time.Minute)
		if v := w.closed["a"]; v.State != job.Failed {
			t.Errorf("it is %v", v)
		}
		if j, _ := w.z.Job(w.now, "a"); j.Progress != 10 {
			t.Errorf("%d units are published, want 10", j.Progress)
		}
	}
}

// TestEveryPublicationIsAskedAbout: a job with more of them than are asked about at once has each asked about in its turn, and a
// job that is forgotten has none asked about any more.
func TestEveryPublicationIsAskedAbout(t *testing.T) {
	w := newWorld(t, 1024)
	w.config.Horizon = 10 * time.Second
	w.z = w.make()
	w.submit(items(t, "a", 400, 100, 1))
	asked := map[job.Token]int{}
	w.lose = func(m *protocol.Message) bool {
		if m.Kind == protocol.Published {
			asked[m.Token]++
		}
		return m.Kind == protocol.Published
	}
	for range 4000 {
		w.tick()
	}
	if len(asked) < 32 {
		t.Fatalf("%d publications: the test shows nothing", len(asked))
	}
	for token, n := range asked {
		if n < 3 {
			t.Errorf("about subjob %v, one of %d, the node was asked %d times", token, len(asked), n)
		}
	}
}

func TestAForgottenJobsPublicationsAreNotAskedAbout(t *testing.T) {
	w := newWorld(t, 1024)
	w.config.Horizon = 10 * time.Second
	w.z = w.make()
	w.submit(items(t, "a", 400, 100, 1))
	asked := 0
	w.lose = func(m *protocol.Message) bool {
		if m.Kind == protocol.Published {
			asked++
		}
		return m.Kind == protocol.Published
	}
	for i := 0; asked == 0 && i < 1000; i++ {
		w.tick()
	}
	gateSays(w, protocol.Cancel, 1, protocol.Message{Body: &protocol.Cancellation{Text: "by its owner"}})
	w.until(time.Minute)
	gateSays(w, protocol.Forget, 1, protocol.Message{Body: &protocol.Cancellation{}})
	w.tick() // what is under way
	before := asked
	for range 100 {
		w.tick()
	}
	if before == 0 || len(w.z.Page(w.now, status.JobQuery{}).Jobs) != 0 || asked != before {
		t.Errorf("the node was asked %d times about output of a job that is forgotten", asked-before)
	}
}
