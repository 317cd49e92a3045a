package supply

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// stand lists the slots that exist. Those of a pilot that leaves are none: it was told to end. One that has joined and shows none is about
// to: it has just come, or whoever tells of its slots has just come up again and has not heard of them.
func (p *plan) stand() {
	for i := range p.slots {
		s := &p.slots[i]
		at, found := p.pilotAt(s.Node)
		if !s.Usable || found && p.pilots[at].State == Leaving {
			continue
		}
		if !found {
			at = -1
		}
		p.places = append(p.places, &place{kind: standing, pilot: at, name: s.Node, class: s.Class, from: p.now, free: max(p.now, s.Free),
			until: s.Until})
	}
	for i := range p.pilots {
		x := &p.pilots[i]
		shown := slices.ContainsFunc(p.slots, func(s Slot) bool { return string(s.Node) == x.Name })
		if x.State == Joined && !shown && (x.Idle == 0 || p.now.Sub(max(x.Joined, x.Idle)) < p.start+patience) {
			p.slices(coming, i, p.now, p.end(x))
		}
	}
}

// pilotAt is the number of a machine's pilot.
func (p *plan) pilotAt(node job.NodeID) (int, bool) {
	return slices.BinarySearchFunc(p.pilots, string(node), func(x Pilot, name string) int { return cmp.Compare(x.Name, name) })
}

// end is when a pilot that runs is not sold any more.
func (p *plan) end(x *Pilot) quantity.Instant {
	until := x.Until
	if until == 0 {
		until = cmp.Or(x.Started, p.now).Add(x.Length)
	}
	return until - quantity.Instant(max(0, p.pool.HandOver))
}

// expect lists the slices of pilots on their way. Where the host does not show gaps those that wait are left out: several lengths of them
// stand for one that is needed (match).
func (p *plan) expect() {
	for i := range p.pilots {
		switch x := &p.pilots[i]; {
		case !x.waits() && x.State < Joined:
			from := cmp.Or(x.Started, p.now).Add(p.start)
			if p.now.Sub(from) <= 2*p.start+time.Minute { // else it will hardly join any more
				p.slices(coming, i, max(p.now, from), p.end(x))
			}
		case x.waits() && !p.s.Blind:
			k := coming
			if !p.fresh(x, patience) && !p.startable(x) {
				k = missed
			}
			begins := max(p.now, x.Expected)
			p.slices(k, i, begins.Add(p.start), begins.Add(x.Length-max(0, p.pool.HandOver)))
		}
	}
}

// slices lists the slices of one pilot.
func (p *plan) slices(k kind, pilot int, from, until quantity.Instant) (made []*place) {
	for i := range max(1, len(p.pool.Slices)) {
		x := &place{kind: k, pilot: pilot, class: -1 - i, from: from, free: from, until: until}
		if pilot >= 0 {
			x.name = job.NodeID(p.pilots[pilot].Name)
		}
		made = append(made, x)
	}
	p.places = append(p.places, made...)
	return made
}

// mostShares bounds how much is laid, and so what a decision costs: as much as hundreds of slices have work for.
const mostShares = 1 << 12

// serve lays a job's work.
func (p *plan) serve(d *Demand) {
	need, left, width := d.piece(), d.Left, max(1, d.Width)
	if d.Whole {
		width = 1
	}
	for n := min(width, p.reach(d, need)); n > 0 && left > 0 && p.laid < mostShares; n-- {
		wall := left
		if !d.Whole {
			wall = max(need, p.share(left, n)+d.Costs)
		}
		p.laid++
		x := p.pick(d, need, wall)
		if x == nil {
			return
		}
		wall = min(wall, x.until.Sub(x.free))
		x.free, x.used, x.by = x.free.Add(wall), true, d
		if d.Whole {
			return
		}
		left -= max(1, wall-d.Costs)
	}
}

// reach is how many more slices a job could have at once: of places, and of new pilots. At least 1.
func (p *plan) reach(d *Demand, need time.Duration) (n int) {
	pilots := 0
	for _, g := range p.gaps {
		if g.count > 0 && g.length >= p.shortest && g.length-p.cost >= need {
			pilots += g.count
		}
	}
	for i := range max(1, len(p.pool.Slices)) {
		if !d.barred(-1 - i) {
			n += max(0, min(pilots, p.room()))
		}
	}
	for _, x := range p.places {
		if x.holds(d, need) {
			n++
		}
	}
	return max(1, n)
}

// share is what one of up to n slices has to do, if the work is spread as long as each share is longer than a new pilot costs.
func (p *plan) share(left time.Duration, n int) time.Duration {
	if p.cost > 0 {
		n = int(min(int64(n), max(1, int64((left-1)/p.cost))))
	}
	return (left + time.Duration(n) - 1) / time.Duration(n)
}

// pick finds the place for a job's next share: one that is done soon, else one of a new pilot, else the one that is done first. nil: there
// is none, and the reason is noted.
func (p *plan) pick(d *Demand, need, wall time.Duration) *place {
	var best, any *place
	for _, x := range p.places {
		if !x.holds(d, need) {
			continue
		}
		if any == nil || sooner(x, any) < 0 {
			any = x
		}
		if x.kind != missed && (x.load() == 0 || x.load() < p.cost) && (best == nil || x.kind < best.kind ||
			x.kind == best.kind && sooner(x, best) < 0) {
			best = x
		}
	}
	if best == nil {
		best = p.open(d, need, wall)
	}
	if best == nil {
		best, p.full = any, p.full || any != nil
	}
	p.soon = p.soon || best != nil && best.kind != added
	return best
}

// sooner orders places by when they are done with what they have; then by when they end, which leaves the longest for long work; then other
// machines' first, so that pilots run out of work.
func sooner(a, b *place) int {
	mine := func(x *place) int { return min(1, x.pilot+1) }
	return cmp.Or(cmp.Compare(a.free, b.free), cmp.Compare(a.until, b.until), cmp.Compare(mine(a), mine(b)), cmp.Compare(a.kind, b.kind),
		cmp.Compare(a.name, b.name), cmp.Compare(a.class, b.class))
}

// open makes a new pilot for a job, in the smallest gap that holds its share, else in the longest that holds a piece, and is its first
// slice that may serve it.
func (p *plan) open(d *Demand, need, wall time.Duration) *place {
	if p.room() <= 0 {
		p.most = true
		return nil
	}
	at := -1
	for i, g := range p.gaps { // the shortest first
		if g.count > 0 && g.length >= p.shortest && g.length-p.cost >= need && p.serves(d) {
			if at = i; g.length-p.cost >= wall {
				break
			}
		}
	}
	if at < 0 {
		if p.unfit == nil || need < p.unfit.piece() {
			p.unfit = d
		}
		return nil
	}
	p.gaps[at].count--
	a := &ask{job: d, most: p.gaps[at].length, least: need}
	from := p.now.Add(p.start)
	a.places = p.slices(added, -1, from, from.Add(a.most-p.cost))
	p.asks = append(p.asks, a)
	return a.places[slices.IndexFunc(a.places, func(x *place) bool { return x.holds(d, need) })]
}

// serves reports whether some slice of the pool may serve a job.
func (p *plan) serves(d *Demand) bool {
	for i := range max(1, len(p.pool.Slices)) {
		if !d.barred(-1 - i) {
			return true
		}
	}
	return false
}
