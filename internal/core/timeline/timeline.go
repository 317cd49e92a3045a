// Package timeline is what is reserved on one slice, and when. The gaps between are what is sold.
//
// A timeline has two layers. Sold time (leases, and the short holds before them) never overlaps: an insertion is checked
// against its two neighbours. Closed time (drains, maintenance, serving hours, a rigid job's place, a process that is not
// ours) may overlap anything, sold time included: it only says that nothing more is sold there, so any one of it can be
// withdrawn without bringing back another by mistake. Only closed time repeats; its occurrences are computed when asked
// for and never stored.
//
// The package knows no node, no message and no clock. Nothing here allocates once the slices have grown.
package timeline

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Max bounds each layer. A timeline is designed for about 30 entries: a sorted slice wins over a tree up to about 1,000.
// Callers refuse what would pass it; passing it is a broken invariant.
const Max = 4096

// Timeline is the reserved time of one slice. The zero value is empty and ready. It is not safe for concurrent use.
type Timeline struct {
	// sold is sorted by start and disjoint; closed is sorted by start, then id.
	sold, closed []protocol.Reservation
	version      uint64
}

// Version grows with every change of either layer.
func (t *Timeline) Version() uint64 { return t.version }

// Sold returns the sold time in order of start. The caller may read it until the next change and must not write to it.
func (t *Timeline) Sold() []protocol.Reservation { return t.sold }

// Closed returns the closed time in order of start, then id, each repeating entry once. The caller may read it until the
// next change and must not write to it.
func (t *Timeline) Closed() []protocol.Reservation { return t.closed }

// Full says whether a layer has no room for one more entry.
func (t *Timeline) Full() bool { return len(t.sold) >= Max || len(t.closed) >= Max }

// Insert sells [r.Start, r.End). If some of it is sold already nothing changes, and the obstacle is returned. Closed time is ignored: Free
// checks both. r must not be empty and must not repeat.
func (t *Timeline) Insert(r protocol.Reservation) (inTheWay protocol.Reservation, ok bool) {
	if r.Start >= r.End || r.Every != 0 { // asked first, because the arguments of a check are allocated
		invariant.Check(false, "timeline: sold time [%d,%d) every %d is empty or repeats", r.Start, r.End, r.Every)
	}
	invariant.Check(len(t.sold) < Max, "timeline: more than %d entries on one slice", Max)
	i := t.position(r.Start)
	if i > 0 && t.sold[i-1].End > r.Start {
		return t.sold[i-1], false
	}
	if i < len(t.sold) && t.sold[i].Start < r.End {
		return t.sold[i], false
	}
	t.sold = slices.Insert(t.sold, i, r)
	t.version++
	return protocol.Reservation{}, true
}

// position returns the index of the first sold entry that starts at or after at.
func (t *Timeline) position(at quantity.Instant) int {
	i, _ := slices.BinarySearchFunc(t.sold, at, func(r protocol.Reservation, at quantity.Instant) int {
		if r.Start < at {
			return -1
		}
		return 1
	})
	return i
}

// find returns the index of id in one layer, -1 if it is not there.
func find(layer []protocol.Reservation, id uint64) int {
	for i := range layer {
		if layer[i].ID == id {
			return i
		}
	}
	return -1
}

// Remove frees the sold time of this id. It returns false if there is none.
func (t *Timeline) Remove(id uint64) bool {
	i := find(t.sold, id)
	if i < 0 {
		return false
	}
	t.sold = slices.Delete(t.sold, i, i+1)
	t.version++
	return true
}

// Truncate moves the end of sold time to an earlier instant after its start. It returns false if there is no such id, or
// if the end would not be earlier, or nothing would be left.
func (t *Timeline) Truncate(id uint64, end quantity.Instant) bool {
	i := find(t.sold, id)
	if i < 0 || end >= t.sold[i].End || end <= t.sold[i].Start {
		return false
	}
	t.sold[i].End = end
	t.version++
	return true
}

// Extend moves the end of sold time to a later instant, if the time up to there is not sold to others. What is in the way
// is returned otherwise: the zero Reservation if there is no such id or end is not later. Closed time is not looked at.
func (t *Timeline) Extend(id uint64, end quantity.Instant) (inTheWay protocol.Reservation, ok bool) {
	i := find(t.sold, id)
	if i < 0 || end <= t.sold[i].End {
		return protocol.Reservation{}, false
	}
	if i+1 < len(t.sold) && t.sold[i+1].Start < end {
		return t.sold[i+1], false
	}
	t.sold[i].End = end
	t.version++
	return protocol.Reservation{}, true
}

// Free says whether all of [from, to) could be sold now, and what is in the way otherwise (an occurrence, for time that
// repeats). Sold time past its end that nobody has removed is still in use and blocks everything. A rigid job's place is
// no obstacle to that job itself: name it in own, or leave own empty.
func (t *Timeline) Free(now, from, to quantity.Instant, own job.ID) (inTheWay protocol.Reservation, ok bool) {
	if len(t.sold) > 0 && t.sold[0].End <= now {
		return t.sold[0], false
	}
	i := t.position(from)
	if i > 0 && t.sold[i-1].End > from {
		return t.sold[i-1], false
	}
	if i < len(t.sold) && t.sold[i].Start < to {
		return t.sold[i], false
	}
	for i := range t.closed {
		r := &t.closed[i]
		if r.Kind == protocol.ForRigid && own != "" && r.Job == own {
			continue
		}
		if o, hit := Overlap(r, from, to); hit {
			return o, false
		}
	}
	return protocol.Reservation{}, true
}

// Gaps appends what could be sold: every idle stretch of at least minimum that starts before now+horizon, in order. The gap after the last
// reservation ends Never; Until is the kind of the gap's end. More: further gaps start at or beyond the horizon, so look again when time
// has passed. While sold time past its end has not been removed there are no gaps: what was sold there may still be running.
func (t *Timeline) Gaps(now quantity.Instant, horizon, minimum time.Duration, out []protocol.Gap) (gaps []protocol.Gap, more bool) {
	if len(t.sold) > 0 && t.sold[0].End <= now {
		return out, false
	}
	limit := now.Add(horizon)
	at, i := now, 0
	for {
		// Step over everything that covers at; an end may lie inside another reservation.
		for moved := true; moved && at < limit; {
			moved = false
			for i < len(t.sold) && t.sold[i].Start <= at {
				if t.sold[i].End > at {
					at, moved = t.sold[i].End, true
				}
				i++
			}
			for j := range t.closed {
				if end, hit := cover(&t.closed[j], at); hit {
					at, moved = end, true
				}
			}
		}
		if at >= limit {
			return out, at < quantity.Never
		}
		end, until := quantity.Never, protocol.ReservationKind(0)
		if i < len(t.sold) {
			end, until = t.sold[i].Start, t.sold[i].Kind
		}
		for j := range t.closed {
			if s := Next(&t.closed[j], at); s < end {
				end, until = s, t.closed[j].Kind
			}
		}
		if end.Sub(at) >= minimum {
			out = append(out, protocol.Gap{Start: at, End: end, Until: until})
		}
		if end == quantity.Never {
			return out, false
		}
		at = end
	}
}
