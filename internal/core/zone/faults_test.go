package zone_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// losing makes the world lose the first n messages of a kind, in either direction.
func (w *world) losing(kind protocol.Kind, n int) {
	w.lose = func(m *protocol.Message) bool {
		if m.Kind == kind && n > 0 {
			n--
			return true
		}
		return false
	}
}

// TestALostMessageIsMadeGood: whichever single message between zone and node is lost, nothing else happening, the job goes
// on within a few seconds.
func TestALostMessageIsMadeGood(t *testing.T) {
	for name, kind := range map[string]protocol.Kind{
		"Ask": protocol.Ask, "Granted": protocol.Granted, "Redeem": protocol.Redeem, "Leased": protocol.Leased, "Running": protocol.Running,
		"Reserve": protocol.Reserve, "Unreserve": protocol.Unreserve, "Extend": protocol.Extend, "Extended": protocol.Extended,
		"Closed": protocol.Closed,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 1024)
			w.losing(kind, 1)
			long := steps(t, "long", 700, 10, 100)
			long.Continue = true
			w.submit(items(t, "a", 50, 100, 1), rigid(t, "head", 30*time.Second, 800, 1), long)
			w.until(25 * time.Minute)
			finished(t, w, "a", "head", "long")
			for _, s := range w.slices {
				for _, b := range s.busy {
					t.Errorf("%+v is left on the slice", b)
				}
			}
		})
	}
}

// TestWorkThatWasNotDoneIsNotCommitted: a claim was extended, but the node never heard of it, or the program did not look
// at its lease file again. It ends well where it was first told to, and that is what counts.
func TestWorkThatWasNotDoneIsNotCommitted(t *testing.T) {
	for _, heard := range []bool{false, true} {
		w := newWorld(t, 1024)
		w.deaf = heard
		if !heard {
			w.losing(protocol.Extend, 1000)
		}
		ran := int64(0)
		w.run = func(m *protocol.Message) (time.Duration, job.Result) {
			ran += m.Body.(*protocol.Work).Range.Len()
			return m.Body.(*protocol.Work).Plan.Wall, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To,
				Checkpoint: true}
		}
		s := steps(t, "a", 1500, 10, 100)
		s.Continue = true
		w.submit(s)
		w.until(2 * time.Hour)
		finished(t, w, "a")
		if ran < 1500 {
			t.Errorf("1500 units are committed, %d were done (extension heard by the node: %v)", ran, heard)
		}
	}
}

// TestARestartInTheMiddleOfAnExtension forgets that it was asked for; the claim stands extended, the lease perhaps not.
func TestARestartInTheMiddleOfAnExtension(t *testing.T) {
	w := newWorld(t, 1024)
	s := steps(t, "a", 1500, 10, 100)
	s.Continue = true
	w.submit(s)
	asked := 0
	w.lose = func(m *protocol.Message) bool {
		if m.Kind == protocol.Extend {
			asked++
			return asked == 1
		}
		return false
	}
	for asked == 0 {
		w.tick()
	}
	w.restart()
	w.until(2 * time.Hour)
	finished(t, w, "a")
}

// TestARefusalOfTheSameViewIsNotAskedAgainAtOnce: whatever the node's reason, the zone tries again after a pause, not in
// the same instant, and goes on at once when the view changes.
func TestARefusalOfTheSameViewIsNotAskedAgainAtOnce(t *testing.T) {
	w := newWorld(t, 1024)
	asked := map[quantity.Instant]int{}
	w.refuse = func(m *protocol.Message) bool {
		asked[w.now]++
		if asked[w.now] > 3 {
			t.Fatalf("asked %d times at one instant", asked[w.now])
		}
		return w.now < quantity.Instant(11e9)
	}
	w.submit(items(t, "a", 20, 100, 1), rigid(t, "head", 30*time.Second, 800, 1))
	w.until(10 * time.Minute)
	finished(t, w, "a", "head")
	if len(asked) < 8 || len(asked) > 30 {
		t.Errorf("asked at %d instants in the ten seconds of refusals, want about one a second", len(asked))
	}
}

// TestAJobWhoseGrantLapsedStillExpires: its deadline passes while its claim waits for the node, which then refuses the
// token; nothing else will ever be heard of that claim.
func TestAJobWhoseGrantLapsedStillExpires(t *testing.T) {
	w := newWorld(t, 1024)
	s := items(t, "a", 20, 100, 1)
	s.Deadline = w.now.Add(500 * time.Millisecond)
	w.losing(protocol.Redeem, 1)
	w.submit(s)
	w.until(time.Minute)
	if v := w.closed["a"]; v.State != job.Expired || w.now > quantity.Instant(5e9) {
		t.Errorf("%v after %v", v, w.now.Sub(1e9))
	}
}

// TestAnotherJobOfAForgottenName is taken although the zone never heard that the first one was forgotten.
func TestAnotherJobOfAForgottenName(t *testing.T) {
	w := newWorld(t, 1024)
	w.submit(items(t, "a", 5, 100, 1))
	w.until(time.Minute)
	finished(t, w, "a")
	delete(w.closed, "a")
	w.submit(items(t, "a", 9, 100, 1))
	w.until(time.Minute)
	finished(t, w, "a")
	if j, _ := w.z.Job(w.now, "a"); j.Total != 9 || j.Progress != 9 {
		t.Errorf("%+v", j)
	}
	// The first job's Adopt comes once more, very late: the newer one stays.
	w.step(protocol.Message{Kind: protocol.Adopt, Job: "a", Epoch: 1, Body: &protocol.Adoption{Spec: items(t, "a", 5, 100, 1), At: 1},
		From: protocol.Address{Role: protocol.Gate}})
	if j, _ := w.z.Job(w.now, "a"); j.Total != 9 {
		t.Errorf("an old Adopt replaced the newer job: %+v", j)
	}
}

// TestReportedProgressIsShown and not counted as done.
func TestReportedProgressIsShown(t *testing.T) {
	w := newWorld(t, 1024)
	w.submit(items(t, "a", 100, 100, 1))
	for w.deliver() {
	}
	j, _ := w.z.Job(w.now, "a")
	for _, said := range []int64{40, 30, 5000} {
		w.step(protocol.Message{Kind: protocol.Report, From: node("n"), Job: "a", Token: j.History[0].Token,
			Body: &protocol.Observation{Progress: said, At: w.now}})
		want := min(100, max(40, said))
		if j, _ = w.z.Job(w.now, "a"); j.Progress != 0 || j.Reported != want || j.History[0].Progress != want {
			t.Errorf("said %d: progress %d, reported %d, subjob at %d", said, j.Progress, j.Reported, j.History[0].Progress)
		}
	}
	w.until(5 * time.Minute)
	if j, _ = w.z.Job(w.now, "a"); j.Progress != 100 || j.Reported != 0 || j.History[0].Progress != 0 {
		t.Errorf("at its end %+v", j)
	}
}

// TestALostAskWakesTheZone: nothing else ever happens on this quiet machine, so the zone must have asked to be woken.
func TestALostAskWakesTheZone(t *testing.T) {
	w := newWorld(t, 1024)
	w.losing(protocol.Ask, 1)
	w.submit(items(t, "a", 5, 100, 1))
	w.until(time.Minute)
	finished(t, w, "a")
	if took := w.now.Sub(1e9); took > 20*time.Second {
		t.Errorf("5 s of work took %v", took)
	}
}
