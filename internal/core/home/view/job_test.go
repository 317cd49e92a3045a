package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// TestWhatIsShownOfAJob: its subjobs in order, with what became of each, how many of them count, and how far those are that run.
func TestWhatIsShownOfAJob(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	s.adopt(t, needs("j", 100, 0, 100))
	token := func(seq uint64) job.Token { return job.Token{Epoch: 1, Seq: seq} }
	for i := range int64(5) {
		s.claimed("j", uint64(i+1), job.Range{From: 10 * i, To: 10*i + 10}, 0)
	}
	at := now.Add(10 * time.Second)
	s.ledger.Apply(protocol.Fact{Kind: protocol.Committed, Job: "j", Token: token(4), At: at,
		Body: &protocol.ClaimEnd{Range: job.Range{From: 30, To: 40}, Result: &job.Result{Progress: 40, Start: now}}})
	s.ledger.Apply(protocol.Fact{Kind: protocol.Committed, Job: "j", Token: token(2), At: at,
		Body: &protocol.ClaimEnd{Range: job.Range{From: 10, To: 20}, Result: &job.Result{Progress: 20}, Skipped: true}})
	s.ledger.Apply(protocol.Fact{Kind: protocol.Released, Job: "j", Token: token(1), At: at,
		Body: &protocol.ClaimEnd{Result: &job.Result{Outcome: job.Lost}}})
	s.ledger.Step(now, &protocol.Message{Kind: protocol.Report, Job: "j", Token: token(3),
		Body: &protocol.Observation{Progress: 27, At: now}}, &protocol.Out{})
	j, _ := s.View.Job(now.Add(time.Minute), "j")
	var got []string
	for _, h := range j.History {
		got = append(got, fmt.Sprintf("%d %s %v %d", h.Token.Seq, h.Outcome, h.Committed, h.Progress))
	}
	want := []string{"1 lost [0,0) 0", "2 skipped [10,20) 0", "3 running [0,0) 27", "4 publishing [0,0) 0", "5 starting [0,0) 40"}
	if !slices.Equal(got, want) {
		t.Errorf("subjobs: %q, want %q", got, want)
	}
	if j.Progress != 10 || j.Skipped != 10 || j.Reported != 7 || j.Subjobs != 1 || j.Lost != 1 || j.Running != 2 {
		t.Errorf("%d units done and %d given up, %d reported; %d subjobs count, %d are lost, %d run", j.Progress, j.Skipped, j.Reported,
			j.Subjobs, j.Lost, j.Running)
	}
}

// TestTheWaitOfWhoNeverRanEndsWithIt: what is over waits no longer.
func TestTheWaitOfWhoNeverRanEndsWithIt(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	s.adopt(t, needs("j", 100, 0, 100))
	if j, _ := s.Brief(now.Add(time.Minute), "j"); j.Wait != time.Minute {
		t.Errorf("it has waited %v, want 1m", j.Wait)
	}
	s.ledger.Apply(protocol.Fact{Kind: protocol.Ended, Job: "j", At: now.Add(90 * time.Second),
		Body: &protocol.Final{Verdict: job.Verdict{State: job.Cancelled}}})
	if j, _ := s.Brief(now.Add(time.Hour), "j"); j.Wait != 90*time.Second {
		t.Errorf("it had waited %v, want 1m30s", j.Wait)
	}
}

// TestWhatIsExplained: why a job was not served, what came most often first, and what each slice says to its next piece.
func TestWhatIsExplained(t *testing.T) {
	s := newStand(Config{}, []int64{512, 50, 1024}, now, now, quantity.Never)
	s.adopt(t, needs("j", 100, 0, 100))
	s.claimed("j", 1, job.Range{To: 10}, 0) // all that its parallelism allows
	for why, n := range map[explain.Reason]int64{explain.QueueCap: 2, explain.Eligible: 9, explain.AtParallelism: 3} {
		s.counts.Several(why, n, 0)
	}
	e, _ := s.Explain(now, "j")
	if len(e.Reasons) != 2 || e.Reasons[0].Count != 3 || e.Reasons[1].Count != 2 {
		t.Errorf("reasons: %+v", e.Reasons)
	}
	if f := e.Slices; len(f) != 3 {
		t.Errorf("slices: %+v", f)
	}
	for _, f := range e.Slices {
		if fits := f.Slice == "s0"; f.Fits != fits || f.Reach.Empty() == fits || f.Why == "" ||
			(f.Why == "it is broken") != (f.Slice == "s2") {
			t.Errorf("%+v", f)
		}
	}
}

// TestADryRunSaysWhenItWouldStart: at once only where there is a window for everybody who waits.
func TestADryRunSaysWhenItWouldStart(t *testing.T) {
	for _, c := range []struct {
		mib  int64
		open int
		want string
	}{
		{100, 2, "it would start at once; 1 waiting jobs could be asked before it, by policy fifo"},
		{100, 0, "it is likely to start "},
		{2000, 2, "it would wait: no free window holds its first piece now"},
	} {
		s := newStand(Config{}, []int64{1024}, now)
		s.open = c.open
		s.adopt(t, needs("before", 100, 0, 100))
		if e := s.DryRun(now, compiled(t, needs("dry", c.mib, 0, 3600))); !strings.HasPrefix(e.Summary, c.want) {
			t.Errorf("%d MiB, %d windows: %q, want %q", c.mib, c.open, e.Summary, c.want)
		}
	}
}

// TestAGangShowsAllItsSlices: in a list, of its subjob, and in the reason.
func TestAGangShowsAllItsSlices(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	spec := needs("g", 100, time.Hour, 1)
	spec.Slices = 3
	s.adopt(t, spec)
	token := job.Token{Epoch: 1, Seq: 1}
	s.ledger.Apply(protocol.Fact{Kind: protocol.Claimed, Job: "g", Token: token,
		Body: &protocol.Sale{Placement: protocol.Placement{Slice: "s0", Also: []job.SliceID{"s1", "s2"}, Range: job.Range{To: 1},
			Start: now, End: now.Add(time.Hour)}, Speed: 1000}})
	all := []job.SliceID{"s0", "s1", "s2"}
	show := func(want string) {
		t.Helper()
		j, _ := s.View.Job(now, "g")
		if h := j.History[0]; !slices.Equal(j.Slices, all) || h.Slice != "s0" || !slices.Equal(h.Slices, all) || j.Reason != want {
			t.Errorf("%v, %v and %v, %q; want %q", j.Slices, h.Slice, h.Slices, j.Reason, want)
		}
	}
	show("starting on s0, s1, s2")
	s.ledger.Step(now, &protocol.Message{Kind: protocol.Report, Job: "g", Token: token, Body: &protocol.Observation{At: now}},
		&protocol.Out{})
	show("running on s0, s1, s2")
}

// TestWhatIsSoldForLaterWaits: a job whose lease is yet to begin waits for it, in every list, and is RUNNING when it begins.
func TestWhatIsSoldForLaterWaits(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	spec := needs("j", 100, 0, 100)
	spec.Owner = "ada"
	s.adopt(t, spec)
	start := now.Add(3 * time.Minute)
	s.ledger.Apply(protocol.Fact{Kind: protocol.Claimed, Job: "j", Token: job.Token{Epoch: 1, Seq: 1},
		Body: &protocol.Sale{Placement: protocol.Placement{Slice: "s0", Range: job.Range{To: 10}, Start: start,
			End: start.Add(time.Minute)}, Speed: 1000}})
	var waits, runs status.JobStates
	waits, runs = waits.With(job.Waiting), runs.With(job.Running)
	for _, c := range []struct {
		at              quantity.Instant
		state           job.State
		outcome, reason string
		waiting         int
	}{
		{now, job.Waiting, "sold", "(Resources) it has its place on s0 and begins there in 3m0s", 1},
		{start, job.Running, "starting", "starting on s0", 0},
	} {
		j, _ := s.View.Job(c.at, "j")
		if j.State != c.state || j.History[0].Outcome != c.outcome || j.Reason != c.reason {
			t.Errorf("it is %v, its subjob %s: %q; want %+v", j.State, j.History[0].Outcome, j.Reason, c)
		}
		for owner, jobs := range map[string]int{"": 1, "ada": 1, "bob": 0} {
			page := func(states status.JobStates) status.JobPage {
				return s.Page(c.at, status.JobQuery{States: states, Owner: owner})
			}
			w, r, all := page(waits), page(runs), page(0)
			if len(w.Jobs) != c.waiting*jobs || len(r.Jobs) != (1-c.waiting)*jobs || len(all.Jobs) != jobs ||
				w.Older+r.Older+all.Older != 0 {
				t.Errorf("%v: of owner %q %+v wait, %+v run, of %+v", c.state, owner, w, r, all)
			}
		}
	}
	if j, _ := s.Brief(now, "j"); j.StartEarly != start || j.StartLate != start {
		t.Errorf("it starts between %v and %v", j.StartEarly, j.StartLate)
	}
}

// TestMuchMoreThanDeclaredIsAHint: of memory and of time, as soon as the job is shown with its subjobs, and at its end.
func TestMuchMoreThanDeclaredIsAHint(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	s.adopt(t, needs("j", 64, 0, 100))
	ran := func(seq uint64, from int64, mib quantity.Amount, rate time.Duration) []string {
		s.claimed("j", seq, job.Range{From: from, To: from + 10}, 0)
		s.ledger.Apply(protocol.Fact{Kind: protocol.Committed, Job: "j", Token: job.Token{Epoch: 1, Seq: seq}, At: now,
			Body: &protocol.ClaimEnd{Range: job.Range{From: from, To: from + 10}, Result: &job.Result{Progress: from + 10, Start: now,
				Peak: trp.Vector{trp.Memory: mib << 20}}}})
		s.ledger.Apply(protocol.Fact{Kind: protocol.Calibrated, Job: "j", Body: &protocol.Learned{Rate: rate, Rates: []time.Duration{rate},
			Margin: 1000, MemoryScale: trp.Unscaled}})
		j, _ := s.View.Job(now, "j")
		return j.Hints
	}
	if h := ran(1, 0, 80, 1500*time.Millisecond); len(h) != 0 {
		t.Errorf("a little more: %q", h)
	}
	h := ran(2, 10, 608, 9500*time.Millisecond)
	if len(h) != 2 || !strings.Contains(h[0], "608Mi of memory, 9.5 times the 64Mi that spec.memory declares") ||
		!strings.Contains(h[1], "9.5s, 9.5 times the 1s that spec.items.perItem declares") {
		t.Errorf("%q", h)
	}
	s.ledger.Apply(protocol.Fact{Kind: protocol.Ended, Job: "j", At: now,
		Body: &protocol.Final{Verdict: job.Verdict{State: job.Cancelled}}})
	said := "the output of 20 units [0,20) is not in its place: node n has not said so, and is asked again and again"
	if j, _ := s.Brief(now, "j"); len(j.Hints) != 3 || j.Hints[2] != said {
		t.Errorf("at its end, before its output is there: %q", j.Hints)
	}
	for seq := range uint64(2) {
		s.ledger.Apply(protocol.Fact{Kind: protocol.OutputPublished, Job: "j", Token: job.Token{Epoch: 1, Seq: seq + 1}})
	}
	if j, _ := s.Brief(now, "j"); len(j.Hints) != 2 {
		t.Errorf("at its end: %q", j.Hints)
	}
}

// TestWhoIsOverIsMatchedWithNoSlice, but for one that can never run.
func TestWhoIsOverIsMatchedWithNoSlice(t *testing.T) {
	for state, want := range map[job.State]int{job.Cancelled: 0, job.Failed: 0, job.Impossible: 1} {
		s := newStand(Config{}, []int64{1024}, now)
		s.adopt(t, needs("j", 100, 0, 100))
		s.ledger.Apply(protocol.Fact{Kind: protocol.Ended, Job: "j", At: now, Body: &protocol.Final{Verdict: job.Verdict{State: state}}})
		if e, _ := s.Explain(now, "j"); len(e.Slices) != want {
			t.Errorf("%v: %+v", state, e.Slices)
		}
	}
}

// TestAPieceIsThatOfTheWindow: what is told of a job's next piece is what the slice's gaps and its queue allow.
func TestAPieceIsThatOfTheWindow(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	j := s.adopt(t, needs("j", 100, 0, 180))
	fit := func() status.SliceFit {
		e, _ := s.Explain(now, "j")
		return e.Slices[0]
	}
	if f := fit(); !f.Fits || f.Reach != (job.Range{To: 180}) {
		t.Errorf("in an open gap: %+v", f)
	}
	j.Queue().MaxWindow = 20 * time.Second
	if f := fit(); !f.Fits || f.Reach.To > 20 || f.Reach.Empty() {
		t.Errorf("in windows of 20 s: %+v", f)
	}
	j.Queue().MaxWindow = 0
	s.ends = now.Add(30 * time.Second)
	s.InvalidateSlice(s.Slices()[0])
	if f := fit(); !f.Fits || f.Reach.To > 30 || f.Reach.Empty() {
		t.Errorf("in a gap of 30 s: %+v", f)
	}
	s.ends = now.Add(time.Millisecond)
	s.InvalidateSlice(s.Slices()[0])
	if f := fit(); f.Fits || !strings.HasPrefix(f.Why, "its windows are of 1ms at most, its least useful piece takes ") {
		t.Errorf("in a gap of 1 ms: %+v", f)
	}
}
