package learn

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// TestWhatAJobShows of its template: the peaks of its pieces where they lay, and what outgrew its slice; nothing where it was
// not seen whole.
func TestWhatAJobShows(t *testing.T) {
	piece := func(from, to, committed int64, peak quantity.Amount, o job.Outcome, option string) protocol.Past {
		return protocol.Past{
			Claim: protocol.Claim{Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{From: from, To: to},
				Demand: trp.Vector{9}, Plan: protocol.Plan{Option: option}}}},
			Committed: job.Range{From: from, To: committed}, Outcome: o, Peak: trp.Vector{peak},
		}
	}
	for _, c := range []struct {
		name     string
		template string
		skipped  job.Ranges
		past     []protocol.Past
		want     []quantity.Amount // in quarters; nil: nothing
	}{
		{"two pieces", "t", nil, []protocol.Past{piece(0, 8, 8, 3, job.Done, ""), piece(8, 16, 16, 5, job.Done, "")},
			[]quantity.Amount{3, 3, 5, 5}},
		{"no template", "", nil, []protocol.Past{piece(0, 16, 16, 3, job.Done, "")}, nil},
		{"one was cut short", "t", nil, []protocol.Past{piece(0, 16, 4, 7, job.Yielded, ""), piece(4, 16, 16, 5, job.Done, "")},
			[]quantity.Amount{7, 5, 5, 5}},
		{"one did nothing", "t", nil, []protocol.Past{piece(0, 16, 0, 8, job.ExitFailed, ""), piece(0, 16, 16, 5, job.Done, "")},
			[]quantity.Amount{5, 5, 5, 5}},
		{"one outgrew its slice, and its last sample missed it", "t", nil, []protocol.Past{piece(0, 8, 0, 4, job.MemoryKilled, ""),
			piece(0, 16, 16, 6, job.Done, "")}, []quantity.Amount{10, 10, 6, 6}},
		{"one outgrew its slice", "t", nil, []protocol.Past{piece(0, 8, 4, 12, job.MemoryKilled, ""), piece(4, 16, 16, 6, job.Done, "")},
			[]quantity.Amount{12, 12, 6, 6}},
		{"nobody looked", "t", nil, []protocol.Past{piece(0, 8, 8, 0, job.Done, ""), piece(8, 16, 16, 5, job.Done, "")}, nil},
		{"another way", "t", nil, []protocol.Past{piece(0, 8, 8, 5, job.Done, "half"), piece(8, 16, 16, 5, job.Done, "")}, nil},
		{"another way, but it did nothing", "t", nil, []protocol.Past{piece(0, 8, 0, 5, job.ExitFailed, "half"),
			piece(0, 16, 16, 5, job.Done, "")}, []quantity.Amount{5, 5, 5, 5}},
		{"some is skipped", "t", job.Ranges{{From: 3, To: 4}}, []protocol.Past{piece(0, 16, 16, 5, job.Done, "")}, nil},
	} {
		spec, known := &job.Spec{Template: c.template, Total: 16}, &protocol.Learned{Rates: []time.Duration{9, 2, 4}}
		run, ok := Run(spec, c.past, c.skipped, known)
		var got []quantity.Amount
		if ok {
			got = []quantity.Amount{run.Peaks[0], run.Peaks[4], run.Peaks[8], run.Peaks[12]}
		}
		if !slices.Equal(got, c.want) || ok && run.Unit != 4 {
			t.Errorf("%s: %v, a unit %v; want %v", c.name, got, run.Unit, c.want)
		}
	}
}

// TestAlongIsNeverBelow: over any piece a table with other stretches asks for at least as much.
func TestAlongIsNeverBelow(t *testing.T) {
	from := trp.Table{Bounds: []int64{2, 5, 9}, Least: [][]quantity.Amount{{1, 4, 6}, {3, 6}, {2}}}
	for _, bounds := range [][]int64{{9}, {2, 5, 9}, {1, 3, 8, 9}, {5, 9}} {
		to := along(bounds, &from)
		for a := range int64(9) {
			for b := a + 1; b <= 9; b++ {
				if got, want := to.LeastOver(a, b, trp.Unscaled), from.LeastOver(a, b, trp.Unscaled); got < want {
					t.Errorf("with ends %v [%d,%d) asks for %d, was %d", bounds, a, b, got, want)
				}
			}
		}
	}
	if same := along(from.Bounds, &from); !slices.EqualFunc(same.Least, from.Least, slices.Equal[[]quantity.Amount]) {
		t.Errorf("with its own ends it has changed: %v", same)
	}
}
