package reclaim

import (
	"cmp"
	"slices"
)

// Keeper keeps places. It is not safe for concurrent use.
type Keeper struct {
	machines map[string]*Machine
	wishes   map[ID]*Wish
	groups   map[ID]*Group
	// names are all machines that have slices of ours to give or devices to keep, hosts those of them with a subjob of ours; in order.
	names, hosts []string
	memory
	// on are the places on a machine, in order of wish; they follow places.
	on map[string][]*Place
}

// New returns a Keeper that has heard of nothing.
func New() *Keeper {
	return &Keeper{
		machines: map[string]*Machine{}, wishes: map[ID]*Wish{}, groups: map[ID]*Group{}, memory: newMemory(), on: map[string][]*Place{},
	}
}

// Hear takes in all that is known of a machine, in place of what was before. It keeps m, which must not change any more.
func (k *Keeper) Hear(m *Machine) {
	k.machines[m.Name] = m
	member(&k.names, m.Name, len(m.Pools)+len(m.Resources) > 0)
	member(&k.hosts, m.Name, slices.ContainsFunc(m.Tenants, func(t Tenant) bool { return t.Slice != "" }))
}

// Lose forgets a machine that is gone.
func (k *Keeper) Lose(machine string) {
	delete(k.machines, machine)
	member(&k.names, machine, false)
	member(&k.hosts, machine, false)
}

// member has a name in an ordered list, or not.
func member(list *[]string, name string, is bool) {
	i, was := slices.BinarySearch(*list, name)
	switch {
	case is && !was:
		*list = slices.Insert(*list, i, name)
	case !is && was:
		*list = slices.Delete(*list, i, i+1)
	}
}

// Wish takes in a wish, in place of what was said of it before. It keeps w, which must not change any more.
func (k *Keeper) Wish(w *Wish) { k.wishes[w.ID] = w }

// Drop forgets a wish that waits no more. served: it has what it wanted, or at least a machine, so nothing is held against it and its kin.
func (k *Keeper) Drop(id ID, served bool) {
	if w := k.wishes[id]; w != nil && served {
		delete(k.shunned, id)
		delete(k.failed, w.Kin)
	}
	delete(k.wishes, id)
}

// Expect takes in a group, in place of what was said of it before. It keeps g, which must not change any more.
func (k *Keeper) Expect(g *Group) { k.groups[g.ID] = g }

// Disband forgets a group.
func (k *Keeper) Disband(id ID) { delete(k.groups, id) }

// Idle reports whether nobody waits and nothing is kept, so that Decide has nothing to do.
func (k *Keeper) Idle() bool { return len(k.wishes)+len(k.groups)+len(k.places) == 0 }

// Places are all that are kept, in order of wish.
func (k *Keeper) Places() (list []*Place) {
	for _, id := range sortedKeys(k.places) {
		list = append(list, k.places[id])
	}
	return list
}

// On lists the places on a machine, in order of wish.
func (k *Keeper) On(machine string) []*Place { return k.on[machine] }

// quest is what a wish needs, less what its shared claims get in a kept place other than g, or in one of more: these set on.
func (k *Keeper) quest(w *Wish, g *Place, more []*Place) *quest {
	q := &quest{id: w.ID, who: w.Who, kin: w.Kin, asks: w.Asks, where: &w.Where}
	for i := range w.Claims {
		c := &w.Claims[i]
		if len(c.Requests) == 0 || c.Key != "" && slices.Contains(q.claims, c.Key) {
			continue
		}
		if c.Key != "" {
			if other := k.covers(c.Key, g, more); other != nil {
				q.on = other.Machine
				continue
			}
			q.claims = append(q.claims, c.Key)
		}
		for r := range c.Requests {
			q.wants = append(q.wants, want{c.Requests[r].Choices, i})
		}
	}
	return q
}

// reorder lists the places on machines anew.
func (k *Keeper) reorder(machines map[string]bool) {
	for m := range machines { //sluice:sorted each is looked at alone
		delete(k.on, m)
	}
	for _, g := range k.places { //sluice:sorted the list is sorted next
		if machines[g.Machine] {
			k.on[g.Machine] = append(k.on[g.Machine], g)
		}
	}
	for m := range machines { //sluice:sorted each is looked at alone
		slices.SortFunc(k.on[m], func(a, b *Place) int { return cmp.Compare(a.Wish, b.Wish) })
	}
}

// questOf is what the wish for which a place is kept needs; nil if that is not known any more.
func (k *Keeper) questOf(g *Place) *quest {
	if g.Group == "" {
		if w := k.wishes[g.Wish]; w != nil && !w.Blocked {
			return k.quest(w, g, nil)
		}
		return nil
	}
	if x := k.groups[g.Group]; x != nil && g.Part < len(x.Parts) && !x.Parts[g.Part].Like.Blocked {
		return k.quest(&x.Parts[g.Part].Like, g, nil)
	}
	return nil
}
