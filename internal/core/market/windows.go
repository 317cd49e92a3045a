package market

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// window is one offered gap.
type window struct {
	id         uint64
	start, end quantity.Instant
	until      protocol.ReservationKind
	// offered: every waiting job has been asked, and since then every job that changed.
	offered bool
	// won: somebody was asked for it, and what is left is not announced yet.
	won bool
	// heard is the generation of the floor in which all who had signalled were asked (mechanism sja, with agents): those that had
	// changed by then have been, too.
	heard uint64
	// round that it is in while agents are waited for, 0 if it is in none.
	round uint64
	// planned is when the first part of its plan that is not sold comes up for sale, 0 if there is none.
	planned quantity.Instant
}

// announce derives the slice's windows from its free time and sets its alarms. A window that only lost time at its front
// because the clock moved on keeps its id and its answers; one that was cut by a grant or grew is announced anew.
func (f *Floor) announce(s *Slice, now quantity.Instant) {
	old := s.windows
	next := f.spare[:0]
	for _, g := range f.Unsold(s, now) {
		g.Start = max(g.Start, now)
		if g.End.Sub(g.Start) < f.cfg.MinWindow {
			continue
		}
		w := window{start: g.Start, end: g.End, until: g.Until}
		i := slices.IndexFunc(old, func(o window) bool {
			return o.end == g.End && o.until == g.Until && (o.start == g.Start || o.start <= now && g.Start <= now)
		})
		if i >= 0 {
			w = old[i]
			w.start = g.Start
		} else {
			f.nextWindow++
			w.id = f.nextWindow
		}
		next = append(next, w)
	}
	s.windows, f.spare = next, old
	f.arm(s, now)
}

// arm sets the alarms of a slice by its windows.
func (f *Floor) arm(s *Slice, now quantity.Instant) {
	opens, closes := quantity.Never, quantity.Never
	for i := range s.windows {
		w := &s.windows[i]
		if w.start > now {
			opens = min(opens, w.start)
			continue
		}
		if w.end != quantity.Never {
			closes = min(closes, w.end.Add(1-f.cfg.MinWindow))
		}
		if w.planned > now {
			opens = min(opens, w.planned)
		}
	}
	f.opens.Set(&s.slots.opens, s, opens)
	f.closes.Set(&s.slots.closes, s, closes)
}

// standing says whether a window of the slice has begun.
func (s *Slice) standing(now quantity.Instant) bool {
	return slices.ContainsFunc(s.windows, func(w window) bool { return w.start <= now })
}

// length is what the window holds from now on, open if its end is not known.
func (w *window) length(now quantity.Instant) time.Duration {
	if w.end == quantity.Never {
		return open
	}
	return min(open-1, w.end.Sub(max(w.start, now)))
}

// sold says whether some of the window was sold in this step, so that it is not what it was.
func (w *window) sold(s *Slice) bool { return s.dirty && w.won && !w.offered }

// inRound says whether agents are waited for before a window of the slice is sold.
func (s *Slice) inRound() bool {
	return slices.ContainsFunc(s.windows, func(w window) bool { return w.round != 0 })
}
