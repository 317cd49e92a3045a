package timeline

import (
	"time"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// MinEvery is the least time between two occurrences of repeating time. It bounds how many gaps one look at a horizon can
// find.
const MinEvery = time.Second

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
