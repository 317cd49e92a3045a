package picture

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Share is how much of a slice's time was filled. The definition is ours:
//
//   - Used is the time in which a subjob's process ran within its lease. A lease that waits for its process to start, or
//     that outlives it, does not count, and neither does time that was used twice.
//   - Available is the time from the first that is known of the slice to the end, without what others had reserved: drain,
//     maintenance, reclaim, serving, geometry, a foreign process, the owner. Time that was used although it was reserved
//     (a reservation that waits behind a lease) is available. A place kept for one of our own rigid jobs is available
//     too: if nothing runs in it, it was not filled.
//
// So Used is never more than Available, and both are never negative.
type Share struct {
	Used, Available time.Duration
}

// Ratio is Used/Available in [0,1]; 0 if nothing was available.
func (s Share) Ratio() float64 {
	if s.Available <= 0 {
		return 0
	}
	return float64(s.Used) / float64(s.Available)
}

// Filled is the share of one slice over [from, to).
func Filled(h status.SliceHistory, from, to quantity.Instant) Share {
	var used, others []stretch
	first := to
	for i := range h.Spans {
		s := &h.Spans[i]
		first = min(first, s.Start)
		switch s.Kind {
		case protocol.ForLease:
			used = append(used, usedPart(s, to))
		case protocol.ForDrain, protocol.ForMaintenance, protocol.ForReclaim, protocol.ForServing, protocol.ForGeometry,
			protocol.ForForeign, protocol.ForOwner:
			others = append(others, stretch{s.Start, s.End})
		case protocol.ForRigid, protocol.ForHold:
			// Our own: available.
		default:
			// A window: available.
		}
	}
	used, others = merge(used, from, to), merge(others, from, to)
	known := length(merge([]stretch{{first, to}}, from, to))
	blocked := length(others) - overlap(used, others)
	return Share{Used: length(used), Available: known - blocked}
}

// Total is the share of all slices together over [h.From, h.To). Every slice weighs by its time alone, whatever its size.
func Total(h status.History) Share {
	var sum Share
	for _, s := range h.Slices {
		f := Filled(s, h.From, h.To)
		sum.Used += f.Used
		sum.Available += f.Available
	}
	return sum
}

// stretch of time, half-open.
type stretch struct{ start, end quantity.Instant }

// usedPart is when the process of a lease ran, until now if it still runs; empty if it never started.
func usedPart(s *status.Span, now quantity.Instant) stretch {
	if s.UsedStart == 0 {
		return stretch{}
	}
	end := s.UsedEnd
	if end == 0 {
		end = now
	}
	return stretch{max(s.Start, s.UsedStart), min(s.End, end)}
}

// merge sorts, cuts to [from, to) and joins what overlaps or touches.
func merge(list []stretch, from, to quantity.Instant) []stretch {
	slices.SortFunc(list, func(a, b stretch) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	var out []stretch
	for _, s := range list {
		s = stretch{max(s.start, from), min(s.end, to)}
		switch n := len(out); {
		case s.end <= s.start:
		case n > 0 && s.start <= out[n-1].end:
			out[n-1].end = max(out[n-1].end, s.end)
		default:
			out = append(out, s)
		}
	}
	return out
}

// length of merged stretches.
func length(list []stretch) time.Duration {
	var sum time.Duration
	for _, s := range list {
		sum += s.end.Sub(s.start)
	}
	return sum
}

// overlap is the time that two merged lists share.
func overlap(a, b []stretch) time.Duration {
	var sum time.Duration
	for len(a) > 0 && len(b) > 0 {
		if start, end := max(a[0].start, b[0].start), min(a[0].end, b[0].end); start < end {
			sum += end.Sub(start)
		}
		if a[0].end < b[0].end {
			a = a[1:]
		} else {
			b = b[1:]
		}
	}
	return sum
}
