package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
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
	s.ledger.Apply(protocol.Fact{Kind: protocol.Committed, Job: "j", Token: token(4), Node: "n", Range: job.Range{From: 30, To: 40}, Result: &job.Result{Progress: 40, Start: now}, At: at})
	s.ledger.Apply(protocol.Fact{Kind: protocol.Committed, Job: "j", Token: token(2), Range: job.Range{From: 10, To: 20}, Result: &job.Result{Progress: 20}, Skipped: true, At: at})
	s.ledger.Apply(protocol.Fact{Kind: protocol.Released, Job: "j", Token: token(1), Result: &job.Result{Outcome: job.Lost}, At: at})
	s.ledger.Report(now, &protocol.Message{Kind: protocol.Report, Job: "j", Token: token(3)}, &protocol.Observation{Progress: 27, At: now}, &protocol.Out{})
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
		t.Errorf("%d units done and %d given up, %d reported; %d subjobs count, %d are lost, %d run", j.Progress, j.Skipped, j.Reported, j.Subjobs, j.Lost, j.Running)
	}
}

// TestTheWaitOfWhoNeverRanEndsWithIt: what is over waits no longer.
func TestTheWaitOfWhoNeverRanEndsWithIt(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	s.adopt(t, needs("j", 100, 0, 100))
	if j, _ := s.Brief(now.Add(time.Minute), "j"); j.Wait != time.Minute {
		t.Errorf("it has waited %v, want 1m", j.Wait)
	}
	s.ledger.Apply(protocol.Fact{Kind: protocol.Ended, Job: "j", Verdict: job.Verdict{State: job.Cancelled}, At: now.Add(90 * time.Second)})
	if j, _ := s.Brief(now.Add(time.Hour), "j"); j.Wait != 90*time.Second {
		t.Errorf("it had waited %v, want 1m30s", j.Wait)
	}
}

// TestWhatIsExplained: why a job was not served, what came most often first, and what each slice says to its next piece.
func TestWhatIsExplained(t *testing.T) {
	s := newStand(Config{}, []int64{512, 50, 1024}, now, now, quantity.Never)
	s.adopt(t, needs("j", 100, 0, 100))
	s.claimed("j", 1, job.Range{To: 10}, 0) // all that its parallelism allows
	s.counts = market.Counts{List: []market.Cause{{Reason: market.QueueCap, N: 2}, {Reason: market.Eligible, N: 9}, {Reason: market.AtParallelism, N: 3}}}
	e, _ := s.Explain(now, "j")
	if len(e.Reasons) != 2 || e.Reasons[0].Count != 3 || e.Reasons[1].Count != 2 {
		t.Errorf("reasons: %+v", e.Reasons)
	}
	if f := e.Slices; len(f) != 3 {
		t.Errorf("slices: %+v", f)
	}
	for _, f := range e.Slices {
		if fits := f.Slice == "s0"; f.Fits != fits || f.Reach.Empty() == fits || f.Why == "" || (f.Why == "it is broken") != (f.Slice == "s2") {
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
