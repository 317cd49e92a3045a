package bound_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/bound"
	"sluice.dev/sluice/internal/lab/workload"
)

// Where a job may run by its declared profile: phases of 6 and 14 GB with little deviation, on slices of 5, 10 and 20.
func TestOf(t *testing.T) {
	const gb = quantity.Amount(1_000_000_000)
	classes := []bound.Class{{Name: "s", Count: 1, Speed: 100, Memory: 5 * gb}, {Name: "m", Count: 1, Speed: 300, Memory: 10 * gb},
		{Name: "l", Count: 1, Speed: 900, Memory: 20 * gb}}
	phases := []trp.Phase{{UpTo: 25, Mean: 6 * gb, SD: gb / 10}, {UpTo: 100, Mean: 14 * gb, SD: gb / 10}}
	j := workload.Job{
		Submit: 5, Kind: job.Steps, Slices: 1, Units: 100, Grid: 1, Parallelism: 1, Work: 100 * time.Minute, Declared: time.Hour,
		Speeds: []job.SpeedOn{{Profile: "m", Permille: 500}}, Theta: job.DefaultTheta,
		Profile: trp.Profile{Form: trp.Phases, Phases: phases}, Memory: workload.Memory{Phases: phases},
	}
	of := func() bound.Job {
		t.Helper()
		var specs workload.Specs
		s, err := specs.Spec(&j, j.Name())
		if err != nil {
			t.Fatal(err)
		}
		return bound.Of(&j, s, classes)
	}
	b := of()
	if b.Submit != 5 || b.Width != 1 || b.Whole || len(b.Parts) != 2 {
		t.Fatalf("%+v", b)
	}
	if p := b.Parts[0]; p.Work != 25*time.Minute || p.Speeds != (bound.Speeds{0, 500, 900}) {
		t.Errorf("the phase of 6 GB: %+v", p)
	}
	if p := b.Parts[1]; p.Work != 75*time.Minute || p.Speeds != (bound.Speeds{0, 0, 900}) {
		t.Errorf("the phase of 14 GB: %+v", p)
	}
	j.Kind, j.Slices = job.Rigid, 3
	if b = of(); !b.Whole || b.Width != 3 || len(b.Parts) != 1 || b.Parts[0].Work != 300*time.Minute ||
		b.Parts[0].Speeds != (bound.Speeds{0, 0, 900}) {
		t.Errorf("the rigid job: %+v", b)
	}
	j.Kind, j.Slices, j.Parallelism = job.Items, 1, 4
	if b = of(); b.Width != 4 || b.Whole {
		t.Errorf("the job of items: %+v", b)
	}
}
