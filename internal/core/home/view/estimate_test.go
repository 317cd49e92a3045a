package view

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// claimed is a subjob that a job was sold, to run at half the speed.
func (s *stand) claimed(id job.ID, seq uint64, r job.Range, wall time.Duration) {
	s.ledger.Apply(protocol.Fact{Kind: protocol.Claimed, Job: id, Token: job.Token{Epoch: 1, Seq: seq},
		Body: &protocol.Sale{Placement: protocol.Placement{Slice: "s0", Range: r, Start: now, End: now.Add(time.Hour),
			Plan: protocol.Plan{Wall: wall}}, Node: "n", Speed: 500}})
}

// estimated fails unless a job is to start, and to finish, between two instants, in seconds from now; 0 is when that is not known.
func estimated(t *testing.T, when string, j status.Job, start, finish [2]float64) {
	t.Helper()
	since := func(at quantity.Instant) float64 {
		if at == 0 {
			return 0
		}
		return at.Sub(now).Seconds()
	}
	if got := [2]float64{since(j.StartEarly), since(j.StartLate)}; got != start {
		t.Errorf("%s: it starts between %v, want %v", when, got, start)
	}
	if got := [2]float64{since(j.FinishEarly), since(j.FinishLate)}; got != finish {
		t.Errorf("%s: it finishes between %v, want %v", when, got, finish)
	}
}

// TestTheEndOfADivisibleJob is at the earliest when all slices that it may use work for it, at the latest when no more do than now and all
// that it met so far comes again.
func TestTheEndOfADivisibleJob(t *testing.T) {
	s := newStand(Config{}, []int64{1024, 1024, 1024}, now, now, quantity.Never)
	s.open = 1
	spec := needs("j", 100, 0, 100)
	spec.Parallelism = 8
	j := s.adopt(t, spec)
	show := func() status.Job {
		shown, _ := s.Brief(now.Add(60*time.Second), "j")
		return shown
	}
	// 100 units of 1 s with a quarter on top are 125 s: half of that on the two slices that are usable, and one and a half of it alone.
	shown := show()
	estimated(t, "it waits", shown, [2]float64{60, shown.StartLate.Sub(now).Seconds()},
		[2]float64{60 + 62.5, shown.StartLate.Sub(now).Seconds() + 187.5})
	s.claimed("j", 1, job.Range{To: 10}, 0)
	estimated(t, "on one slice", show(), [2]float64{}, [2]float64{60 + 62.5, 60 + 187.5})
	s.claimed("j", 2, job.Range{From: 10, To: 20}, 0)
	estimated(t, "on two", show(), [2]float64{}, [2]float64{60 + 62.5, 60 + 93.75})
	s.ledger.Apply(protocol.Fact{Kind: protocol.Committed, Job: "j", Token: job.Token{Epoch: 1, Seq: 1}, At: now,
		Body: &protocol.ClaimEnd{Range: job.Range{To: 10}, Result: &job.Result{Progress: 10, Start: now.Add(time.Second)}}})
	// A tenth of it took 60 s, of which 6.25 s were work on two slices: 53.75 s may come nine times more.
	estimated(t, "with a tenth done", show(), [2]float64{1, 1}, [2]float64{60 + 56.25, 60 + 112.5 + 9*53.75})
	j.Paused = true
	estimated(t, "paused", show(), [2]float64{}, [2]float64{})
}

// TestTheEndOfARigidJob is at any time once it has begun, and at the latest when its walltime is over.
func TestTheEndOfARigidJob(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	s.found = Place{Start: now.Add(10 * time.Minute), Speed: 1000}
	dry := s.DryRun(now, needs("dry", 100, time.Hour, 1)).Job
	if dry.StartEarly != s.found.Start || dry.StartLate <= dry.StartEarly {
		t.Errorf("before it is submitted, and no place is kept: between %v and %v", dry.StartEarly.Sub(now), dry.StartLate.Sub(now))
	}
	s.reserves = true
	estimated(t, "before it is submitted, where a place will be kept", s.DryRun(now, needs("dry", 100, time.Hour, 1)).Job,
		[2]float64{600, 600}, [2]float64{600, 4200})
	s.adopt(t, needs("j", 100, time.Hour, 1))
	show := func(after time.Duration) status.Job {
		shown, _ := s.Brief(now.Add(after), "j")
		return shown
	}
	s.places["j"] = s.found
	estimated(t, "with a place", show(0), [2]float64{600, 600}, [2]float64{600, 4200})
	s.claimed("j", 1, job.Range{To: 1}, 2*time.Hour)
	estimated(t, "about to start", show(time.Second), [2]float64{}, [2]float64{1, 7201})
	begun := &protocol.Beginning{At: now.Add(time.Second)}
	s.ledger.Step(begun.At, &protocol.Message{Kind: protocol.Running, Job: "j", Token: job.Token{Epoch: 1, Seq: 1}, Body: begun},
		&protocol.Out{})
	estimated(t, "a minute after it has started", show(61*time.Second), [2]float64{1, 1}, [2]float64{61, 7201})
}
