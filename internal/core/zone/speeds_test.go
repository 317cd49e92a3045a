package zone_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// twoKinds is a world with a small and a large slice; the large one is not free before 30 s have passed.
func twoKinds(t *testing.T) *world {
	w := newWorld(t, 512, 1024)
	w.slices[0].view.Profile, w.slices[1].view.Profile = "small", "large"
	w.slices[1].busy = []protocol.Reservation{{ID: 99, Kind: protocol.ForServing, Start: w.now, End: w.now.Add(30 * time.Second)}}
	w.settle()
	return w
}

func withSpeeds(s *job.Spec, small, large int64) *job.Spec {
	s.Speeds = []job.SpeedOn{{Profile: "large", Permille: large}, {Profile: "small", Permille: small}}
	return s
}

// TestARigidJobTakesThePlaceThatEndsFirst, even where another one begins earlier, and says so.
func TestARigidJobTakesThePlaceThatEndsFirst(t *testing.T) {
	for _, c := range []struct {
		name         string
		small, large int64
		slice        job.SliceID
		took         time.Duration
	}{
		{"the small slice is slow", 200, 1000, "s1", 60 * time.Second},
		{"the small slice is not that slow", 800, 1000, "s0", 75 * time.Second},
		{"the small slice is barred", 0, 500, "s1", 120 * time.Second},
		{"a tie goes to the smaller slice", 400, 500, "s0", 150 * time.Second},
	} {
		w := twoKinds(t)
		w.submit(withSpeeds(rigid(t, "a", time.Minute, 400, 1), c.small, c.large))
		w.settle()
		if e, _ := w.z.Explain(w.now, "a"); c.slice == "s1" && !strings.Contains(e.Job.Reason, "reserved on s1") {
			t.Errorf("%s: it waits and says %q", c.name, e.Job.Reason)
		}
		w.until(10 * time.Minute)
		finished(t, w, "a")
		j, _ := w.z.Job(w.now, "a")
		if h := j.History[0]; h.Slice != c.slice || h.PlannedEnd.Sub(h.PlannedStart) != c.took {
			t.Errorf("%s: it ran on %s for %v, want %s for %v", c.name, h.Slice, h.PlannedEnd.Sub(h.PlannedStart), c.slice, c.took)
		}
	}
}

// TestAGangRunsAsLongAsOnItsSlowestSlice.
func TestAGangRunsAsLongAsOnItsSlowestSlice(t *testing.T) {
	w := twoKinds(t)
	w.submit(withSpeeds(rigid(t, "pair", time.Minute, 400, 2), 500, 1000))
	w.until(10 * time.Minute)
	finished(t, w, "pair")
	j, _ := w.z.Job(w.now, "pair")
	if h := j.History[0]; h.PlannedEnd.Sub(h.PlannedStart) != 2*time.Minute {
		t.Errorf("planned for %v, want 2 minutes", h.PlannedEnd.Sub(h.PlannedStart))
	}
}

// TestWhatIsLearnedIsIndependentOfTheSlice: a unit takes a second at speed 1 wherever it was observed.
func TestWhatIsLearnedIsIndependentOfTheSlice(t *testing.T) {
	w := newWorld(t, 1024)
	w.slices[0].view.Profile = "small"
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		took := time.Second + 4*time.Second*time.Duration(m.Body.(*protocol.Work).Range.Len())
		return took, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To, Checkpoint: true, End: w.now.Add(took)}
	}
	w.submit(withSpeeds(steps(t, "a", 100, 10, 100), 250, 1000))
	w.until(time.Hour)
	finished(t, w, "a")
	if j, _ := w.z.Job(w.now, "a"); j.RateP95 < 950*time.Millisecond || j.RateP95 > 1050*time.Millisecond {
		t.Errorf("a unit takes 1 s at speed 1, learned %v", j.RateP95)
	}
}

// TestABarredJobSaysSo and is not sold a window.
func TestABarredJobSaysSo(t *testing.T) {
	w := newWorld(t, 1024)
	w.slices[0].view.Profile = "small"
	w.submit(withSpeeds(steps(t, "a", 100, 10, 100), 0, 1000))
	w.until(time.Minute)
	e, _ := w.z.Explain(w.now, "a")
	if len(w.closed) > 0 || !strings.Contains(e.Job.Reason, "can not run on the kind") ||
		!strings.Contains(e.Slices[0].Why, "can not run on small") {
		t.Errorf("%v: %q, %+v", w.closed, e.Job.Reason, e.Slices)
	}
	for _, v := range w.z.Windows(w.now) {
		if v.End == quantity.Never && !strings.Contains(v.Reason, "of the wrong kind for 1 jobs") {
			t.Errorf("the window says %q", v.Reason)
		}
	}
}
