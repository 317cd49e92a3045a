package reclaim

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Closures are the times of a machine's slices that are kept for wishes, in order of slice: the devices themselves, devices that share
// counters with them, and the truncations of the subjobs in the way.
func (k *Keeper) Closures(machine string) (list []Closure) {
	m, on := k.machines[machine], k.on[machine]
	if m == nil || len(on) == 0 {
		return nil
	}
	for i := range m.Pools {
		list = append(list, m.Pools[i].closures(on)...)
	}
	for i := range m.Resources {
		for n, who := range m.assign(&m.Resources[i], on) {
			if who != nil {
				list = append(list, Closure{Slice: m.Resources[i].Slices[n], End: quantity.Never, Who: who.Who})
			}
		}
	}
	for _, pl := range on {
		for _, id := range pl.closedSlices() {
			list = append(list, pl.closures(id)...)
		}
	}
	slices.SortStableFunc(list, func(a, b Closure) int { return cmp.Compare(a.Slice, b.Slice) })
	return list
}

// closedSlices are the slices closed for a place besides its devices.
func (pl *Place) closedSlices() []job.SliceID {
	if pl.scheduled() {
		return pl.Closed
	}
	return pl.Stops
}

// closures are those of one of these slices. A place for now closes it at once and truncates when the notice is over; a scheduled one
// truncates at its time, which is announced now; one that is open, or that a scheduler makes, only closes.
func (pl *Place) closures(id job.SliceID) []Closure {
	switch {
	case pl.scheduled():
		return []Closure{{Slice: id, Start: pl.From, End: pl.Until, Who: pl.Who, Truncate: true}}
	case pl.Open, pl.preempted:
		return []Closure{{Slice: id, End: quantity.Never, Who: pl.Who}}
	}
	return []Closure{
		{Slice: id, End: quantity.Never, Who: pl.Who},
		{Slice: id, Start: pl.At, End: quantity.Never, Who: pl.Who, Truncate: true},
	}
}

// occupant is the use of a device: whether it is ours, until when, and the place it is kept for, if any.
type occupant struct {
	ours    bool
	end     quantity.Instant
	keptFor *Place
}

// occupants are those who have devices of the pool, by the device's index.
func (p *Pool) occupants() map[int]occupant {
	has := map[int]occupant{}
	for i := range p.Devices {
		if d := &p.Devices[i]; d.Holder != Nobody {
			has[i] = occupant{ours: d.Holder == Ours, end: d.End}
		}
	}
	return has
}

// closures are those of slices of the pool for places that are wanted now. A subjob that is about to leave a kept device does not count.
func (p *Pool) closures(places []*Place) (list []Closure) {
	has := p.occupants()
	var first *Place
	for _, pl := range places {
		if pl.scheduled() {
			continue
		}
		for _, at := range pl.Devices {
			if i, there := p.find(at); there {
				if y, taken := has[i]; !taken || y.ours {
					has[i] = occupant{end: quantity.Never, keptFor: pl}
					if first == nil {
						first = pl
					}
				}
			}
		}
	}
	if first == nil {
		return nil
	}
	without := p.occupied(p.occupants())
	for i, s := range p.occupied(has) {
		if s == nil {
			continue
		}
		h := Closure{Slice: p.Devices[p.Layout[i]].Slice, End: s.end}
		switch {
		case s.keptFor != nil:
			h.Who = s.keptFor.Who
		case without[i] == nil: // there is enough beside what others have, but not beside what is kept as well
			h.Who = first.Who
		default:
			continue
		}
		list = append(list, h)
	}
	return list
}

// occupied says who blocks each device of the layout: its own occupant, or those who use up the counters that it shares, until enough of
// them have ended. nil: it is free, or has a subjob of ours.
func (p *Pool) occupied(has map[int]occupant) []*occupant {
	left := slices.Clone(p.Total)
	var others []int // indices of devices in use by others that use counters
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
	held := make([]*occupant, len(p.Layout))
	var shared []int // positions in the layout whose counters are used up
	for n, i := range p.Layout {
		d := &p.Devices[i]
		switch s, taken := has[int(i)]; {
		case taken && s.ours, !taken && d.Failing:
		case taken:
			held[n] = &s
		case suffices(left, d.Uses):
			take(left, d.Uses, 1)
		default:
			shared = append(shared, n)
		}
	}
	for _, n := range shared { // assumes that what is free is sold meanwhile
		uses := p.Devices[p.Layout[n]].Uses
		then, by := slices.Clone(left), occupant{end: quantity.Never}
		for _, i := range others {
			take(then, p.Devices[i].Uses, -1)
			if by = has[i]; suffices(then, uses) {
				break
			}
		}
		if !suffices(then, uses) { // used up by a subjob of ours on a device that is no longer offered
			by.end = quantity.Never
		}
		held[n] = &by
	}
	return held
}

// assign says for which place each slice of a resource is kept now: first the slices whose subjobs stop for it, then the highest that are
// free, then the highest of ours. Which of the counted devices a Pod will get is not known; ours are sold from the lowest up.
func (m *Machine) assign(r *Resource, places []*Place) []*Place {
	seats := make([]*Place, len(r.Slices))
	now := slices.DeleteFunc(slices.Clone(places), (*Place).scheduled)
	left := make([]int64, len(now))
	for i, pl := range now {
		left[i] = amount(pl.Asks, r.Name)
	}
	fill := func(fits func(pl *Place, id job.SliceID) bool) {
		for i, pl := range now {
			for n := len(r.Slices) - 1; n >= 0 && left[i] > 0; n-- {
				if seats[n] == nil && r.Others[n] == 0 && fits(pl, r.Slices[n]) {
					seats[n] = pl
					left[i]--
				}
			}
		}
	}
	fill(func(pl *Place, id job.SliceID) bool { return slices.Contains(pl.Stops, id) })
	fill(func(_ *Place, id job.SliceID) bool { return m.tenant(id) == nil })
	fill(func(*Place, job.SliceID) bool { return true })
	return seats
}

// closedFor are the slices that are not for sale from the time of a scheduled place on: those that stop for it, and those that it takes or
// shares counters with.
func (r *room) closedFor(pl *Place) []job.SliceID {
	list := slices.Clone(pl.Stops)
	for _, a := range pl.Asks {
		list = append(list, r.extraSlices(a, pl)...)
	}
	all := append(slices.Clip(r.places), pl)
	for i := range r.Pools {
		p := &r.Pools[i]
		has := p.occupants()
		for k, s := range has { //sluice:sorted each entry is checked by itself
			if s.ours || r.gone(s.end) {
				delete(has, k)
			}
		}
		mine := false
		for _, o := range all {
			for _, at := range o.Devices {
				if k, there := p.find(at); there {
					has[k] = occupant{end: quantity.Never, keptFor: o}
					mine = mine || o == pl
				}
			}
		}
		if !mine {
			continue
		}
		for n, s := range p.occupied(has) {
			if s != nil && s.keptFor != nil {
				list = append(list, p.Devices[p.Layout[n]].Slice)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// extraSlices are the slices of a resource that a place takes beyond those that stop for it: the highest that are free by then.
func (r *room) extraSlices(a Ask, pl *Place) (list []job.SliceID) {
	x := r.resource(a.Resource)
	if x == nil {
		return nil
	}
	n := a.N
	for _, id := range x.Slices {
		if slices.Contains(pl.Stops, id) {
			n--
		}
	}
	seats := r.assign(x, r.places)
	for i := len(x.Slices) - 1; i >= 0 && n > 0; i-- {
		id := x.Slices[i]
		if seats[i] == nil && !r.busy(id, x.Others[i]) && !slices.Contains(pl.Stops, id) {
			list = append(list, id)
			n--
		}
	}
	return list
}

// busy reports whether a slice is taken at when: by a subjob of ours, by others until others (0: by none), or for a place.
func (r *room) busy(id job.SliceID, others quantity.Instant) bool {
	t := r.tenant(id)
	return t != nil && !r.gone(t.End) || others != 0 && !r.gone(others) ||
		slices.ContainsFunc(r.places, func(pl *Place) bool { return slices.Contains(pl.closedSlices(), id) })
}
