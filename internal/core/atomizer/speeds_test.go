package atomizer_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestSpeedsOfAJob: its walltime is divided by its speed on the slice, and where that is 0 it does not run.
func TestSpeedsOfAJob(t *testing.T) {
	table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: []trp.Phase{{UpTo: 100, Mean: 1}}}, 100, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	speeds := []job.SpeedOn{{Profile: "small", Permille: 250}, {Profile: "none"}, {Profile: "large", Permille: 2000}}
	walltime := job.Spec{Kind: job.Rigid, Total: 1, Grid: 1, Parallelism: 1, Walltime: time.Minute, Safe: table,
		Launch: job.Launch{Grace: time.Second}, Speeds: speeds}
	literal := walltime
	literal.Speeds = nil
	divisible := job.Spec{Kind: job.Steps, Total: 100, Grid: 1, Parallelism: 1, PerUnit: time.Second, Safe: table, Speeds: speeds}
	for _, c := range []struct {
		spec    *job.Spec
		profile string
		why     atomizer.Why
		run     time.Duration
	}{
		{&walltime, "small", atomizer.Interested, 4 * time.Minute},
		{&walltime, "large", atomizer.Interested, 30 * time.Second},
		{&walltime, "other", atomizer.Interested, 2 * time.Minute},
		{&walltime, "none", atomizer.Barred, 0},
		{&literal, "small", atomizer.Interested, time.Minute},
		{&divisible, "small", atomizer.Interested, 500 * time.Second}, // its first run has a margin of a quarter
		{&divisible, "large", atomizer.Interested, 62500 * time.Millisecond},
		{&divisible, "none", atomizer.Barred, 0},
	} {
		v := atomizer.View{Spec: c.spec, Learned: &protocol.Learned{}}
		w := atomizer.Window{Capacity: trp.Vector{1}, Speed: c.spec.SpeedOn(c.profile, 500), End: quantity.Instant(1e15)}
		if p, r := atomizer.Fit(&v, w); r.Why != c.why || p.Run != c.run {
			t.Errorf("kind %d on %s: %+v %+v, want run %v", c.spec.Kind, c.profile, p, r, c.run)
		}
	}
}
