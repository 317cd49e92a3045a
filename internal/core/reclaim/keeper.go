package reclaim

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
)

// Keeper keeps places for wishes. It is not safe for concurrent use.
type Keeper struct {
	machines map[string]*Machine
	wishes   map[ID]*Wish
	groups   map[ID]*Group
	// names are all machines with devices, hosts those with a subjob of ours; both sorted.
	names, hosts []string
	memory
	// on are the places by machine, in order of wish; derived from places.
	on map[string][]*Place
}

// New returns an empty Keeper.
func New() *Keeper {
	return &Keeper{
		machines: map[string]*Machine{}, wishes: map[ID]*Wish{}, groups: map[ID]*Group{}, memory: newMemory(), on: map[string][]*Place{},
	}
}

// Hear replaces what is known of a machine. It retains m, which must not change any more.
func (k *Keeper) Hear(m *Machine) {
	k.machines[m.Name] = m
	setMember(&k.names, m.Name, len(m.Pools)+len(m.Resources) > 0)
	setMember(&k.hosts, m.Name, slices.ContainsFunc(m.Tenants, func(t Tenant) bool { return t.Slice != "" }))
}

// Lose removes a machine.
func (k *Keeper) Lose(machine string) {
	delete(k.machines, machine)
	setMember(&k.names, machine, false)
	setMember(&k.hosts, machine, false)
}

// setMember adds a name to a sorted list, or removes it.
func setMember(list *[]string, name string, is bool) {
	i, was := slices.BinarySearch(*list, name)
	switch {
	case is && !was:
		*list = slices.Insert(*list, i, name)
	case !is && was:
		*list = slices.Delete(*list, i, i+1)
	}
}

// Wish adds or replaces a wish. It retains w, which must not change any more.
func (k *Keeper) Wish(w *Wish) { k.wishes[w.ID] = w }

// Withdraw removes a wish; its place goes with the next Decide. served: it has what it wanted, or at least a machine, so the backoff of the
// wish and of its class is reset.
func (k *Keeper) Withdraw(id ID, served bool) {
	if w := k.wishes[id]; w != nil && served {
		delete(k.backoffs, id)
		delete(k.unused, w.Equiv)
		delete(k.idle, w.Equiv)
	}
	delete(k.wishes, id)
}

// Expect adds or replaces a group. It retains g, which must not change any more.
func (k *Keeper) Expect(g *Group) { k.groups[g.ID] = g }

// Disband removes a group.
func (k *Keeper) Disband(id ID) { delete(k.groups, id) }

// Idle reports whether there are no wishes, groups or places, so that Decide has nothing to do.
func (k *Keeper) Idle() bool { return len(k.wishes)+len(k.groups)+len(k.places) == 0 }

// Places are all places, in order of wish.
func (k *Keeper) Places() (list []*Place) {
	for _, id := range sortedKeys(k.places) {
		list = append(list, k.places[id])
	}
	return list
}

// On are the places on a machine, in order of wish.
func (k *Keeper) On(machine string) []*Place { return k.on[machine] }

// demand is what a wish needs, less the shared claims that get their devices in another place, kept or in more; that place fixes the
// machine (demand.on).
func (k *Keeper) demand(w *Wish, pl *Place, more []*Place) *demand {
	q := &demand{id: w.ID, who: w.Who, equiv: w.Equiv, asks: w.Asks, where: &w.Where}
	for i := range w.Claims {
		c := &w.Claims[i]
		if len(c.Requests) == 0 || c.Key != "" && slices.Contains(q.claims, c.Key) {
			continue
		}
		if c.Key != "" {
			if other := k.placeOf(c.Key, pl, more); other != nil {
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

// PoolOf is the pool that offers a machine's slice; empty: that is not known.
func PoolOf(k *Keeper, machine string, id job.SliceID) string {
	if m := k.machines[machine]; m != nil {
		if i, there := m.slice(id); there {
			return m.Slices[i].Pool
		}
	}
	return ""
}

// relist rebuilds the list of a machine's places.
func (k *Keeper) relist(machine string) {
	var list []*Place
	for _, pl := range k.places { //sluice:sorted the list is sorted next
		if pl.Machine == machine {
			list = append(list, pl)
		}
	}
	if len(list) == 0 {
		delete(k.on, machine)
		return
	}
	slices.SortFunc(list, func(a, b *Place) int { return cmp.Compare(a.Wish, b.Wish) })
	k.on[machine] = list
}

// demandOf is the demand of the wish or member that a place is kept for; nil if it is not known any more.
func (k *Keeper) demandOf(pl *Place) *demand {
	if pl.Group == "" {
		if w := k.wishes[pl.Wish]; w != nil && !w.Blocked {
			return k.demand(w, pl, nil)
		}
		return nil
	}
	if x := k.groups[pl.Group]; x != nil && pl.Part < len(x.Parts) && !x.Parts[pl.Part].Like.Blocked {
		return k.demand(&x.Parts[pl.Part].Like, pl, nil)
	}
	return nil
}
