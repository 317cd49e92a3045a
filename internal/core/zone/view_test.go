package zone_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
)

// settle delivers everything that is due now.
func (w *world) settle() {
	for w.deliver() {
	}
}

// TestAZoneWithoutAShareOfACap sells its queue's jobs nothing, says so, and goes on when it has one.
func TestAZoneWithoutAShareOfACap(t *testing.T) {
	w := newWorld(t, 1024)
	w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "capped", Weight: 1, Cap: protocol.NoShare}})
	one := items(t, "one", 5, 100, 1)
	one.Queue = "capped"
	w.submit(one)
	w.until(10 * time.Minute)
	if e, _ := w.z.Explain(w.now, "one"); e.Job.Subjobs != 0 || !strings.Contains(e.Job.Reason, "none of it is this zone's") {
		t.Errorf("%d subjobs; it waits since %q", e.Job.Subjobs, e.Job.Reason)
	}
	w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "capped", Weight: 1, Cap: 1}})
	w.until(20 * time.Minute)
	if j, _ := w.z.Job(w.now, "one"); j.State != job.Finished {
		t.Errorf("with a share it is %s: %s", j.State, j.Reason)
	}
}

// TestEveryWaitSaysWhy: each job waits for another reason, and says which.
func TestEveryWaitSaysWhy(t *testing.T) {
	w := newWorld(t, 1024)
	w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "capped", Weight: 1, Cap: 1}})
	in := func(s *job.Spec) *job.Spec { s.Queue = "capped"; return s }
	w.settle()
	held := items(t, "held", 5, 100, 1)
	tooLong := steps(t, "too-long", 5000, 5000, 100) // its least piece is longer than the horizon
	w.submit(in(items(t, "runs", 100, 100, 1)), in(items(t, "capped", 5, 100, 1)), items(t, "large", 5, 2000, 1), tooLong, held,
		rigid(t, "head", time.Minute, 800, 1), rigid(t, "pair", time.Minute, 800, 2))
	w.step(protocol.Message{Kind: protocol.PauseJob, Job: "held", Epoch: 1, Body: &protocol.Pause{Paused: true},
		From: protocol.Address{Role: protocol.Gate}})
	w.settle()
	w.now = w.now.Add(10 * time.Second)
	w.step(protocol.Message{Kind: protocol.Tick})
	for name, want := range map[job.ID]string{
		"runs": "running on s0", "held": "paused by its owner", "head": "reserved on s0", "capped": "taken",
		"large": "taken", "too-long": "taken", "pair": "taken",
	} {
		e, ok := w.z.Explain(w.now, name)
		if !ok || !strings.Contains(e.Job.Reason, want) || !strings.Contains(e.Summary, string(name)) {
			t.Errorf("%s: %q, want %q", name, e.Job.Reason, want)
		}
	}
	if e, _ := w.z.Explain(w.now, "pair"); e.Slices[0].Why == "" {
		t.Errorf("a gang is not told how it matches: %+v", e)
	}
	w.until(10 * time.Minute) // the others are through, and windows open
	for name, want := range map[job.ID]string{"large": "needs 2000 MiB", "too-long": "too short", "held": "paused",
		"pair": "2 slices at once"} {
		e, _ := w.z.Explain(w.now, name)
		if !strings.Contains(e.Job.Reason, want) {
			t.Errorf("%s: %q, want %q", name, e.Job.Reason, want)
		}
		if name != "held" && name != "pair" && (len(e.Reasons) == 0 || e.Reasons[0].Count == 0 || len(e.Slices) != 1 || e.Slices[0].Fits) {
			t.Errorf("%s: %+v", name, e)
		}
	}
	if _, ok := w.z.Explain(w.now, "nobody"); ok {
		t.Error("a job that is not there was explained")
	}
}

// TestDryRunSaysWhatWillHappen: what it says of a job on an empty and on a busy machine comes true.
func TestDryRunSaysWhatWillHappen(t *testing.T) {
	w := newWorld(t, 1024)
	w.settle()
	w.submit() // nothing: the slices are known
	w.step(protocol.Message{Kind: protocol.Tick})
	small, large := items(t, "small", 5, 100, 1), items(t, "large", 5, 2000, 1)
	for s, want := range map[*job.Spec]string{small: "start at once", large: "no free window"} {
		e := w.z.DryRun(w.now, s)
		if !strings.Contains(e.Summary, want) || len(e.Slices) != 1 || e.Slices[0].Fits != (s == small) {
			t.Errorf("%s: %+v", s.Name, e)
		}
	}
	w.submit(items(t, "first", 100, 100, 1), items(t, "second", 100, 100, 1))
	w.settle()
	e := w.z.DryRun(w.now, rigid(t, "later", time.Minute, 500, 1))
	if !strings.Contains(e.Summary, "in about 2m5s") || !strings.Contains(e.Summary, "1 waiting jobs") {
		t.Errorf("behind 100 s of work (125 s planned): %q", e.Summary)
	}
	if _, known := w.z.Job(w.now, "later"); known {
		t.Error("a dry run left a job behind")
	}
}

// TestWindowsAndQueuesAreShown with what became of them.
func TestWindowsAndQueuesAreShown(t *testing.T) {
	w := newWorld(t, 1024, 2048)
	w.slices[1].busy = []protocol.Reservation{{ID: 9, Kind: protocol.ForDrain, Start: w.now.Add(3 * time.Minute),
		End: w.now.Add(5 * time.Minute)}}
	w.settle()
	w.submit(items(t, "a", 100, 100, 1), items(t, "large", 5, 4000, 1))
	w.settle()
	w.step(protocol.Message{Kind: protocol.Tick})
	states := map[string]int{}
	for _, v := range w.z.Windows(w.now) {
		states[v.State]++
		if v.End <= v.Start || v.Start < w.now || (v.State == "unanswered") != (v.Reason != "") {
			t.Errorf("%+v", v)
		}
	}
	if states["upcoming"] != 2 || states["unanswered"] != 1 { // behind the lease and the drain; the free time before the drain
		t.Errorf("windows: %v", states)
	}
	qs := w.z.Queues(w.now)
	if len(qs) != 1 || qs[0].Running != 1 || qs[0].Pending != 1 || qs[0].Held != 1 {
		t.Errorf("queues: %+v", qs)
	}
	w.until(3 * time.Minute)
	if q := w.z.Queues(w.now)[0]; q.Running != 0 || q.Held != 0 || q.Attained < 9 || q.Attained > 14 {
		t.Errorf("after 100 s (125 s planned) on 100 MiB: %+v", q)
	}
}

// TestEstimatesHoldTheTruth: on a machine where everything goes as declared, a job finishes within what was estimated at
// its start, whatever its kind.
func TestEstimatesHoldTheTruth(t *testing.T) {
	for _, s := range []*job.Spec{items(t, "items", 400, 100, 2), steps(t, "steps", 400, 10, 100),
		rigid(t, "rigid", 5*time.Minute, 100, 1)} {
		w := newWorld(t, 1024, 1024)
		w.submit(s)
		for j := (job.State)(0); j != job.Running; {
			w.tick()
			v, _ := w.z.Job(w.now, s.Name)
			j = v.State
		}
		v, _ := w.z.Job(w.now, s.Name)
		w.until(2 * time.Hour)
		finished(t, w, s.Name)
		end, _ := w.z.Job(w.now, s.Name)
		if end.Ended < v.FinishEarly.Add(-time.Second) || end.Ended > v.FinishLate.Add(time.Second) {
			t.Errorf("%s: estimated %v to %v, ended %v", s.Name, v.FinishEarly.Sub(1e9), v.FinishLate.Sub(1e9), end.Ended.Sub(1e9))
		}
	}
}

// TestSnapshotsFoldToTheSameState, at any moment, and the zone goes on from one as well as from all facts.
func TestSnapshotsFoldToTheSameState(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, 512, 1024)
		w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "default", Weight: 3, Cap: 2}})
		w.submit(items(t, "items", 100, 100, 3), steps(t, "steps", 100, 10, 300), rigid(t, "rigid", 20*time.Second, 400, 2))
		for range rapid.IntRange(0, 60).Draw(rt, "ticks") {
			w.tick()
		}
		again, err := zone.New(zone.Config{ID: "z", Policy: fifo.Policy{}, Horizon: 10 * time.Minute})
		if err != nil {
			rt.Fatal(err)
		}
		w.facts = capture.All(w.z)
		for _, f := range w.facts {
			again.Apply(f)
		}
		if again.Digest() != w.z.Digest() {
			rt.Fatalf("the snapshot folds to another state")
		}
		w.restart()
		w.until(time.Hour)
		for name := range w.adopted {
			if v := w.closed[name]; v.State != job.Finished {
				rt.Fatalf("%s: %v", name, v)
			}
		}
	})
}

// TestAForgottenJobLeavesNothing in any of the zone's lists but that it was dropped, whatever it was when it ended.
func TestAForgottenJobLeavesNothing(t *testing.T) {
	w := newWorld(t, 1024)
	s := rigid(t, "a", time.Second, 100, 1)
	s.Deadline = w.now.Add(time.Hour)
	w.submit(s)
	w.until(time.Minute)
	w.step(protocol.Message{Kind: protocol.Forget, Job: "a", Epoch: 2})
	if len(w.z.Page(w.now, status.JobQuery{}).Jobs) != 1 {
		t.Error("a job was forgotten on the word for another epoch")
	}
	w.step(protocol.Message{Kind: protocol.Forget, Job: "a", Epoch: 1})
	dropped := w.make() // so that no Adopt that was long under way brings it back
	dropped.Apply(protocol.Fact{Kind: protocol.HomeDropped, Job: "a", Generation: 1, Body: &protocol.HomeDrop{}})
	if w.z.Digest() != dropped.Digest() || len(w.z.Page(w.now, status.JobQuery{}).Jobs) != 0 {
		t.Errorf("left over: %+v", w.z.Page(w.now, status.JobQuery{}).Jobs)
	}
}

// TestConfigSaysEverything that is wrong with it at once.
func TestConfigSaysEverything(t *testing.T) {
	_, err := zone.New(zone.Config{Horizon: time.Second, MinWindow: time.Minute, Retry: -1})
	for _, want := range []string{"needs an id", "needs a policy", "retry is -1ns", "longer than the horizon"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// TestAJobThatIsTooSlowIsToldSo: by the fastest run observed not even the least useful piece fits the longest window.
func TestAJobThatIsTooSlowIsToldSo(t *testing.T) {
	w := newWorld(t, 1024)
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		return m.Body.(*protocol.Work).End.Sub(m.Body.(*protocol.Work).Start), job.Result{Outcome: job.DeadlineKilled, Progress: 1,
			Checkpoint: true, Peak: trp.Vector{1}}
	}
	s := items(t, "a", 100, 100, 1)
	s.TauMin = 9 * time.Minute
	s.Startup = 2 * time.Minute
	w.submit(s)
	w.until(3 * time.Hour)
	if v := w.closed["a"]; v.State != job.Failed || !strings.Contains(v.Reason, "needs a window of") {
		t.Errorf("%v after %v", v, w.now.Sub(quantity.Instant(1e9)))
	}
}

// TestTooMuchOfAnythingEndsTheJob: machines that fail are not the job's failures, but thirty in a row end it, or as many as its
// maxFailures; a unit that is skipped too often ends it as well.
func TestTooMuchOfAnythingEndsTheJob(t *testing.T) {
	for bound, c := range map[int]struct {
		outcome job.Outcome
		most    int // maxFailures
		said    string
	}{
		30: {job.NodeFailed, 3, "30 times in a row its subjobs were ended from outside: it was restarted"},
		40: {job.NodeFailed, 40, "40 times in a row its subjobs were ended from outside: it was restarted"},
		3:  {job.Lost, 3, "3 times in a row its subjobs ended without progress: it was restarted"},
		1:  {job.Lost, 1, "its subjob ended without progress: it was restarted"},
	} {
		w, runs := newWorld(t, 1024), 0
		w.run = func(m *protocol.Message) (time.Duration, job.Result) {
			runs++
			from := m.Body.(*protocol.Work).Range.From
			return time.Millisecond, job.Result{Outcome: c.outcome, Start: w.now, Progress: from, Detail: "it was restarted"}
		}
		s := items(t, "killed", 5, 100, 1)
		s.MaxFailures = c.most
		w.submit(s)
		w.until(24 * time.Hour)
		if v := w.closed["killed"]; v.State != job.Failed || v.Reason != c.said || runs != bound {
			t.Errorf("%v after %d subjobs, want %d and %q", v, runs, bound, c.said)
		}
	}
	w := newWorld(t, 1024)
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		return time.Second, job.Result{Outcome: job.ExitFailed, ExitCode: 1, Progress: m.Body.(*protocol.Work).Range.From, Detail: "bad"}
	}
	s := items(t, "bad", 100, 100, 1)
	s.OnBadItem = job.BadItemSkips
	w.submit(s)
	w.until(24 * time.Hour)
	if v := w.closed["bad"]; v.State != job.Failed ||
		!strings.Contains(v.Reason, "17 units were bad, more than the 16 that may be skipped: bad") {
		t.Errorf("%v", v)
	}
}
