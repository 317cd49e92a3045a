package supply

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// length is how long a new pilot is to be: as its work needs with its costs, in whole steps.
func (p *plan) length(a *ask) time.Duration {
	return min(a.most, max(p.shortest, roundUp(a.work()+p.cost, max(p.pool.Step, 1))))
}

// work is the longest that any of its slices has work for.
func (a *ask) work() (most time.Duration) {
	for _, x := range a.places {
		most = max(most, x.load())
	}
	return most
}

// wanted are the lengths of the pilots to be asked for. Where the host shows no gaps it also settles which of those that wait are needed.
func (p *plan) wanted() (list []time.Duration) {
	if !p.s.Blind {
		for _, a := range p.asks {
			list = append(list, p.length(a))
		}
		return list
	}
	return p.match(p.alternatives())
}

// alternatives are the lengths that are to be in the queue of a host that shows no gaps: for each needed pilot the shortest that holds its
// work, and each shorter one that holds a least piece, since nobody knows which of them starts first.
func (p *plan) alternatives() (list []time.Duration) {
	room := p.pool.Most
	for i := range p.pilots {
		if !p.pilots[i].waits() {
			room--
		}
	}
	step := max(p.pool.Step, 1)
	for _, a := range p.asks {
		at := len(p.pool.Lengths) - 1
		for at > 0 && roundUp(p.pool.Lengths[at-1], step)-p.cost >= a.work() {
			at--
		}
		for ; at >= 0 && len(list) < room; at-- {
			l := roundUp(p.pool.Lengths[at], step)
			if l-p.cost < a.least {
				break
			}
			list = append(list, l)
		}
	}
	return list
}

// match keeps pilots that wait where they have a length that is wanted, or a longer one, and returns the lengths that none has.
func (p *plan) match(wants []time.Duration) (missing []time.Duration) {
	var free []int
	for i := range p.pilots {
		if p.pilots[i].waits() {
			free = append(free, i)
		}
	}
	slices.SortStableFunc(free, func(a, b int) int { return cmp.Compare(p.pilots[a].Length, p.pilots[b].Length) })
	take := func(fits func(have time.Duration) bool) bool {
		at := slices.IndexFunc(free, func(i int) bool { return fits(p.pilots[i].Length) })
		if at >= 0 {
			p.places = append(p.places, &place{kind: coming, pilot: free[at], used: true})
			free = slices.Delete(free, at, at+1)
			p.soon = true
		}
		return at >= 0
	}
	var rest []time.Duration
	for _, w := range wants {
		if !take(func(have time.Duration) bool { return have == w }) {
			rest = append(rest, w)
		}
	}
	for _, w := range rest {
		if !take(func(have time.Duration) bool { return have > w }) {
			missing = append(missing, w)
		}
	}
	return missing
}

// idle are the pilots that have joined and have nothing on any of their slices now, by name.
func (p *plan) idle() (names []string) {
	for i := range p.pilots {
		if x := &p.pilots[i]; x.State == Joined && !p.busy(x) {
			names = append(names, x.Name)
		}
	}
	return slices.Compact(names)
}

// busy reports whether a pilot has something on any of its slices now.
func (p *plan) busy(x *Pilot) bool { return p.free[job.NodeID(x.Name)] > p.now }

// empty reports whether a pilot is known to have nothing on its slices.
func (p *plan) empty(x *Pilot) bool {
	_, shown := p.free[job.NodeID(x.Name)]
	return shown && !p.busy(x)
}

// cancel are the pilots that are given back, by name.
func (p *plan) cancel(idle []string) (list []Cancel) {
	used := make([]bool, len(p.pilots))
	for _, x := range p.places {
		if x.used && x.pilot >= 0 {
			used[x.pilot] = true
		}
	}
	for i := range p.pilots {
		x, why := &p.pilots[i], ""
		switch {
		case x.waits() && p.pool.Paused != "":
			why = "the pool is paused"
		case used[i]:
		case x.waits() && !p.fresh(x, young):
			if why = "nothing is left for it to do"; !p.s.Blind && !p.fresh(x, patience) && !p.startable(x) && len(p.asks) > 0 {
				why = "the gap that it was asked for is over"
			}
		case x.State == Joined && x.Idle != 0 && p.now.Sub(x.Idle) >= p.pool.Idle && slices.Contains(idle, x.Name):
			why = "it has had nothing to do for " + brief(p.now.Sub(x.Idle))
		case x.Recalled && x.Joined == 0: // else its host waits for the end of the grace, as below
			why = "others have its room, and its machine has not joined"
		case x.Recalled && p.empty(x):
			why = "it has handed over what it had"
		}
		if why != "" {
			list = append(list, Cancel{x.Name, why})
		}
	}
	return slices.CompactFunc(list, func(a, b Cancel) bool { return a.Name == b.Name })
}
