package backfill

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/market/window"
)

// Place follows the board's placing of a slice. moved: it belongs to another node than before.
func (pl *Planner) Place(s *Slice, placed window.Placed, moved bool) {
	pl.survey.nodesStale = pl.survey.nodesStale || moved
	switch placed {
	case window.Joined:
		pl.survey.slices = slices.Insert(pl.survey.slices, s.At(), s)
		pl.bookings.holding.Insert(s.At())
		pl.survey.dirtySlices.Insert(s.At())
		pl.survey.join(s)
	case window.Sorted:
		pl.survey.slices = append(pl.survey.slices, s)
		slices.SortFunc(pl.survey.slices, func(a, b *Slice) int { return cmp.Compare(a.At(), b.At()) })
		pl.survey.nodesStale = true
		pl.bookings.holding.Clear()
		pl.survey.dirtySlices.Clear() // the next plan looks at all of them
		for _, s := range pl.survey.slices {
			pl.Seen(s)
		}
		pl.survey.join(s)
	case window.Stayed:
	}
}

// Remove forgets a slice that is there no more, before the floor does: nothing is asked of its node any more. Jobs whose place was there
// find another in the next pass.
func (pl *Planner) Remove(s *Slice) {
	pl.bookings.remove(s)
	pl.survey.remove(s)
	pl.replan = true
}
