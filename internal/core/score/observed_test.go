package score_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
)

// sold is a subjob of 100 of 500 units, from 1,000 s on, with 10 s of overhead in 100 s and a grace of 5 s.
func sold() (*job.Spec, protocol.Claim) {
	spec := &job.Spec{Worth: job.DefaultWorth, Launch: job.Launch{Grace: 5 * time.Second}}
	return spec, protocol.Claim{Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{From: 200, To: 300}, Start: at(1000),
		End: at(1105), Plan: protocol.Plan{Run: 90 * time.Second, Wall: 100 * time.Second}},
		Bid: &protocol.Bid{Left: 500, Urgency: 400_000}}}
}

func TestObservedScore(t *testing.T) {
	for _, c := range []struct {
		name       string
		done       job.Range
		start, end int64 // seconds
		want       int64
	}{
		// .6 x 100/500 + .2 x .4 + .2 x (1 - 10/100)
		{"as promised", job.Range{From: 200, To: 300}, 1000, 1100, 380_000},
		{"half of it", job.Range{From: 200, To: 250}, 1000, 1100, 280_000},
		{"faster: the overhead weighs more", job.Range{From: 200, To: 300}, 1000, 1050, 360_000},
		{"into the grace: too late to be urgent", job.Range{From: 200, To: 300}, 1001, 1101, 300_000},
		{"at the last moment", job.Range{From: 200, To: 300}, 1050, 1100, 360_000},
		{"nothing counts", job.Range{From: 200, To: 200}, 1000, 1100, 0},
		{"ended before its overhead was over", job.Range{From: 200, To: 201}, 1000, 1008, 2_000},
		{"extended beyond what was for sale", job.Range{From: 0, To: 900}, 1000, 1100, 860_000},
	} {
		spec, claim := sold()
		if got := score.Observed(spec, &claim, c.done, &job.Result{Start: at(c.start), End: at(c.end)}); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// A job that does exactly what it declared is observed at exactly what it declared: honesty leaves no error.
func TestHonestJobsAreObservedAsDeclared(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec, c := sold()
		spec.Worth.Progress = rapid.Int64Range(0, 1000).Draw(t, "progress")
		spec.Worth.Laxity = rapid.Int64Range(0, 1000-spec.Worth.Progress).Draw(t, "laxity")
		spec.Worth.Overhead = 1000 - spec.Worth.Progress - spec.Worth.Laxity
		c.Bid.Left = rapid.Int64Range(100, 1e12).Draw(t, "left")
		finish, deadline := at(1100+rapid.Int64Range(0, 5000).Draw(t, "finish")), at(rapid.Int64Range(1100, 9000).Draw(t, "deadline"))
		c.Bid.Urgency = score.Laxity(finish, deadline)
		declared := score.Job{
			Progress: score.Progress(c.Range.Len(), c.Bid.Left), Laxity: c.Bid.Urgency, Overhead: score.Overhead(c.Plan.Wall-c.Plan.Run,
				c.Plan.Wall),
		}.Of(spec.Worth)
		r := &job.Result{Start: c.Start, End: c.Start.Add(c.Plan.Wall)}
		if got := score.Observed(spec, &c, c.Range, r); got != declared {
			t.Fatalf("declared %d, observed %d", declared, got)
		}
		// Whatever else is done instead, it stays a score.
		done := job.Range{From: 200, To: 200 + rapid.Int64Range(0, 1e12).Draw(t, "units")}
		r.End = quantity.Instant(rapid.Int64().Draw(t, "end"))
		if got := score.Observed(spec, &c, done, r); got < 0 || got > score.One {
			t.Fatalf("%v until %d is worth %d", done, r.End, got)
		}
	})
}

// What a plan hides in its run time is seen by the spec: a restore costs what it costs.
func TestHiddenOverheadIsObserved(t *testing.T) {
	spec, honest := sold()
	spec.Total, spec.Startup, spec.Restore, spec.Checkpoint = 500, time.Second, 6*time.Second, 3*time.Second
	honest.Plan.Resume = job.Token{Epoch: 1, Seq: 1}
	r := &job.Result{Start: at(1000), End: at(1100)}
	hidden := honest
	hidden.Plan.Run = hidden.Plan.Wall
	if a, b := score.Observed(spec, &honest, honest.Range, r), score.Observed(spec, &hidden, honest.Range, r); a != b || a != 380_000 {
		t.Errorf("the honest plan is observed at %d, the other at %d; want 380000 of both", a, b)
	}
	hidden.Plan.Resume, hidden.Range = job.Token{}, job.Range{From: 400, To: 500}
	if got := score.Observed(spec, &hidden, hidden.Range, r); got != 398_000 { // a first start that finishes: a second of start-up
		t.Errorf("a first and last piece is observed at %d, want 398000", got)
	}
}
