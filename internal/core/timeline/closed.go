package timeline

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// MinEvery is the least time between two occurrences of repeating time. It bounds how many gaps one look at a horizon can
// find.
const MinEvery = time.Second

// Close takes [r.Start, r.End), and every occurrence of it if it repeats, off the market. It may overlap anything. r must
// not be empty; repeating time must have an end and start again at least MinEvery later, and not before it is over.
func (t *Timeline) Close(r protocol.Reservation) {
	if r.Start >= r.End || (r.Every != 0 && (r.Every < MinEvery || r.End.Sub(r.Start) > r.Every)) {
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

// Overlap returns the first occurrence of r that shares time with [from, to), and whether there is one.
func Overlap(r *protocol.Reservation, from, to quantity.Instant) (protocol.Reservation, bool) {
	o := current(r, from)
	if o.End <= from {
		if r.Every == 0 {
			return protocol.Reservation{}, false
		}
		o = shift(o, r.Every)
	}
	return o, o.Start < to && from < to
}

// Next returns when r next starts after at, Never if it doesn't.
func Next(r *protocol.Reservation, at quantity.Instant) quantity.Instant {
	o := current(r, at)
	switch {
	case o.Start > at:
		return o.Start
	case r.Every == 0:
		return quantity.Never
	}
	return o.Start.Add(r.Every)
}

// cover returns the occurrence of r that holds the instant at, and whether there is one.
func cover(r *protocol.Reservation, at quantity.Instant) (protocol.Reservation, bool) {
	o := current(r, at)
	return o, o.Start <= at && at < o.End
}

// current returns the last occurrence of r that starts at or before at, or the first one if none has started yet.
func current(r *protocol.Reservation, at quantity.Instant) protocol.Reservation {
	if r.Every == 0 || at <= r.Start {
		return *r
	}
	return shift(*r, at.Sub(r.Start)/r.Every*r.Every)
}

func shift(r protocol.Reservation, d time.Duration) protocol.Reservation {
	r.Start, r.End = r.Start.Add(d), r.End.Add(d)
	return r
}
