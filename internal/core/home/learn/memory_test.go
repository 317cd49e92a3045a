package learn

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestAnOutgrownSliceIsLeftBehind kills pieces of random jobs wherever the profile lets them be sold. A piece that holds a unit at which
// one was killed is never sold on that slice or a smaller one again, not even once the profile was widened for other reasons; and
// while no kill was on the largest slice all of the job can still be sold.
func TestAnOutgrownSliceIsLeftBehind(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := []quantity.Amount{5, 10, 20, 40}
		for i := range sizes {
			sizes[i] <<= 30
		}
		const largest = quantity.Amount(40) << 30
		spec := outgrowing(t)
		l := protocol.Learned{MemoryScale: trp.Unscaled}
		type kill struct {
			at     int64
			here   quantity.Amount
			option string
		}
		var kills []kill
		reached := false
		for range rapid.IntRange(1, 12).Draw(t, "kills") {
			option := rapid.SampledFrom([]string{"", "half", "double"}).Draw(t, "option")
			here := rapid.SampledFrom(sizes).Draw(t, "slice")
			from := rapid.Int64Range(0, spec.Total-1).Draw(t, "from")
			to := Safe(&l, spec).Reach(from, here, rapid.Int64Range(from+1, spec.Total).Draw(t, "to"), scaleWith(&l, spec, option))
			if to <= from {
				continue // it is not sold there
			}
			at := rapid.Int64Range(from, to-1).Draw(t, "at")
			peak := here + quantity.Amount(rapid.Int64Range(-1<<30, 1<<30).Draw(t, "seen"))
			c := &protocol.Claim{Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{From: from, To: to},
				Plan: protocol.Plan{Option: option}}}}
			raiseMemory(&l, spec, c, &job.Result{Progress: at, Peak: trp.Vector{trp.Memory: peak}}, here, largest)
			if rapid.IntRange(0, 3).Draw(t, "unsafe") == 0 {
				widen(&l, spec, rapid.Int64Range(trp.Unscaled, trp.MaxSpread).Draw(t, "spread"), largest)
			}
			kills, reached = append(kills, kill{at, here, option}), reached || here == largest || option != ""
			for _, k := range kills {
				scale := scaleWith(&l, spec, k.option)
				for a := range k.at + 1 {
					for b := k.at + 1; b <= spec.Total; b++ {
						if got := Safe(&l, spec).LeastOver(a, b, scale); got <= k.here {
							t.Fatalf("killed at %d on %d MiB (option %q); now [%d,%d) needs %d MiB", k.at, k.here>>20, k.option, a, b,
								got>>20)
						}
					}
				}
			}
			if !reached && Safe(&l, spec).Peak(l.MemoryScale) > largest {
				t.Fatalf("never killed on the largest slice, %d MiB, and out of its reach: %d MiB", largest>>20,
					Safe(&l, spec).Peak(l.MemoryScale)>>20)
			}
		}
	})
}

// outgrowing draws a job whose profile fits the largest slice with a little to spare.
func outgrowing(t *rapid.T) *job.Spec {
	s := &job.Spec{Kind: rapid.SampledFrom([]job.Kind{job.Items, job.Steps}).Draw(t, "kind"), Grid: 1, Theta: 10_000,
		Profile: trp.Profile{Form: trp.Phases}, Options: []job.Option{{Name: "half", Memory: 500}, {Name: "double", Memory: 2000}}}
	n := rapid.IntRange(1, 4).Draw(t, "phases")
	for range n {
		s.Total += rapid.Int64Range(1, 4).Draw(t, "units")
		s.Profile.Phases = append(s.Profile.Phases,
			trp.Phase{UpTo: s.Total, Mean: quantity.Amount(rapid.Int64Range(1<<30, 39<<30).Draw(t, "mean"))})
	}
	table, err := trp.Compile(s.Profile, s.Total, s.Theta)
	if err != nil {
		t.Fatal(err)
	}
	s.Safe = table
	return s
}

// scaleWith is what a piece under an option is planned with.
func scaleWith(l *protocol.Learned, s *job.Spec, option string) int64 {
	if o := s.Option(option); o != nil {
		return quantity.MulDiv(l.MemoryScale, o.Memory, trp.Unscaled)
	}
	return l.MemoryScale
}
