package zone_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

func finished(t *testing.T, w *world, names ...job.ID) {
	t.Helper()
	for _, n := range names {
		if v := w.closed[n]; v.State != job.Finished {
			j, _ := w.z.Job(w.now, n)
			t.Errorf("job %s: %v %q after %v, progress %d of %d", n, v.State, v.Reason, w.now.Sub(1e9), j.Progress, j.Total)
		}
	}
}

func TestOneJobOnOneSlice(t *testing.T) {
	w := newWorld(t, 1024)
	w.submit(items(t, "a", 30, 100, 1))
	w.until(5 * time.Minute)
	finished(t, w, "a")
	j, _ := w.z.Job(w.now, "a")
	if j.Subjobs != 1 || j.Progress != 30 || j.History[0].Range != (job.Range{To: 30}) {
		t.Errorf("an idle slice and a small job make one subjob, got %+v", j)
	}
}

func TestPartsOfAnItemsJobRunAtOnceOnSeveralSlices(t *testing.T) {
	w := newWorld(t, 512, 512, 1024)
	w.submit(items(t, "a", 400, 100, 3))
	w.until(10 * time.Minute)
	finished(t, w, "a")
	if took := w.now.Sub(1e9); took > 250*time.Second {
		t.Errorf("400 s of work on three slices took %v", took)
	}
}

func TestAJobIsCutToFitTheGapBeforeADrain(t *testing.T) {
	w := newWorld(t, 1024)
	w.slices[0].busy = []protocol.Reservation{{ID: 99, Kind: protocol.ForDrain, Start: w.now.Add(60 * time.Second),
		End: w.now.Add(90 * time.Second)}}
	w.submit(steps(t, "a", 100, 10, 100))
	w.until(10 * time.Minute)
	finished(t, w, "a")
	j, _ := w.z.Job(w.now, "a")
	first := j.History[0]
	if len(j.History) != 2 || first.PlannedEnd > quantity.Instant(61e9) || first.Range.To%10 != 0 || first.Range.To < 30 {
		t.Errorf("want a piece on the grid that ends before the drain and one after it, got %+v", j.History)
	}
	if j.History[1].PlannedStart < quantity.Instant(91e9) {
		t.Errorf("the second piece starts in the drain: %+v", j.History[1])
	}
}

func TestARigidHeadGetsAReservationAndOthersFillTheGap(t *testing.T) {
	w := newWorld(t, 1024)
	w.submit(items(t, "first", 100, 100, 1))
	w.deliver()
	w.submit(rigid(t, "head", 60*time.Second, 800, 1), items(t, "filler", 500, 100, 1))
	w.until(30 * time.Minute)
	finished(t, w, "first", "head", "filler")
	head, _ := w.z.Job(w.now, "head")
	if wait := head.Started.Sub(1e9); wait > 130*time.Second {
		t.Errorf("the head waited %v behind a job of 100 s (125 s planned)", wait)
	}
}

// TestAHeadStartsWhenItsPlaceBegins: nothing else happens at that instant, so the zone has to wake up by itself.
func TestAHeadStartsWhenItsPlaceBegins(t *testing.T) {
	w := newWorld(t, 1024)
	begins := w.now.Add(20 * time.Second)
	w.slices[0].busy = []protocol.Reservation{{ID: 99, Kind: protocol.ForServing, Start: w.now.Add(10 * time.Second), End: begins}}
	w.submit(rigid(t, "head", 60*time.Second, 800, 1))
	w.until(30 * time.Minute)
	finished(t, w, "head")
	if head, _ := w.z.Job(w.now, "head"); head.Started.Sub(begins) > time.Second {
		t.Errorf("the head started %v after its place began", head.Started.Sub(begins))
	}
}

func TestARigidJobOfTwoSlicesStartsOnBothAtOnce(t *testing.T) {
	w := newWorld(t, 1024, 1024)
	w.submit(items(t, "a", 100, 100, 1), rigid(t, "pair", 30*time.Second, 800, 2))
	w.until(10 * time.Minute)
	finished(t, w, "a", "pair")
}

func TestABadItemIsFoundBySplitting(t *testing.T) {
	for _, skip := range []bool{false, true} {
		w := newWorld(t, 1024)
		w.run = func(m *protocol.Message) (time.Duration, job.Result) {
			if m.Body.(*protocol.Work).Range.From <= 37 && 37 < m.Body.(*protocol.Work).Range.To {
				return time.Second, job.Result{Outcome: job.ExitFailed, ExitCode: 1, Progress: m.Body.(*protocol.Work).Range.From,
					Detail: "unit 37 is broken"}
			}
			return m.Body.(*protocol.Work).Plan.Run, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
		}
		s := items(t, "a", 64, 100, 1)
		if skip {
			s.OnBadItem = job.BadItemSkips
		}
		w.submit(s)
		w.until(30 * time.Minute)
		j, _ := w.z.Job(w.now, "a")
		switch v := w.closed["a"]; {
		case skip && (v.State != job.Finished || j.Skipped != 1 || j.Progress != 64):
			t.Errorf("skip: %+v, skipped %d, progress %d", v, j.Skipped, j.Progress)
		case !skip && (v.State != job.Failed || j.Progress < 37):
			t.Errorf("fail: %+v, progress %d", v, j.Progress)
		}
		if !skip && !slices.Contains([]string{"unit 37 fails whenever it runs alone: unit 37 is broken"}, w.closed["a"].Reason) {
			t.Errorf("the reason must name the unit: %q", w.closed["a"].Reason)
		}
	}
}

func TestThreeFailuresWithoutProgressEndTheJob(t *testing.T) {
	w := newWorld(t, 1024)
	n := 0
	w.run = func(*protocol.Message) (time.Duration, job.Result) {
		n++
		return time.Second, job.Result{Outcome: job.ExitFailed, ExitCode: 2, Detail: "no such file"}
	}
	w.submit(steps(t, "a", 100, 10, 100))
	w.until(10 * time.Minute)
	if v := w.closed["a"]; v.State != job.Failed || n != 3 ||
		v.Reason != "3 times in a row its subjobs ended without progress: no such file" ||
		strings.Contains(status.Unquoted(v.Reason), "file") {
		t.Errorf("%v %q after %d subjobs", v.State, v.Reason, n)
	}
}

func TestAMemoryKillRaisesTheProfileAndMovesTheJobToALargerSlice(t *testing.T) {
	w := newWorld(t, 512, 1024)
	killed := 0
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		if m.Body.(*protocol.Work).Slice == "s0" {
			killed++
			return time.Second, job.Result{Outcome: job.MemoryKilled, Progress: m.Body.(*protocol.Work).Range.From,
				Peak: trp.Vector{600 << 20}}
		}
		return m.Body.(*protocol.Work).Plan.Run, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
	}
	w.submit(items(t, "a", 20, 400, 1))
	w.until(10 * time.Minute)
	finished(t, w, "a")
	if killed != 1 {
		t.Errorf("the small slice was tried %d times after it was outgrown", killed)
	}
	w = newWorld(t, 512)
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		return time.Second, job.Result{Outcome: job.MemoryKilled, Progress: m.Body.(*protocol.Work).Range.From, Peak: trp.Vector{513 << 20}}
	}
	w.submit(items(t, "b", 20, 400, 1))
	w.until(10 * time.Minute)
	const why = "it outgrew every slice: its run of units [0,20) on s0 was ended for its memory, having used 513 MiB; it needs about " +
		"564 MiB, the largest slice has 512 MiB"
	if v := w.closed["b"]; v.State != job.Failed || v.Reason != why {
		t.Errorf("a job that outgrew every slice must say so, with numbers, got %v %q", v.State, v.Reason)
	}
}

func TestALateFinishLearnsTheRealRunTime(t *testing.T) {
	w := newWorld(t, 1024)
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		took := time.Duration(m.Body.(*protocol.Work).Range.Len()) * 3 * time.Second // three times what was declared
		if most := m.Body.(*protocol.Work).End.Sub(m.Body.(*protocol.Work).Start); took > most {
			return most, job.Result{Outcome: job.DeadlineKilled, Progress: m.Body.(*protocol.Work).Range.From +
				int64(most/(3*time.Second))/10*10, Checkpoint: true}
		}
		return took, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To, Checkpoint: true}
	}
	w.submit(steps(t, "a", 300, 10, 100))
	w.until(time.Hour)
	finished(t, w, "a")
	j, _ := w.z.Job(w.now, "a")
	if j.RateP95 < 2500*time.Millisecond || j.RateP95 > 4*time.Second {
		t.Errorf("a unit takes 3 s, learned %v", j.RateP95)
	}
}

func TestAUnitFortyTimesAsLongAsDeclaredIsLearned(t *testing.T) {
	w := newWorld(t, 1024)
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		most := m.Body.(*protocol.Work).End.Sub(m.Body.(*protocol.Work).Start)
		if done := int64(most / (40 * time.Second)); done < m.Body.(*protocol.Work).Range.Len() {
			return most, job.Result{Outcome: job.DeadlineKilled, Progress: m.Body.(*protocol.Work).Range.From + done}
		}
		return 40 * time.Second * time.Duration(m.Body.(*protocol.Work).Range.Len()),
			job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
	}
	w.submit(items(t, "a", 20, 100, 1))
	w.until(2 * time.Hour)
	finished(t, w, "a")
}

func TestARunningJobContinuesIntoTheNextWindow(t *testing.T) {
	w := newWorld(t, 1024)
	s := steps(t, "a", 2000, 10, 100)
	s.Continue = true
	w.submit(s)
	w.until(2 * time.Hour)
	finished(t, w, "a")
	j, _ := w.z.Job(w.now, "a")
	if len(j.History) > 2 {
		t.Errorf("on an idle slice a job that continues is not stopped at the horizon, got %d subjobs", len(j.History))
	}
}

func TestCancelStopsWhatRuns(t *testing.T) {
	w := newWorld(t, 1024)
	w.submit(items(t, "a", 100, 100, 1))
	w.deliver()
	w.step(protocol.Message{Kind: protocol.Cancel, Job: "a", Epoch: 1, Body: &protocol.Cancellation{Text: "cancelled by its owner"}})
	w.until(time.Minute)
	if v := w.closed["a"]; v.State != job.Cancelled || w.now.Sub(1e9) > 10*time.Second {
		t.Errorf("%v after %v", v, w.now.Sub(1e9))
	}
}

// TestWhateverHappensEveryJobFinishes throws lost and doubled messages, failures from outside, late ends and restarts at
// a zone. The zone's own invariants stop a second sale of the same work; here every job must also finish.
func TestWhateverHappensEveryJobFinishes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, 512, 1024)
		w.loss, w.double = rapid.IntRange(0, 20).Draw(rt, "loss"), rapid.IntRange(0, 20).Draw(rt, "double")
		seed := rapid.Uint64().Draw(rt, "seed")
		w.draw = func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		}
		w.run = func(m *protocol.Message) (time.Duration, job.Result) {
			part := m.Body.(*protocol.Work).Range.From + int64(w.draw(int(m.Body.(*protocol.Work).Range.Len())+1))
			kind := w.draw(8)
			if m.Body.(*protocol.Work).Spec.Kind == job.Rigid && kind > 0 {
				kind = 7 // a rigid job that yields or overruns fails, as it should
			}
			switch kind {
			case 0:
				return time.Duration(w.draw(1000)) * time.Millisecond, job.Result{Outcome: job.NodeFailed, Progress: part, Checkpoint: true}
			case 1:
				return m.Body.(*protocol.Work).End.Sub(m.Body.(*protocol.Work).Start),
					job.Result{Outcome: job.DeadlineKilled,
						Progress: max(part, min(m.Body.(*protocol.Work).Range.To, m.Body.(*protocol.Work).Range.From+10)), Checkpoint: true}
			case 2:
				return time.Second * time.Duration(m.Body.(*protocol.Work).Range.Len()) / 2,
					job.Result{Outcome: job.Yielded, Progress: m.Body.(*protocol.Work).Range.To, Checkpoint: true}
			}
			took := time.Duration(m.Body.(*protocol.Work).Range.Len()) * time.Duration(500+w.draw(500)) * time.Millisecond
			return min(took, m.Body.(*protocol.Work).End.Sub(m.Body.(*protocol.Work).Start)),
				job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To, Checkpoint: true}
		}
		w.submit(items(t, "items", rapid.Int64Range(1, 200).Draw(rt, "items"), 100, 3),
			steps(t, "steps", rapid.Int64Range(1, 200).Draw(rt, "steps"), 10, 300))
		if rapid.Bool().Draw(rt, "rigid") {
			w.submit(rigid(t, "rigid", 20*time.Second, 800, 1))
		}
		crash := rapid.IntRange(2, 50).Draw(rt, "restart every")
		for i := 0; i < 20000 && len(w.closed) < len(w.adopted); i++ {
			w.tick()
			if i%crash == crash-1 && i < 2000 {
				w.restart()
			}
		}
		for name := range w.adopted {
			if v := w.closed[name]; v.State != job.Finished {
				j, _ := w.z.Job(w.now, name)
				rt.Fatalf("job %s did not finish: %+v after %v: %v %s", name, v, w.now.Sub(1e9), j.Progress, j.Reason)
			}
		}
	})
}
