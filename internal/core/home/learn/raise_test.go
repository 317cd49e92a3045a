package learn

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
		{"also where the slice it was killed on must be refused by the stretch alone", job.Steps, job.Range{From: 0, To: 50}, 10 * gib,
			10 * gib, 17 * gib, 1062},
		{"with headroom where it was killed on the largest", job.Steps, job.Range{From: 50, To: 100}, 17 * gib, 17 * gib, 17 * gib, 1169},
		{"a rigid job as a whole", job.Rigid, job.Range{From: 0, To: 100}, 16 * gib, 16 * gib, 17 * gib, 1062},
		{"nothing is known of the slices", job.Steps, job.Range{From: 0, To: 50}, 10 * gib, 0, 0, 1375},
	} {
		t.Run(c.name, func(t *testing.T) {
			spec := &job.Spec{Kind: c.kind, Total: 100, Grid: 1, Safe: table}
			l := protocol.Learned{MemoryScale: trp.Unscaled}
			raiseMemory(&l, spec, &protocol.Claim{Sale: protocol.Sale{Placement: protocol.Placement{Range: c.rng}}},
				&job.Result{Progress: c.rng.From, Peak: trp.Vector{trp.Memory: c.peak}},
				c.here, c.largest)
			if l.MemoryScale != c.want {
				t.Errorf("scale %d, want %d", l.MemoryScale, c.want)
			}
			if c.here > 0 && Safe(&l, spec).LeastOver(c.rng.From, c.rng.From+1, l.MemoryScale) <= c.here {
				t.Error("the slice it was killed on would be offered to it again")
			}
			if c.here < c.largest && Safe(&l, spec).Peak(l.MemoryScale) > c.largest {
				t.Error("a larger slice is there, and the job is out of its reach")
			}
		})
	}
}

// TestKillsSideBySideTeachAsOneDoes: pieces that were sold before the first of them was killed were sold by what was known then.
func TestKillsSideBySideTeachAsOneDoes(t *testing.T) {
	const gib = quantity.Amount(1) << 30
	table := trp.Table{Bounds: []int64{100}, Least: [][]quantity.Amount{{8 * gib}}}
	spec := &job.Spec{Kind: job.Items, Total: 100, Grid: 1, Safe: table}
	l := protocol.Learned{MemoryScale: trp.Unscaled}
	kill := func(from int64, peak, here quantity.Amount) {
		raiseMemory(&l, spec,
			&protocol.Claim{Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{From: from, To: from + 10}}}},
			&job.Result{Progress: from, Peak: trp.Vector{trp.Memory: peak}}, here, 80*gib)
	}
	for i := range int64(8) {
		kill(10*i, 10*gib, 10*gib)
	}
	if got := Safe(&l, spec).Peak(l.MemoryScale); got != 11*gib {
		t.Errorf("after eight kills at once on 10 GiB it asks for %d MiB, want the 11 GiB of one", got>>20)
	}
	kill(0, 16*gib, 10*gib) // seen to use far more, though there was no more
	if got := Safe(&l, spec).Peak(l.MemoryScale); got < 17*gib || got > 18*gib {
		t.Errorf("one was seen to use 16 GiB, and it asks for %d MiB", got>>20)
	}
	kill(0, 20*gib, 20*gib)
	if got := Safe(&l, spec).Peak(l.MemoryScale); got < 21*gib || got > 23*gib {
		t.Errorf("killed on 20 GiB it asks for %d MiB", got>>20)
	}
}
