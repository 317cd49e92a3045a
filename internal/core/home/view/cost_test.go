package view

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// TestWhatAReservationCosts: what a subjob reported counts, and the rest of what it ran is done again; of a rigid job that is all.
func TestWhatAReservationCosts(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	token := job.Token{Epoch: 1, Seq: 1}
	sold := func(spec *job.Spec, r job.Range) {
		s.adopt(t, spec)
		s.ledger.Apply(protocol.Fact{Kind: protocol.Claimed, Job: spec.Name, Token: token,
			Body: &protocol.Sale{Placement: protocol.Placement{Slice: "s0", Range: r, Start: now, End: now.Add(time.Hour)}, Speed: 500}})
	}
	sold(needs("items", 100, 0, 100), job.Range{From: 10, To: 50})
	sold(needs("rigid", 100, time.Hour, 1), job.Range{To: 1})
	cost := func(id job.ID, withdrawn bool) status.Cut {
		cut := status.Cut{Job: id, Token: token, Range: job.Range{From: 10, To: 50}, At: now.Add(100 * time.Second), Withdrawn: withdrawn}
		if !withdrawn {
			cut.Started = now
		}
		return s.Costs([]status.Cut{cut})[0]
	}
	want := func(when string, c status.Cut, kind job.Kind, reported int64, ran, risk time.Duration) {
		t.Helper()
		if c.Kind != kind || c.Reported != reported || c.Ran != ran*time.Second || c.AtRisk != risk*time.Second {
			t.Errorf("%s: %v, %d units, ran %v, of which %v at risk; want %v, %d, %v s and %v s", when, c.Kind, c.Reported, c.Ran, c.AtRisk,
				kind, reported, int64(ran), int64(risk))
		}
	}
	report := func(id job.ID, progress int64) {
		s.ledger.Step(now, &protocol.Message{Kind: protocol.Report, Job: id, Token: token, Body: &protocol.Observation{Progress: progress,
			At: now}}, &protocol.Out{})
	}
	want("nothing is reported", cost("items", false), job.Items, 0, 100, 100)
	want("it has not begun", cost("items", true), job.Items, 0, 0, 0)
	report("items", 30)
	want("20 units at half the speed", cost("items", false), job.Items, 20, 100, 60)
	s.ledger.Apply(protocol.Fact{Kind: protocol.Calibrated, Job: "items", Body: &protocol.Learned{Rate: 2 * time.Second, Margin: 1000,
		MemoryScale: trp.Unscaled}})
	want("20 units that take twice what was said", cost("items", false), job.Items, 20, 100, 20)
	report("items", 90)
	want("more than it was sold, in less time", cost("items", false), job.Items, 40, 100, 0)
	report("rigid", 1)
	want("a rigid one", cost("rigid", false), job.Rigid, 0, 100, 100)
	other := status.Cut{Job: "elsewhere", Token: token, Kind: job.Steps, Reported: 7, Ran: time.Minute, AtRisk: time.Second}
	if got := s.Costs([]status.Cut{other})[0]; got != other {
		t.Errorf("of another zone's: %+v", got)
	}
}
