package backfill

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

// Placement is where and when a rigid job could run, and how fast in parts per thousand: as the slowest of its slices. Without slices
// there is none.
type Placement struct {
	Slices     []*Slice
	Start, End quantity.Instant
	Speed      int64
	// Level that its slices share, and on how many nodes they are; 0 where that is one.
	Level job.Level
	nodes int
}

// same says whether two placements are one.
func (p *Placement) same(q *Placement) bool {
	return p.Start == q.Start && p.End == q.End && slices.Equal(p.Slices, q.Slices)
}

// inDoubt says whether any of its slices is.
func (p *Placement) inDoubt(now quantity.Instant) bool {
	return slices.ContainsFunc(p.Slices, func(s *Slice) bool { return s.InDoubt(now) })
}

// room is a slice that a rigid job could run on, its speed there, and when it is free.
type room struct {
	s     *Slice
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

// earliestOf is the earliest place on slices, given from the smallest on of each node.
func (pl *Planner) earliestOf(now quantity.Instant, spec *job.Spec, rooms []room) (best Placement, found bool) {
	starts, speeds := pl.starts[:0], pl.speeds[:0] // fastest first; what is slower is not looked at with a faster one
	for _, r := range rooms {
		for _, g := range r.gaps {
			if g.End > now {
				starts = append(starts, max(now, g.Start))
			}
		}
		speeds = append(speeds, r.speed)
	}
	pl.starts, pl.speeds = starts, speeds
	slices.Sort(starts)
	slices.SortFunc(speeds, func(a, b int64) int { return cmp.Compare(b, a) })
	if speeds = slices.Compact(speeds); len(spec.Speeds) == 0 {
		speeds = speeds[len(speeds)-1:] // as long on all of them
	}
	for _, t := range slices.Compact(starts) {
		if earliest := (Placement{Start: t, End: endAt(spec, t, speeds[0])}); found && best.rank() < earliest.rank() {
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
func placeAt(spec *job.Spec, rooms []room, t quantity.Instant, least int64) (Placement, bool) {
	p := Placement{Start: t, End: endAt(spec, t, least), Speed: math.MaxInt64}
	n, free := max(1, spec.Slices), 0
	for i := range rooms {
		if r := &rooms[i]; r.speed >= least && r.free(t, p.End) {
			free++
		}
	}
	if free < n {
		return Placement{}, false
	}
	p.Slices = make([]*Slice, 0, n)
	if rooms[0].s.Node() != rooms[len(rooms)-1].s.Node() {
		p.take(fewest(rooms, n, least, t, p.End))
		p.End = endAt(spec, t, p.Speed)
		return p, true
	}
	for _, r := range rooms {
		if r.speed >= least && r.free(t, p.End) {
			p.Slices, p.Speed = append(p.Slices, r.s), min(p.Speed, r.speed)
		}
		if len(p.Slices) == n {
			p.End = endAt(spec, t, p.Speed)
			return p, true
		}
	}
	return Placement{}, false
}

// take has a place be on these rooms, of several nodes.
func (p *Placement) take(rooms []*room) {
	for i, r := range rooms {
		if i == 0 || rooms[i-1].s.Node() != r.s.Node() {
			p.nodes++
		}
		p.Slices, p.Speed = append(p.Slices, r.s), min(p.Speed, r.speed)
	}
}

// endAt is when a rigid job ends, grace included, that starts at t and runs at this speed.
func endAt(spec *job.Spec, t quantity.Instant, speed int64) quantity.Instant {
	if spec.Walltime == 0 {
		return quantity.Never
	}
	return t.Add(atomizer.RigidLength(spec, speed))
}

// rank is what makes a place better than another: its end, or its start where no end is known.
func (p *Placement) rank() quantity.Instant {
	if p.End == quantity.Never {
		return p.Start
	}
	return p.End
}

// largest is the memory of its largest slice, in bytes.
func (p *Placement) largest() (most quantity.Amount) {
	for _, s := range p.Slices {
		most = max(most, s.Class().Capacity[trp.Memory])
	}
	return most
}

// before orders places of one level: the earlier first, then the one on fewer nodes, then on smaller slices, then the one that starts earlier.
func (p *Placement) before(q *Placement) bool {
	return cmp.Or(cmp.Compare(p.rank(), q.rank()), cmp.Compare(p.nodes, q.nodes), cmp.Compare(p.largest(), q.largest()), cmp.Compare(p.Start, q.Start)) < 0
}
