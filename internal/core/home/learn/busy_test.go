package learn

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

const busyStart = quantity.Instant(1_000_000_000_000)

// taughtBy is what a job of 100 units of a second each knows after a subjob of 10 units that ran so long, and waited so much of it.
func taughtBy(l protocol.Learned, kind job.Kind, outcome job.Outcome, progress int64, ran, waited time.Duration) (*job.Spec,
	protocol.Learned) {
	spec := &job.Spec{Kind: kind, Total: 100, Grid: 1, Parallelism: 1, PerUnit: time.Second, Walltime: 10 * time.Second}
	c := &protocol.Claim{Asked: busyStart, Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{To: 10}, Start: busyStart,
		End: busyStart.Add(ran)}, Speed: 1000}}
	r := &job.Result{Outcome: outcome, Progress: progress, Start: busyStart, End: busyStart.Add(ran), Waited: waited}
	learned, _ := Result(busyStart.Add(ran), spec, &l, c, r, job.Range{To: progress}, nowhere{})
	return spec, learned
}

// TestWaitingForAProcessorIsNotLearnedAsRunTime: a unit takes what it takes, and plans have on top what the machine lets it wait, for as
// long as it does.
func TestWaitingForAProcessorIsNotLearnedAsRunTime(t *testing.T) {
	_, quiet := taughtBy(protocol.Learned{}, job.Items, job.Done, 10, 10*time.Second, 0)
	_, busy := taughtBy(protocol.Learned{}, job.Items, job.Done, 10, 40*time.Second, 30*time.Second)
	if quiet.Rate != time.Second || quiet.Busy != 0 || busy.Rate != quiet.Rate || busy.Busy != 750 {
		t.Fatalf("quiet %v and %d, busy %v and %d: want a second each, and 750", quiet.Rate, quiet.Busy, busy.Rate, busy.Busy)
	}
	spec, after := taughtBy(busy, job.Items, job.Done, 10, 10*time.Second, 0)
	if after.Busy != 375 {
		t.Errorf("after a subjob that did not wait %d, want half of 750", after.Busy)
	}
	run := func(l protocol.Learned) time.Duration {
		l.Margin = 1000
		v := atomizer.View{Spec: spec, Learned: &l}
		return v.RunTime(10, 1000)
	}
	if run(quiet) != 10*time.Second || run(busy) != 40*time.Second || run(after) != 16*time.Second {
		t.Errorf("10 units are planned with %v, %v and %v; want 10, 40 and 16 s", run(quiet), run(busy), run(after))
	}
	// What nobody would believe harms nothing.
	if _, l := taughtBy(protocol.Learned{}, job.Items, job.Done, 10, 10*time.Second, time.Hour); l.Busy != mostBusy || l.Rate != 0 {
		t.Errorf("%+v", l)
	}
}

// TestIdleTimeIsNotLearnedAsRunTime: what a command did after its last unit no unit has cost, also of a piece that measures.
func TestIdleTimeIsNotLearnedAsRunTime(t *testing.T) {
	for _, perUnit := range []time.Duration{time.Second, 0} {
		spec := &job.Spec{Kind: job.Items, Total: 100, Grid: 1, Parallelism: 1, PerUnit: perUnit}
		rate := func(ran, idle time.Duration) time.Duration {
			c := &protocol.Claim{Asked: busyStart, Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{To: 10},
				Start: busyStart, End: busyStart.Add(ran)}, Speed: 1000}}
			r := &job.Result{Outcome: job.Done, Progress: 10, Start: busyStart, End: busyStart.Add(ran), Idle: idle}
			l, _ := Result(busyStart.Add(ran), spec, &protocol.Learned{}, c, r, job.Range{To: 10}, nowhere{})
			return l.Rate
		}
		if plain, idle := rate(10*time.Second, 0), rate(time.Minute, 50*time.Second); plain != time.Second || idle != plain {
			t.Errorf("declared %v: a unit took %v, and %v where its command went on; want a second", perUnit, plain, idle)
		}
	}
	r := job.Result{Start: busyStart, End: busyStart.Add(time.Second), Idle: time.Hour}
	if r.Own() != 0 {
		t.Errorf("%v of its own", r.Own())
	}
}

// TestWhoGivesUpEarlyWasNotStarved: a program that yields before it is asked to, without having done anything, fails by itself, however
// busy its machine. It is asked by its end less its grace, or when it is warned if that is earlier.
func TestWhoGivesUpEarlyWasNotStarved(t *testing.T) {
	c := &protocol.Claim{Asked: busyStart, Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{To: 10}, Start: busyStart,
		End: busyStart.Add(10 * time.Second)}, Speed: 1000}}
	for _, w := range []struct {
		warn, ran time.Duration
		failures  int
	}{
		{0, time.Second, 1}, {0, 8900 * time.Millisecond, 1}, {0, 9 * time.Second, 0},
		{4 * time.Second, 5900 * time.Millisecond, 1}, {4 * time.Second, 6 * time.Second, 0},
	} {
		launch := job.Launch{Grace: time.Second, WarnBefore: w.warn}
		spec := &job.Spec{Kind: job.Steps, Total: 100, Grid: 1, Parallelism: 1, PerUnit: time.Second, Launch: launch}
		r := &job.Result{Outcome: job.Yielded, Start: busyStart, End: busyStart.Add(w.ran), Waited: w.ran * 9 / 10}
		if l, _ := Result(r.End, spec, &protocol.Learned{}, c, r, job.Range{}, nowhere{}); l.Failures != w.failures ||
			l.Kills != 1-w.failures {
			t.Errorf("%+v: %d failures and %d kills", w, l.Failures, l.Kills)
		}
	}
}

// TestWantOfAProcessorIsNoFailureOfAJob, but a walltime counts as it stands; either says that the machine was busy.
func TestWantOfAProcessorIsNoFailureOfAJob(t *testing.T) {
	for _, c := range []struct {
		name            string
		kind            job.Kind
		outcome         job.Outcome
		waited          time.Duration
		failures, kills int
		said            string
	}{
		{"slow by itself", job.Items, job.DeadlineKilled, 0, 1, 0, ""},
		{"a little", job.Items, job.DeadlineKilled, 3 * time.Second, 1, 0, "the machine was busy 30% of its time"},
		{"starved", job.Items, job.DeadlineKilled, 7 * time.Second, 0, 1, "the machine was busy 70% of its time"},
		{"starved, and it yielded", job.Steps, job.Yielded, 7 * time.Second, 0, 1, "the machine was busy 70% of its time"},
		{"its walltime", job.Rigid, job.DeadlineKilled, 7 * time.Second, 1, 0, "the machine was busy 70% of its time"},
	} {
		if _, l := taughtBy(protocol.Learned{Kills: mostStarved}, c.kind, c.outcome, 0, 10*time.Second, c.waited); l.Failures != 1 {
			t.Errorf("%s: after %d in a row it has %d failures, want 1", c.name, mostStarved, l.Failures)
		}
		_, l := taughtBy(protocol.Learned{MemoryScale: trp.Unscaled}, c.kind, c.outcome, 0, 10*time.Second, c.waited)
		if l.Failures != c.failures || l.Kills != c.kills || !strings.HasSuffix(l.LastDetail, c.said) {
			t.Errorf("%s: %d failures and %d kills, %q; want %d, %d and %q", c.name, l.Failures, l.Kills, l.LastDetail, c.failures, c.kills,
				c.said)
		}
	}
}
