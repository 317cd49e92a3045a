package reclaim

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Holds are the times of a machine's slices that are kept for wishes, in order of slice: what they get, what shares counters with that, and
// what is cut short for them.
func (k *Keeper) Holds(machine string) (list []Hold) {
	m, on := k.machines[machine], k.on[machine]
	if m == nil || len(on) == 0 {
		return nil
	}
	for i := range m.Pools {
		list = append(list, m.Pools[i].kept(on)...)
	}
	for i := range m.Resources {
		for n, who := range m.seats(&m.Resources[i], on) {
			if who != nil {
				list = append(list, Hold{Slice: m.Resources[i].Slices[n], End: quantity.Never, Who: who.Who})
			}
		}
	}
	for _, g := range on {
		for _, id := range g.shuts() {
			list = append(list, g.holds(id)...)
		}
	}
	slices.SortStableFunc(list, func(a, b Hold) int { return cmp.Compare(a.Slice, b.Slice) })
	return list
}

// shuts lists the slices that are closed for it, beside the devices that are kept.
func (g *Place) shuts() []job.SliceID {
	if g.later() {
		return g.Closed
	}
	return g.Cut
}

// holds are its times of one of these slices: closed at once, and truncated when notice is over; for a later place, truncated when it is
// wanted, which is said now; for an open one, only closed.
func (g *Place) holds(id job.SliceID) []Hold {
	switch {
	case g.later():
		return []Hold{{Slice: id, Start: g.From, End: g.Until, Who: g.Who, Truncate: true}}
	case g.Open:
		return []Hold{{Slice: id, End: quantity.Never, Who: g.Who}}
	}
	return []Hold{{Slice: id, End: quantity.Never, Who: g.Who}, {Slice: id, Start: g.At, End: quantity.Never, Who: g.Who, Truncate: true}}
}

// stay is the use of a device: whose, until when, and for whom it is kept, if it is.
type stay struct {
	ours bool
	end  quantity.Instant
	keep *Place
}

// stays are those who have devices of the pool, by the device's index.
func (p *Pool) stays() map[int]stay {
	has := map[int]stay{}
	for i := range p.Devices {
		if d := &p.Devices[i]; d.Holder != Nobody {
			has[i] = stay{ours: d.Holder == Ours, end: d.End}
		}
	}
	return has
}

// kept are the holds on slices of the pool that places for now make. A subjob that is to leave a kept device does not count any more.
func (p *Pool) kept(places []*Place) (list []Hold) {
	has := p.stays()
	var first *Place
	for _, g := range places {
		if g.later() {
			continue
		}
		for _, at := range g.Devices {
			if i, there := p.find(at); there {
				if y, taken := has[i]; !taken || y.ours {
					has[i] = stay{end: quantity.Never, keep: g}
					if first == nil {
						first = g
					}
				}
			}
		}
	}
	if first == nil {
		return nil
	}
	without := p.held(p.stays())
	for i, s := range p.held(has) {
		if s == nil {
			continue
		}
		h := Hold{Slice: p.Devices[p.Layout[i]].Slice, End: s.end}
		switch {
		case s.keep != nil:
			h.Who = s.keep.Who
		case without[i] == nil: // what others have leaves too little beside what is kept, though not alone
			h.Who = first.Who
		default:
			continue
		}
		list = append(list, h)
	}
	return list
}

// held says who has each device of the layout: itself, or so much of the counters it shares that too little is left for it, until enough of
// them have ended; nil: it is free, or has a subjob of ours.
func (p *Pool) held(has map[int]stay) []*stay {
	left := slices.Clone(p.Total)
	var others []int // devices that are not ours and use counters
	for i := range p.Devices {
		s, taken := has[i]
		if !taken {
			continue
		}
		take(left, p.Devices[i].Uses, 1)
		if !s.ours && len(p.Devices[i].Uses) > 0 {
			others = append(others, i)
		}
	}
	slices.SortStableFunc(others, func(a, b int) int { return cmp.Compare(has[a].end, has[b].end) })
	held := make([]*stay, len(p.Layout))
	var shared []int // their counters are used up by others
	for n, i := range p.Layout {
		d := &p.Devices[i]
		switch s, taken := has[int(i)]; {
		case taken && s.ours, !taken && d.Failing:
		case taken:
			held[n] = &s
		case bears(left, d.Uses):
			take(left, d.Uses, 1)
		default:
			shared = append(shared, n)
		}
	}
	for _, n := range shared { // all that is free is taken to be sold meanwhile
		uses := p.Devices[p.Layout[n]].Uses
		then, by := slices.Clone(left), stay{end: quantity.Never}
		for _, i := range others {
			take(then, p.Devices[i].Uses, -1)
			if by = has[i]; bears(then, uses) {
				break
			}
		}
		if !bears(then, uses) { // used up by ours, on a device that is not offered any more
			by.end = quantity.Never
		}
		held[n] = &by
	}
	return held
}

// seats says for whom each slice of a resource is kept now: what is cut for a place, then the highest that nobody has, then the highest of
// ours. Which devices somebody gets who waits nobody knows; ours are sold from the lowest on.
func (m *Machine) seats(r *Resource, places []*Place) []*Place {
	seats := make([]*Place, len(r.Slices))
	now := slices.DeleteFunc(slices.Clone(places), (*Place).later)
	left := make([]int64, len(now))
	for i, g := range now {
		left[i] = of(g.Asks, r.Name)
	}
	fill := func(fits func(g *Place, id job.SliceID) bool) {
		for i, g := range now {
			for n := len(r.Slices) - 1; n >= 0 && left[i] > 0; n-- {
				if seats[n] == nil && r.Others[n] == 0 && fits(g, r.Slices[n]) {
					seats[n] = g
					left[i]--
				}
			}
		}
	}
	fill(func(g *Place, id job.SliceID) bool { return slices.Contains(g.Cut, id) })
	fill(func(_ *Place, id job.SliceID) bool { return m.tenant(id) == nil })
	fill(func(*Place, job.SliceID) bool { return true })
	return seats
}

// closes are the slices that are not for sale from when a place is wanted: those cut short for it, and those that it takes or shares
// counters with.
func (r *room) closes(g *Place) []job.SliceID {
	list := slices.Clone(g.Cut)
	for _, a := range g.Asks {
		list = append(list, r.ordinals(a, g)...)
	}
	all := append(slices.Clip(r.gives), g)
	for i := range r.Pools {
		p := &r.Pools[i]
		has := p.stays()
		for k, s := range has { //sluice:sorted each is looked at alone
			if s.ours || r.gone(s.end) {
				delete(has, k)
			}
		}
		mine := false
		for _, o := range all {
			for _, at := range o.Devices {
				if k, there := p.find(at); there {
					has[k] = stay{end: quantity.Never, keep: o}
					mine = mine || o == g
				}
			}
		}
		if !mine {
			continue
		}
		for n, s := range p.held(has) {
			if s != nil && s.keep != nil {
				list = append(list, p.Devices[p.Layout[n]].Slice)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// ordinals are the slices of a resource that a place takes beyond those cut short for it: the highest that are free by then.
func (r *room) ordinals(a Ask, g *Place) (list []job.SliceID) {
	x := r.resource(a.Resource)
	if x == nil {
		return nil
	}
	n := a.N
	for _, id := range x.Slices {
		if slices.Contains(g.Cut, id) {
			n--
		}
	}
	seats := r.seats(x, r.gives)
	for i := len(x.Slices) - 1; i >= 0 && n > 0; i-- {
		id := x.Slices[i]
		if seats[i] == nil && !r.busy(id, x.Others[i]) && !slices.Contains(g.Cut, id) {
			list = append(list, id)
			n--
		}
	}
	return list
}

// busy reports whether a slice is held at when: by a subjob of ours, by others until then (0: not), or for a kept place.
func (r *room) busy(id job.SliceID, others quantity.Instant) bool {
	t := r.tenant(id)
	return t != nil && !r.gone(t.End) || others != 0 && !r.gone(others) ||
		slices.ContainsFunc(r.gives, func(g *Place) bool { return slices.Contains(g.shuts(), id) })
}
