package supply

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Decide says what to do for a pool, given the jobs that wait in the order of their worth, and the slices that serve them. It is
// deterministic, keeps nothing, and changes none of its arguments. The order of slots, pilots and gaps means nothing.
//
// Work is laid first onto slots that exist, then onto pilots on their way, and what is left onto pilots to be asked for. As long as a slot
// would be done with what it has sooner than a new pilot could begin, it is preferred to a new one, so that short work earns no machine;
// work that may run on several slices is spread over them as long as each share is longer than the start and hand-over of a pilot.
func Decide(now quantity.Instant, s *Sight, demand []Demand, slots []Slot) Order {
	p := newPlan(now, s, slots)
	for i := range demand {
		p.serve(&demand[i])
	}
	o := Order{Pool: s.Pool.Name, Number: s.Number, Idle: p.idle()}
	wanted := p.wanted()
	blocked := p.blocked()
	if blocked == "" {
		o.Ask = wanted[:min(len(wanted), max(0, s.Pool.Most-len(p.pilots)))]
	}
	o.Cancel = p.cancel(o.Idle)
	o.Why = p.why(&o, demand, len(wanted), blocked)
	o.Next = p.next()
	return o
}

func newPlan(now quantity.Instant, s *Sight, slots []Slot) *plan {
	p := &plan{now: now, s: s, pool: &s.Pool, slots: slots, pilots: slices.Clone(s.Pilots)}
	slices.SortFunc(p.pilots, comparePilots)
	step := max(s.Pool.Step, 1)
	p.shortest, p.longest = step, step
	if l := s.Pool.Lengths; len(l) > 0 {
		p.shortest, p.longest = roundUp(l[0], step), roundUp(l[len(l)-1], step)
	}
	p.start = max(0, startOf(s))
	p.wait = waitOf(now, s)
	p.cost = p.start + max(0, s.Pool.HandOver)
	p.streak, p.limit = streakOf(s), limitOf(s)
	p.free = make(map[job.NodeID]quantity.Instant, len(slots))
	for i := range slots {
		p.free[slots[i].Node] = max(p.free[slots[i].Node], slots[i].Free)
	}
	p.find()
	p.stand()
	p.expect()
	return p
}

// comparePilots orders pilots by name, and copies of one by all else.
func comparePilots(a, b Pilot) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.State, b.State), cmp.Compare(a.Asked, b.Asked),
		cmp.Compare(a.Length, b.Length), cmp.Compare(a.Started, b.Started), cmp.Compare(a.Joined, b.Joined), cmp.Compare(a.Until, b.Until),
		cmp.Compare(a.Expected, b.Expected), cmp.Compare(a.Idle, b.Idle))
}

// startOf is what a pilot takes from its start until its machine has joined: the median of the newest that have done both, else what the
// pool expects.
func startOf(s *Sight) time.Duration {
	all := laps(s, func(l *life) (from, to quantity.Instant) { return l.started, l.joined })
	if len(all) == 0 {
		return s.Pool.Start
	}
	return all[len(all)/2]
}

// waitOf is what the host takes to start a pilot that has a gap: three of four of the newest were started within it. Those that took longer
// than patience waited for room. One that was withdrawn after as long had a gap and missed it, which says that patience is hardly enough: a
// host that starts something each half minute only would else be asked again and again for a little more than the gap will have. Others may
// have taken its room instead, so that counts for missedFor. 0 as long as nothing is known.
func waitOf(now quantity.Instant, s *Sight) time.Duration {
	all := laps(s, func(l *life) (from, to quantity.Instant) {
		switch {
		case l.started == 0 && l.how == Withdrawn && !l.limited && l.ended.Sub(l.asked) >= patience && now.Sub(l.ended) < missedFor:
			return l.asked, l.asked.Add(patience)
		case l.started.Sub(l.asked) > patience:
			return 0, 0
		}
		return l.asked, l.started
	})
	if len(all) == 0 {
		return 0
	}
	return all[len(all)*3/4]
}

// life is what is known of when a pilot did what; how is 0 while it is there.
type life struct {
	asked, started, joined, ended quantity.Instant
	how                           How
	limited                       bool
}

// laps are how long the newest pilots took from one moment of theirs to another, ascending. Those that have not seen both are left out.
func laps(s *Sight, of func(*life) (from, to quantity.Instant)) (took []time.Duration) {
	type lap struct {
		end  quantity.Instant
		took time.Duration
	}
	var all []lap
	note := func(l life) {
		if from, to := of(&l); from != 0 && to >= from {
			all = append(all, lap{to, to.Sub(from)})
		}
	}
	for i := range s.Endings {
		e := &s.Endings[i]
		note(life{e.Asked, e.Started, e.Joined, e.Ended, e.How, e.Limited})
	}
	for i := range s.Pilots {
		x := &s.Pilots[i]
		note(life{asked: x.Asked, started: x.Started, joined: x.Joined})
	}
	slices.SortFunc(all, func(a, b lap) int { return cmp.Or(cmp.Compare(b.end, a.end), cmp.Compare(a.took, b.took)) })
	for _, l := range all[:min(len(all), learnedFrom)] {
		took = append(took, l.took)
	}
	slices.Sort(took)
	return took
}

// next is when to look again at the latest: later than now.
func (p *plan) next() quantity.Instant {
	next := p.now.Add(lookAgain)
	if p.unfit != nil && !p.s.Blind {
		next = p.now.Add(lookSoon)
	}
	at := func(t quantity.Instant) {
		if t > p.now {
			next = min(next, t)
		}
	}
	for i := range p.pilots {
		switch x := &p.pilots[i]; {
		case x.State == Joined && x.Idle != 0:
			at(x.Idle.Add(p.pool.Idle))
		case x.waits() && x.Asked != 0:
			at(x.Asked.Add(young))
		}
	}
	for _, t := range []streak{p.streak, p.limit} {
		if t.n > 0 {
			at(t.until)
		}
	}
	for _, g := range p.s.Gaps {
		if g.Count > 0 {
			at(g.Start)
		}
	}
	return next
}
