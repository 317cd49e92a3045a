package zone_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
)

// gateSays is a word of the gate about a life of job a.
func gateSays(w *world, k protocol.Kind, of job.Generation, m protocol.Message) {
	m.Kind, m.Job, m.Epoch, m.Generation, m.From = k, "a", 1, of, protocol.Address{Role: protocol.Gate}
	w.step(m)
}

// second runs until the second life of job a is closed, or the limit is reached.
func (w *world) second(limit time.Duration) {
	for end := w.now.Add(limit); w.now < end && w.lives["a"] < 2; {
		w.tick()
	}
}

// lived runs a job of 40 units until some are committed, and cancels it.
func lived(t *testing.T) (*world, *job.Spec) {
	w := newWorld(t, 1024)
	s := items(t, "a", 40, 100, 1)
	s.OnBadItem = job.BadItemSkips
	w.run = func(m *protocol.Message) (time.Duration, job.Result) { // some of it, then it fails
		return m.Body.(*protocol.Work).Plan.Wall / 2, job.Result{Outcome: job.ExitFailed, ExitCode: 1,
			Progress: (m.Body.(*protocol.Work).Range.From + m.Body.(*protocol.Work).Range.To) / 2}
	}
	w.submit(s)
	for now(w).Progress == 0 {
		w.tick()
	}
	gateSays(w, protocol.Cancel, 1, protocol.Message{Body: &protocol.Cancellation{Text: "by its owner"}})
	w.until(time.Minute)
	if j := now(w); j.State != job.Cancelled || j.Progress == 0 || j.Progress == 40 {
		t.Fatalf("%v at %d of 40: the test shows nothing", j.State, j.Progress)
	}
	return w, s
}

func now(w *world) (j struct {
	State      job.State
	Progress   int64
	Generation job.Generation
}) {
	if s, ok := w.z.Job(w.now, "a"); ok {
		j.State, j.Progress, j.Generation = s.State, s.Progress, s.Generation
	}
	return j
}

func TestAnotherLifeGoesOnFromWhatIsCommitted(t *testing.T) {
	w, s := lived(t)
	before := now(w)
	w.run = nil
	later := w.now.Add(time.Minute)
	for range 2 { // it comes twice
		gateSays(w, protocol.Adopt, 2, protocol.Message{Body: &protocol.Adoption{Since: 1, Spec: s, At: later}})
	}
	if j := now(w); j.State.Final() || j.Progress != before.Progress || j.Generation != 2 {
		t.Fatalf("%+v after %+v", j, before)
	}
	// What is still said about the first life changes nothing.
	gateSays(w, protocol.Cancel, 1, protocol.Message{Body: &protocol.Cancellation{Text: "late"}})
	gateSays(w, protocol.PauseJob, 1, protocol.Message{Body: &protocol.Pause{Paused: true}})
	gateSays(w, protocol.ClosedAck, 1, protocol.Message{})
	gateSays(w, protocol.Forget, 1, protocol.Message{})
	gateSays(w, protocol.Adopt, 1, protocol.Message{Body: &protocol.Adoption{Since: 1, Spec: s, At: 1}})
	w.restart()
	w.second(10 * time.Minute)
	if j := now(w); j.State != job.Finished || j.Progress != 40 || j.Generation != 2 {
		t.Errorf("%+v; want all of it, in its second life", j)
	}
	if j, _ := w.z.Job(w.now, "a"); j.Submitted != later {
		t.Errorf("its wait began at %d, want %d", j.Submitted, later)
	}
}

// TestAResultOfAnEarlierLife is answered with what was committed of it, and commits nothing now.
func TestAResultOfAnEarlierLife(t *testing.T) {
	w, s := lived(t)
	gateSays(w, protocol.Adopt, 2, protocol.Message{Body: &protocol.Adoption{Since: 1, Spec: s, At: w.now}})
	before, digest := now(w), w.z.Digest()
	j, _ := w.z.Job(w.now, "a")
	for _, sub := range j.History { // world.mail insists on the answers
		w.step(protocol.Message{
			Kind: protocol.Result, Job: "a", Epoch: 1, Generation: 1, Token: sub.Token, Body: &protocol.Conclusion{Range: sub.Range,
				Result: &job.Result{Outcome: job.Done, Progress: sub.Range.To}}, From: protocol.Address{Role: protocol.Node, ID: "n"},
		})
	}
	if now(w) != before || w.z.Digest() != digest || len(j.History) == 0 {
		t.Errorf("%+v after %+v: %d results of its first life have changed it", now(w), before, len(j.History))
	}
}

func TestADroppedJobIsNotTakenHomeAgain(t *testing.T) {
	w, s := lived(t)
	gateSays(w, protocol.Forget, 1, protocol.Message{Body: &protocol.Adoption{}})
	for range 2 { // with what it remembers, and with what it has written down
		gateSays(w, protocol.Adopt, 1, protocol.Message{Body: &protocol.Adoption{Since: 1, Spec: s, At: 1}})
		if len(w.z.Page(w.now, status.JobQuery{}).Jobs) != 0 {
			t.Fatal("an Adopt that was long under way brought a dropped job back")
		}
		w.restart()
	}
	gateSays(w, protocol.Adopt, 2, protocol.Message{Body: &protocol.Adoption{Since: 2, Spec: s, At: w.now}})
	if j := now(w); j.Progress != 0 || j.Generation != 2 || j.State.Final() {
		t.Errorf("%+v; want a new job of that name from the start", j)
	}
}

// TestOtherWorkKeepsNothing: where a Forget was lost the record of other work makes way.
func TestOtherWorkKeepsNothing(t *testing.T) {
	w, s := lived(t)
	gateSays(w, protocol.Adopt, 2, protocol.Message{Body: &protocol.Adoption{Since: 2, Spec: s, At: w.now}})
	if j := now(w); j.Progress != 0 || j.Generation != 2 || j.State.Final() {
		t.Errorf("%+v; want a new job of that name from the start", j)
	}
}

// TestAnotherLifeForgivesWhatEndedTheLast: failures, and units that were skipped, count from its beginning.
func TestAnotherLifeForgivesWhatEndedTheLast(t *testing.T) {
	w := newWorld(t, 1024)
	s := items(t, "a", 60, 100, 1)
	s.OnBadItem, s.MaxFailures = job.BadItemSkips, 1000
	bad := int64(20) // so many at the beginning fail
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		if m.Body.(*protocol.Work).Range.From < bad {
			return time.Millisecond, job.Result{Outcome: job.ExitFailed, ExitCode: 1, Progress: m.Body.(*protocol.Work).Range.From}
		}
		return m.Body.(*protocol.Work).Plan.Wall, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
	}
	w.submit(s)
	w.until(10 * time.Hour)
	first, _ := w.z.Job(w.now, "a")
	if first.State != job.Failed || first.Skipped != 17 {
		t.Fatalf("%v with %d skipped: %s", first.State, first.Skipped, first.Reason)
	}
	gateSays(w, protocol.Adopt, 2, protocol.Message{Body: &protocol.Adoption{Since: 1, Spec: s, At: w.now}})
	w.second(10 * time.Hour)
	if j, _ := w.z.Job(w.now, "a"); j.State != job.Finished || j.Skipped != 20 {
		t.Errorf("%v with %d skipped: %s; want the rest done and 3 more skipped", j.State, j.Skipped, j.Reason)
	}
}

// TestFailuresCountFromTheBeginningOfALife: it takes as many again to end the next one.
func TestFailuresCountFromTheBeginningOfALife(t *testing.T) {
	w := newWorld(t, 1024)
	s := steps(t, "a", 40, 10, 100)
	tries := 0
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		tries++
		return time.Second, job.Result{Outcome: job.ExitFailed, ExitCode: 1, Progress: m.Body.(*protocol.Work).Range.From}
	}
	w.submit(s)
	w.until(time.Hour)
	first := tries
	gateSays(w, protocol.Adopt, 2, protocol.Message{Body: &protocol.Adoption{Since: 1, Spec: s, At: w.now}})
	w.second(time.Hour)
	if w.closed["a"].State != job.Failed || first < 3 || tries != 2*first {
		t.Errorf("%v after %d tries, the first life after %d", w.closed["a"], tries, first)
	}
}
