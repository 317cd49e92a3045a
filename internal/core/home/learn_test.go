package home

import (
	"testing"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestRaiseMemory: a kill raises the profile with a headroom, but never out of reach of the largest slice unless that is
// where the job was killed.
func TestRaiseMemory(t *testing.T) {
	const gib = quantity.Amount(1) << 30
	table := trp.Table{Bounds: []int64{50, 100}, Least: [][]quantity.Amount{{8 * gib, 16 * gib}, {16 * gib}}}
	for _, c := range []struct {
		name                string
		kind                job.Kind
		rng                 job.Range
		peak, here, largest quantity.Amount
		want                int64 // scale
	}{
		{"with headroom over what was seen", job.Steps, job.Range{From: 0, To: 50}, 10 * gib, 10 * gib, 40 * gib, 1375},
		{"by a step at least", job.Steps, job.Range{From: 0, To: 50}, 8 * gib, 8 * gib, 40 * gib, 1150},
		{"as far as the largest slice holds the last phase", job.Steps, job.Range{From: 0, To: 50}, 8 * gib, 8 * gib, 17 * gib, 1062},
		{"but the slice it was killed on is refused", job.Steps, job.Range{From: 0, To: 50}, 10 * gib, 10 * gib, 17 * gib, 1251},
		{"with headroom where it was killed on the largest", job.Steps, job.Range{From: 50, To: 100}, 17 * gib, 17 * gib, 17 * gib, 1169},
		{"a rigid job as a whole", job.Rigid, job.Range{From: 0, To: 100}, 16 * gib, 16 * gib, 17 * gib, 1062},
		{"nothing is known of the slices", job.Steps, job.Range{From: 0, To: 50}, 10 * gib, 0, 0, 1375},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := alone(nil, &protocol.Record{Spec: &job.Spec{Kind: c.kind, Total: 100, Grid: 1, Safe: table}})
			l := protocol.Learned{MemoryScale: trp.Unscaled}
			raiseMemory(&l, j, &protocol.Claim{Range: c.rng}, &job.Result{Peak: trp.Vector{trp.Memory: c.peak}}, c.here, c.largest)
			if l.MemoryScale != c.want {
				t.Errorf("scale %d, want %d", l.MemoryScale, c.want)
			}
			if c.here > 0 && table.LeastOver(c.rng.From, c.rng.To, l.MemoryScale) <= c.here {
				t.Error("the slice it was killed on would be offered to it again")
			}
		})
	}
}
