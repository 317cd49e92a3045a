package timeline

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// MinEvery is the least time between two occurrences of repeating time. It bounds how many gaps one look at a horizon can
// find.
const MinEvery = time.Second

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

// Sound says whether r can be closed time: it is not empty, and if it repeats by elapsed time it starts again at least MinEvery
// later, and not before it is over; if by a calendar, as that is defined.
func Sound(r *protocol.Reservation) bool {
	switch {
	case r.Start >= r.End || r.Calendar.None() && r.Calendar != (civil.Calendar{}):
		return false
	case !r.Calendar.None():
		start, end := r.Calendar.First()
		return r.Calendar.Check() == nil && r.Every == time.Duration(r.Calendar.Step)*24*time.Hour && r.Start == start && r.End == end
	}
	return r.Every == 0 || r.Every >= MinEvery && r.End != quantity.Never && r.End.Sub(r.Start) <= r.Every
}

// Overlap returns the first occurrence of r that shares time with [from, to), and whether there is one.
func Overlap(r *protocol.Reservation, from, to quantity.Instant) (protocol.Reservation, bool) {
	start, end := after(r, from)
	if end <= from || start >= to || from >= to {
		return protocol.Reservation{}, false
	}
	o := *r
	o.Start, o.End = start, end
	return o, true
}

// Next returns when r next starts after at, Never if it doesn't.
func Next(r *protocol.Reservation, at quantity.Instant) quantity.Instant {
	start, end := after(r, at)
	if start <= at && r.Every != 0 {
		start, _ = after(r, end)
	}
	if start <= at {
		return quantity.Never
	}
	return start
}

// cover returns when the occurrence of r ends that holds the instant at, and whether there is one.
func cover(r *protocol.Reservation, at quantity.Instant) (quantity.Instant, bool) {
	start, end := after(r, at)
	return end, start <= at && at < end
}

// after returns the first occurrence of r that ends after at, the last one if there is none.
func after(r *protocol.Reservation, at quantity.Instant) (start, end quantity.Instant) {
	switch {
	case r.Every == 0 || at < r.End:
		return r.Start, r.End
	case !r.Calendar.None():
		return r.Calendar.After(at)
	}
	over := at.Sub(r.End) / r.Every * r.Every // then once more: a sum of the two could overflow, Add does not
	return r.Start.Add(over).Add(r.Every), r.End.Add(over).Add(r.Every)
}
