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

// take fills in a placement on these rooms, of several nodes.
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

// rank orders placements: by end, or by start where no end is known.
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

// before orders places of one level: the earlier first, then the one on fewer nodes, then on smaller slices, then the one that starts
// earlier.
func (p *Placement) before(q *Placement) bool {
	return cmp.Or(cmp.Compare(p.rank(), q.rank()), cmp.Compare(p.nodes, q.nodes), cmp.Compare(p.largest(), q.largest()),
		cmp.Compare(p.Start, q.Start)) < 0
}

// fewest are n of the rooms that are free for a time, on as few nodes as possible: the node with just enough for the rest, else the one
// with most. The rooms of a node are in a row, from the smallest on.
func fewest(rooms []room, n int, least int64, start, end quantity.Instant) (taken []*room) {
	type part struct{ rooms []*room }
	var parts []part
	for i := range rooms {
		r := &rooms[i]
		if r.speed < least || !r.free(start, end) {
			continue
		}
		if last := len(parts) - 1; last < 0 || parts[last].rooms[0].s.Node() != r.s.Node() {
			parts = append(parts, part{})
		}
		last := &parts[len(parts)-1]
		last.rooms = append(last.rooms, r)
	}
	for len(taken) < n {
		want := n - len(taken)
		best := 0
		for i := range parts {
			if fit(len(parts[i].rooms), want) < fit(len(parts[best].rooms), want) {
				best = i
			}
		}
		taken = append(taken, parts[best].rooms[:min(want, len(parts[best].rooms))]...)
		parts = slices.Delete(parts, best, best+1)
	}
	return taken
}

// fit ranks a node by its free slices: the fewest that suffice for want first, else the most.
func fit(free, want int) int {
	if free >= want {
		return free - want
	}
	return want - free + 1<<30
}
