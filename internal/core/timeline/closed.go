package timeline

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Close takes [r.Start, r.End), and every occurrence of it if it repeats, off the market. It may overlap anything. r must be Sound.
func (t *Timeline) Close(r protocol.Reservation) {
	if !Sound(&r) {
		invariant.Check(false, "timeline: closed time [%d,%d) every %d is empty or runs into itself", r.Start, r.End, r.Every)
	}
	invariant.Check(len(t.closed) < Max, "timeline: more than %d closed entries on one slice", Max)
	i, _ := slices.BinarySearchFunc(t.closed, r, func(a, b protocol.Reservation) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID))
	})
	t.closed = slices.Insert(t.closed, i, r)
	t.version++
}

// Reopen withdraws the closed time of this id. It returns false if there is none.
func (t *Timeline) Reopen(id uint64) bool {
	i := find(t.closed, id)
	if i < 0 {
		return false
	}
	t.closed = slices.Delete(t.closed, i, i+1)
	t.version++
	return true
}

// Past appends the ids of closed time that is over for good: it does not repeat and its end is not after now. It changes
// nothing; the owner records that it is gone and reopens it.
func (t *Timeline) Past(now quantity.Instant, out []uint64) []uint64 {
	for i := range t.closed {
		if t.closed[i].Every == 0 && t.closed[i].End <= now {
			out = append(out, t.closed[i].ID)
		}
	}
	return out
}
