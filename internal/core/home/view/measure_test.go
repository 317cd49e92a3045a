package view

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestAJobThatMeasures says so, and nobody says when it finishes; once a unit's time is known all is said of it that is said of others.
func TestAJobThatMeasures(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	s.open = 1
	spec := needs("j", 100, 0, 100)
	spec.PerUnit, spec.Parallelism, spec.Unit = 0, 4, "line"
	j := s.adopt(t, spec)
	show := func() (shown struct {
		measuring    bool
		reason       string
		start, ended bool
	}) {
		of, _ := s.Brief(now, "j")
		shown.measuring, shown.reason, shown.start, shown.ended = of.Measuring, of.Reason, of.StartLate != 0, of.FinishLate != 0
		return shown
	}
	if got := show(); !got.measuring || !got.start || got.ended {
		t.Errorf("it waits: %+v", got)
	}
	e, _ := s.Explain(now, "j")
	if want := "a piece [0,1) would be given up to 1m0s, and tell how long a line takes"; len(e.Slices) != 1 || e.Slices[0].Why != want {
		t.Errorf("of its slices it is said %+v, want %q", e.Slices, want)
	}
	for reason, want := range map[explain.Reason]string{
		explain.AtParallelism: "how long a line takes is measured first, by one subjob alone",
		explain.TooShort:      "the free windows are too short to measure how long a line takes: that is given 1m1s",
	} {
		cause := explain.Cause{Reason: reason, Refusal: atomizer.Refusal{Need: 61 * time.Second}}
		if text := s.Sentence(j, &cause); text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
	s.claimed("j", 1, job.Range{To: 1}, time.Minute)
	if got := show(); !got.measuring || got.ended || got.reason != "measuring how long a line takes, starting on s0" {
		t.Errorf("it runs: %+v", got)
	}
	s.ledger.Apply(protocol.Fact{Kind: protocol.Committed, Job: "j", Token: job.Token{Epoch: 1, Seq: 1}, At: now,
		Body: &protocol.ClaimEnd{Range: job.Range{To: 1}, Result: &job.Result{Progress: 1, Start: now}}})
	s.ledger.Apply(protocol.Fact{Kind: protocol.Calibrated, Job: "j", Body: &protocol.Learned{Rates: []time.Duration{time.Second},
		Rate: time.Second, Margin: 1250, Sampled: 1, Start: time.Second}})
	if got := show(); got.measuring || !got.ended || strings.Contains(got.reason, "measur") {
		t.Errorf("it has measured: %+v", got)
	}
}
