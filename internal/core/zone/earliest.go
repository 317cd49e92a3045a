package zone

import (
	"cmp"
	"math"
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// place is where and when a rigid job could run, and how fast: as the slowest of its slices.
type place struct {
	slices     []*slice
	start, end quantity.Instant
	speed      int64
}

// same says whether two places are one.
func (p *place) same(q *place) bool {
	return p.start == q.start && p.end == q.end && slices.Equal(p.slices, q.slices)
}

// room is a slice that a rigid job could run on, its speed there, and when it is free.
type room struct {
	s     *slice
	speed int64
	gaps  []protocol.Gap
}

// free says whether all of [start, end) is.
func (r *room) free(start, end quantity.Instant) bool {
	for i := range r.gaps {
		if g := &r.gaps[i]; g.Start <= start && end <= g.End {
			return true
		}
	}
	return false
}

// earliestOf is the earliest place on the slices of one node, given from the smallest on.
func (z *Zone) earliestOf(now quantity.Instant, spec *job.Spec, rooms []room) (best place, found bool) {
	starts, speeds := z.starts[:0], z.speeds[:0] // fastest first; what is slower is not looked at with a faster one
	for _, r := range rooms {
		for _, g := range r.gaps {
			if g.End > now {
				starts = append(starts, max(now, g.Start))
			}
		}
		speeds = append(speeds, r.speed)
	}
	z.starts, z.speeds = starts, speeds
	slices.Sort(starts)
	slices.SortFunc(speeds, func(a, b int64) int { return cmp.Compare(b, a) })
	if speeds = slices.Compact(speeds); len(spec.Speeds) == 0 {
		speeds = speeds[len(speeds)-1:] // as long on all of them
	}
	for _, t := range slices.Compact(starts) {
		if earliest := (place{start: t, end: endAt(spec, t, speeds[0])}); found && best.rank() < earliest.rank() {
			break
		}
		for _, least := range speeds {
			p, ok := placeAt(spec, rooms, t, least)
			if ok && (!found || p.before(&best)) {
				best, found = p, true
			}
			if ok {
				break
			}
		}
	}
	return best, found
}

// placeAt is the place that begins at t on the smallest slices of at least this speed, as far as there are enough.
func placeAt(spec *job.Spec, rooms []room, t quantity.Instant, least int64) (place, bool) {
	p := place{start: t, end: endAt(spec, t, least), speed: math.MaxInt64}
	n, free := max(1, spec.Slices), 0
	for i := range rooms {
		if r := &rooms[i]; r.speed >= least && r.free(t, p.end) {
			free++
		}
	}
	if free < n {
		return place{}, false
	}
	p.slices = make([]*slice, 0, n)
	for _, r := range rooms {
		if r.speed >= least && r.free(t, p.end) {
			p.slices, p.speed = append(p.slices, r.s), min(p.speed, r.speed)
		}
		if len(p.slices) == n {
			p.end = endAt(spec, t, p.speed)
			return p, true
		}
	}
	return place{}, false
}

// endAt is when a rigid job ends, grace included, that starts at t and runs at this speed.
func endAt(spec *job.Spec, t quantity.Instant, speed int64) quantity.Instant {
	if spec.Walltime == 0 {
		return quantity.Never
	}
	return t.Add(atomizer.RigidLength(spec, speed))
}

// rank is what makes a place better than another: its end, or its start where no end is known.
func (p *place) rank() quantity.Instant {
	if p.end == quantity.Never {
		return p.start
	}
	return p.end
}

// before orders places: the earlier first, then the one on smaller slices, then the one that starts earlier.
func (p *place) before(q *place) bool {
	largest := func(p *place) quantity.Amount { return p.slices[len(p.slices)-1].view.Slice.Capacity[trp.Memory] }
	return cmp.Or(cmp.Compare(p.rank(), q.rank()), cmp.Compare(largest(p), largest(q)), cmp.Compare(p.start, q.start)) < 0
}
