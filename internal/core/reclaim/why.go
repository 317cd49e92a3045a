package reclaim

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/quantity"
)

// Verdict is the state of a wish.
type Verdict uint8

// The states of a wish.
const (
	// Pending: it has not been searched for yet.
	Pending Verdict = iota
	// Kept: a place is kept for it.
	Kept
	// RoomFree: there seems to be room without stopping anything.
	RoomFree
	// NoRoom: the last search for it, or for one of the same shape, found no place.
	NoRoom
	// BackingOff: it, or others of its class, did not use places that were kept for them.
	BackingOff
	// Blocked: what it wants is not known yet.
	Blocked
	// NotOffered: it wants nothing that machines of ours have.
	NotOffered
	// Sharing: all of its claims get their devices in the place of another wish.
	Sharing
	// InTurn: its class left places unused and gets one at a time, which another wish has.
	InTurn
	// Limit: as many places are kept as may be at once.
	Limit
	// Preempting: its scheduler makes room for it by itself, and that has not been seen yet.
	Preempting
)

// Reason is why a place is kept for a wish or for a group's members, or none.
type Reason struct {
	Verdict Verdict
	// Wish that waits since Since. Who is its name, or that of a group's members. Group that it belongs to: alone, it is for the members
	// that have not come.
	Wish, Group ID
	Who         string
	Since       quantity.Instant
	// Place that is kept for it, if any.
	Place *Place
	// Until is when the state ends at the latest; 0: not known.
	Until quantity.Instant
	// Times a place was not used, by it or, with Class, by it or others like it.
	Times int
	Class bool
	// Search that found no place.
	Search Search
	// Machine on which its shared claims get their devices, or its scheduler makes room for it.
	Machine string
}

// Reasons are the states of all wishes and of groups whose members are expected, the longest waiting first, then in order of name.
func (k *Keeper) Reasons(now quantity.Instant) (list []Reason) {
	come, kept := map[ID]int{}, map[ID]bool{}
	for _, id := range sortedKeys(k.wishes) {
		come[k.wishes[id].Group]++
		list = append(list, k.Why(now, id))
	}
	for _, pl := range k.Places() {
		if k.wishes[pl.Wish] == nil {
			kept[pl.Group] = true
			list = append(list, k.Why(now, pl.Wish))
		}
	}
	for _, id := range sortedKeys(k.groups) {
		if r, expected := whyGroup(k, now, k.groups[id], come[id]); expected && !kept[id] {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b Reason) int { return cmp.Compare(a.Since, b.Since) })
	return list
}

// Why is the state of a wish, or of a place that is kept ahead, with its reason.
func (k *Keeper) Why(now quantity.Instant, id ID) Reason {
	w, r := k.wishes[id], Reason{Wish: id}
	if pl := k.places[id]; pl != nil {
		r.Verdict, r.Place, r.Who, r.Group, r.Until = Kept, pl, pl.Who, pl.Group, pl.Until
		if x := k.groups[pl.Group]; x != nil {
			r.Since = x.Since
		}
	}
	if w == nil {
		return r
	}
	r.Who, r.Since, r.Group = w.Who, w.Since, w.Group
	if r.Verdict != Kept {
		refused(k, now, w, &r)
	}
	return r
}

// refused says why no place is kept for a wish.
func refused(k *Keeper, now quantity.Instant, w *Wish, r *Reason) {
	class, of := k.unused[w.Equiv], miss{shape: w.Equiv.Shape}
	if k.retry[w.ID] > k.shapeRetry[w.Equiv.Shape] {
		of = miss{id: w.ID}
	}
	q := k.demand(w, nil, nil)
	switch missed, searched := k.misses[of]; {
	case w.Blocked:
		r.Verdict = Blocked
	case q.empty() && q.on != "":
		r.Verdict, r.Machine = Sharing, q.on
	case q.empty():
		r.Verdict = NotOffered
	case k.nominations.preempting(now, w.ID):
		n := k.nominations[w.ID]
		r.Verdict, r.Machine, r.Until = Preempting, w.Nominated, max(n.since, n.left).Add(schedulerBackoff)
	case now < k.backoffs[w.ID].until:
		r.Verdict, r.Until, r.Times = BackingOff, k.backoffs[w.ID].until, k.backoffs[w.ID].times
	case class != nil && now < class.until:
		r.Verdict, r.Until, r.Times, r.Class = BackingOff, class.until, class.times, true
	case class != nil && slices.ContainsFunc(k.Places(), func(pl *Place) bool { return pl.Equiv == w.Equiv }):
		r.Verdict, r.Times, r.Class = InTurn, class.times, true
	case k.freeSince[w.ID] != 0:
		r.Verdict, r.Until = RoomFree, k.freeSince[w.ID].Add(schedulerBackoff)
	case searched:
		r.Verdict, r.Search, r.Until = NoRoom, missed, k.retryAt(w.ID, w.Equiv.Shape)
	case len(k.places)-k.ahead >= maxPlaces:
		r.Verdict, r.Times = Limit, maxPlaces
	}
}

// whyGroup is why no places are kept for a group of which so many members wait; false if no members are expected besides.
func whyGroup(k *Keeper, now quantity.Instant, x *Group, come int) (r Reason, expected bool) {
	if _, tried := k.handled[x.ID]; tried || x.Since == 0 && x.From == 0 || x.Since != 0 && now > x.Since.Add(arrivalTimeout) {
		return r, false
	}
	for i := range x.Parts {
		come -= x.Parts[i].N - len(x.Parts[i].Bound)
	}
	if come >= 0 || len(x.Parts) == 0 {
		return r, false
	}
	r = Reason{Group: x.ID, Who: x.Parts[0].Like.Who, Since: x.Since}
	switch back := k.backoffs[x.ID]; {
	case slices.ContainsFunc(x.Parts, func(p Part) bool { return p.Like.Blocked }):
		r.Verdict = Blocked
	case now < back.until:
		r.Verdict, r.Until, r.Times = BackingOff, back.until, back.times
	case k.ownerBacksOff(now, x.Owners):
		r.Verdict, r.Class = BackingOff, true
	case k.retry[x.ID] != 0:
		r.Verdict, r.Until = NoRoom, k.retry[x.ID]
	}
	return r, true
}
