package timeline

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Carve takes [start, end) out of ordered gaps.
func Carve(gaps []protocol.Gap, start, end quantity.Instant, kind protocol.ReservationKind) []protocol.Gap {
	for i := 0; i < len(gaps); i++ {
		g := gaps[i]
		switch {
		case g.End <= start || end <= g.Start:
		case start <= g.Start && g.End <= end:
			gaps = slices.Delete(gaps, i, i+1)
			i--
		case start <= g.Start:
			gaps[i].Start = end
		case g.End <= end:
			gaps[i].End, gaps[i].Until = start, kind
		default:
			gaps[i].End, gaps[i].Until = start, kind
			g.Start = end
			gaps = slices.Insert(gaps, i+1, g)
			i++
		}
	}
	return gaps
}

// Join adds a stretch to ordered gaps and merges what touches.
func Join(gaps []protocol.Gap, g protocol.Gap) []protocol.Gap {
	i, _ := slices.BinarySearchFunc(gaps, g.Start, func(a protocol.Gap, t quantity.Instant) int { return cmp.Compare(a.Start, t) })
	gaps = slices.Insert(gaps, i, g)
	for i = max(0, i-1); i+1 < len(gaps); {
		if gaps[i].End < gaps[i+1].Start {
			i++
			continue
		}
		if gaps[i+1].End >= gaps[i].End {
			gaps[i].End, gaps[i].Until = gaps[i+1].End, gaps[i+1].Until
		}
		gaps = slices.Delete(gaps, i+1, i+2)
	}
	return gaps
}

// CarveAll takes all that a reservation covers out of ordered gaps; of one that repeats into a gap without an end, all from
// its first time on.
func CarveAll(gaps []protocol.Gap, r *protocol.Reservation) []protocol.Gap {
	if len(gaps) == 0 {
		return gaps
	}
	from, to := gaps[0].Start, gaps[len(gaps)-1].End
	for o, hit := Overlap(r, from, to); hit; o, hit = Overlap(r, o.End, to) {
		if r.Every != 0 && to == quantity.Never {
			return Carve(gaps, o.Start, quantity.Never, r.Kind)
		}
		gaps = Carve(gaps, o.Start, o.End, r.Kind)
	}
	return gaps
}
