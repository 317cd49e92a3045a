package atomizer_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

const gb = 1_000_000_000

// vector is a job worked out by hand: one unit is one second.
func vector(t testing.TB) *job.Spec {
	p := trp.Profile{Form: trp.Phases, Phases: []trp.Phase{
		{UpTo: 600, Mean: 6 * gb, SD: 3 * gb / 10},
		{UpTo: 4200, Mean: 14 * gb, SD: 8 * gb / 10},
		{UpTo: 4500, Mean: 22 * gb, SD: gb},
		{UpTo: 5400, Mean: 8 * gb, SD: 4 * gb / 10},
	}}
	table, err := trp.Compile(p, 5400, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	return &job.Spec{
		Name: "vector", Kind: job.Steps, Total: 5400, PerUnit: time.Second, Grid: 60, Parallelism: 1,
		Restore: 20 * time.Second, Checkpoint: 15 * time.Second, TauMin: 120 * time.Second, Profile: p, Safe: table,
	}
}

func TestVectorOfSJA(t *testing.T) {
	spec := vector(t)
	for _, c := range []struct {
		name            string
		gb, d, progress int64
		work, wall      int64
		why             atomizer.Why
	}{
		{"W1", 10, 900, 0, 600, 615, atomizer.Interested},
		{"W2", 18, 1200, 600, 1140, 1175, atomizer.Interested},
		{"W3", 14, 1200, 1740, 0, 0, atomizer.Unsafe},
		{"W4", 24, 100, 1740, 0, 0, atomizer.TooShort},
		{"W5", 20, 3600, 1740, 2460, 2495, atomizer.Interested},
		{"W6", 24, 300, 4200, 0, 0, atomizer.Unsafe},
		{"W7", 40, 3600, 4200, 1200, 1220, atomizer.Interested},
	} {
		v := &atomizer.View{Spec: spec, Learned: &protocol.Learned{Margin: 1000}}
		if c.progress > 0 {
			v.Committed, v.Resume = v.Committed.Add(job.Range{From: 0, To: c.progress}), job.Token{Epoch: 1, Seq: 1}
		}
		w := atomizer.Window{Capacity: trp.Vector{quantity.Amount(c.gb * gb)}, Speed: 1000,
			End: quantity.Instant(0).Add(time.Duration(c.d) * time.Second)}
		p, r := atomizer.Fit(v, w)
		if r.Why != c.why || p.Run != time.Duration(c.work)*time.Second || p.Wall != time.Duration(c.wall)*time.Second {
			t.Errorf("%s: got work %v wall %v why %d, want %d s, %d s, %d", c.name, p.Run, p.Wall, r.Why, c.work, c.wall, c.why)
		}
	}
}

// TestPieces holds for every piece whatever the job and the window: it is free, safe, on the grid, within the window
// and not below tau_min unless it finishes what is free.
func TestPieces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		total := rapid.Int64Range(1, 500).Draw(t, "total")
		mid := rapid.Int64Range(1, total).Draw(t, "phase")
		ps := []trp.Phase{{UpTo: mid, Mean: 100}, {UpTo: total, Mean: quantity.Amount(rapid.Int64Range(50, 200).Draw(t, "mean"))}}
		if mid == total {
			ps = ps[:1]
		}
		table, err := trp.Compile(trp.Profile{Form: trp.Phases, Phases: ps}, total, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		s := &job.Spec{
			Kind: rapid.SampledFrom([]job.Kind{job.Items, job.Steps}).Draw(t, "kind"), Total: total, PerUnit: time.Second,
			Grid: rapid.Int64Range(1, 20).Draw(t, "grid"), Parallelism: 1, Safe: table,
			Restore:    time.Duration(rapid.Int64Range(0, 20).Draw(t, "r")) * time.Second,
			Checkpoint: time.Duration(rapid.Int64Range(0, 20).Draw(t, "k")) * time.Second,
			TauMin:     time.Duration(rapid.Int64Range(0, 60).Draw(t, "tau")) * time.Second,
		}
		s.Launch.Grace = time.Duration(rapid.Int64Range(0, 5).Draw(t, "grace")) * time.Second
		if s.Kind == job.Items {
			s.Parallelism = rapid.IntRange(1, 4).Draw(t, "parallelism")
		}
		v := &atomizer.View{Spec: s, Learned: &protocol.Learned{Margin: rapid.Int64Range(900, 2000).Draw(t, "margin")}}
		done := rapid.Int64Range(0, total).Draw(t, "done") / s.Grid * s.Grid
		v.Committed = v.Committed.Add(job.Range{From: 0, To: done})
		if s.Kind == job.Items {
			a := rapid.Int64Range(0, total-1).Draw(t, "claim")
			r := job.Range{From: a, To: rapid.Int64Range(a+1, total).Draw(t, "claim end")}
			if !v.Committed.Overlaps(r) {
				v.Claimed = v.Claimed.Add(r)
			}
		} else if done > 0 {
			v.Resume = job.Token{Epoch: 1, Seq: 1}
		}
		w := atomizer.Window{
			Capacity: trp.Vector{quantity.Amount(rapid.Int64Range(40, 220).Draw(t, "capacity"))},
			Speed:    rapid.Int64Range(100, 2000).Draw(t, "speed"),
			End:      quantity.Instant(rapid.Int64Range(1, 900).Draw(t, "length") * 1e9),
		}
		p, r := atomizer.Fit(v, w)
		if r.Why != atomizer.Interested {
			if !p.Range.Empty() {
				t.Fatalf("refused with a piece %v", p)
			}
			return
		}
		free := job.NextFree(p.Range.From, total, v.Committed, v.Claimed)
		switch {
		case p.Range.Empty() || free.From != p.Range.From || p.Range.To > free.To:
			t.Fatalf("%v is not free in %v", p.Range, free)
		case !p.Demand.Fits(w.Capacity) || table.LeastOver(p.Range.From, p.Range.To, 0) > w.Capacity[trp.Memory]:
			t.Fatalf("%v is not safe on %d", p.Range, w.Capacity[trp.Memory])
		case p.Length > w.End.Sub(w.Start) || p.Wall < p.Run || p.Length != p.Wall+s.Launch.Grace:
			t.Fatalf("%+v does not fit %v", p, w.End.Sub(w.Start))
		case p.Range.To%s.Grid != 0 && p.Range.To != free.To:
			t.Fatalf("%v ends off the grid %d", p.Range, s.Grid)
		case p.Run < s.TauMin && p.Range.To != free.To:
			t.Fatalf("%v runs %v, below tau_min %v", p.Range, p.Run, s.TauMin)
		case v.RunTime(p.Range.Len(), w.Speed) != p.Run:
			t.Fatalf("run %v is not the time of %v", p.Run, p.Range)
		}
	})
}
