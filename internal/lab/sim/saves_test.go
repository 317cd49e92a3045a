package sim

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/sim/skew"
	"sluice.dev/sluice/internal/lab/workload"
)

// TestCheckpointsOnTheWay: what a chain has done and saved at any instant, when each of its units is done and how many have begun, is
// what a walk through its units and checkpoints finds.
func TestCheckpointsOnTheWay(t *testing.T) {
	const s = quantity.Instant(time.Second)
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(1, 30).Draw(t, "units")
		spec := &job.Spec{Kind: job.Steps, Total: total, Grid: 1,
			Checkpoint: time.Duration(rapid.IntRange(0, 15).Draw(t, "checkpoint")) * time.Second}
		r := &course{begin: 7 * s, clock: &skew.Clock{}, does: Behaviour{
			Restore: time.Duration(rapid.IntRange(0, 9).Draw(t, "before")) * time.Second,
			PerUnit: time.Duration(rapid.IntRange(1, 12).Draw(t, "unit")) * time.Second, Saves: rapid.Int64Range(0, 5).Draw(t, "saves"),
			Yields: true,
		}}
		r.start.Body = &protocol.Work{Spec: spec}
		r.rng = job.Range{From: rapid.Int64Range(0, total-1).Draw(t, "from"), To: total}
		now := quantity.Instant(rapid.IntRange(0, 500).Draw(t, "at")) * s
		at, done, begun, saved := r.begin.Add(r.does.Restore), r.rng.From, r.rng.From, r.rng.From
		for unit := r.rng.From + 1; unit <= total; unit++ {
			if at <= now {
				begun = unit
			}
			if at = at.Add(r.does.PerUnit); at <= now {
				done = unit
			}
			if got := r.reaches(unit); got != at {
				t.Fatalf("unit %d is done at %d; a walk says %d", unit, got, at)
			}
			if n := unit - r.rng.From; r.does.Saves > 0 && n%r.does.Saves == 0 && unit < total {
				if at = at.Add(spec.Checkpoint); at <= now {
					saved = unit
				}
			}
		}
		if got := r.complete(now); got != done {
			t.Fatalf("%d units are done; a walk says %d", got, done)
		}
		if got := r.kept(now); got != saved {
			t.Fatalf("%d units are saved; a walk says %d", got, saved)
		}
		if res := r.outcome(job.Stopped, now); res.Checkpoint != (saved > r.rng.From) || res.Progress != saved {
			t.Fatalf("killed: %+v; %d units are saved", res, saved)
		}
		// While it leaves a checkpoint the next unit counts as begun: what it uses is not less then.
		if got := r.entered(&workload.Job{Units: total, Kind: job.Steps}, now); got < begun || got > done+1 {
			t.Fatalf("%d units have begun; a walk says %d", got, begun)
		}
	})
}
