//go:build kubernetes

package kubernetes

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/edge/inventory"
)

// giver plays the node of an inventory: it hears what is reported, and gives back to those who wait.
type giver struct {
	inv      *Inventory
	keeper   *reclaim.Keeper
	costs    reclaim.Costs
	holds    map[job.SliceID][]protocol.Reservation
	machines map[string]*reclaim.Machine
}

// gives has heard all that there is, and decided nothing yet.
func gives(inv *Inventory) *giver {
	g := &giver{inv: inv, keeper: reclaim.New(), holds: map[job.SliceID][]protocol.Reservation{}, machines: map[string]*reclaim.Machine{}}
	for _, s := range inv.Held() {
		g.hear(s)
	}
	return g
}

func (g *giver) hear(s inventory.Sighting) {
	if s.Slice != "" {
		g.holds[s.Slice] = s.Closures
	}
	w := s.Wishes
	if w == nil {
		return
	}
	for i := range w.Machines {
		g.keeper.Hear(&w.Machines[i])
		g.machines[w.Machines[i].Name] = &w.Machines[i]
	}
	for _, name := range w.Lost {
		g.keeper.Lose(name)
		delete(g.machines, name)
	}
	for i := range w.Wishes {
		g.keeper.Wish(&w.Wishes[i])
	}
	for _, d := range w.Dropped {
		g.keeper.Withdraw(d.ID, d.Served)
	}
	for i := range w.Groups {
		g.keeper.Expect(&w.Groups[i])
	}
	for _, id := range w.Disbanded {
		g.keeper.Disband(id)
	}
}

// look hears what is new, and decides.
func (g *giver) look() {
	for _, s := range g.inv.look() {
		g.hear(s)
	}
	g.decide()
}

func (g *giver) decide() { g.keeper.Decide(g.inv.opts.Now(), g.costs) }

// held is all that others hold and that is kept for those who wait, in order of slice.
func (g *giver) held() (list []inventory.Sighting) {
	all := maps.Clone(g.holds)
	for _, name := range slices.Sorted(maps.Keys(g.machines)) {
		for _, h := range g.keeper.Closures(name) {
			all[h.Slice] = append(slices.Clip(all[h.Slice]), protocol.Reservation{
				Kind: protocol.ForReclaim, Start: h.Start, End: h.End, Source: h.Who, Truncate: h.Truncate,
			})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if len(all[id]) > 0 {
			list = append(list, inventory.Sighting{Slice: id, Closures: all[id]})
		}
	}
	return list
}

// place is what is kept for a Pod; nil: nothing.
func (g *giver) place(pod reclaim.ID) *reclaim.Place {
	for _, p := range g.keeper.Places() {
		if p.Wish == pod {
			return p
		}
	}
	return nil
}

// reasons are what is said of all who wait.
func (g *giver) reasons() (list []string) {
	for _, r := range g.keeper.Reasons(g.inv.opts.Now()) {
		list = append(list, reclaim.NameOf(r.Who)+" is "+r.Verdict.String()+": "+r.String())
	}
	return list
}

// held is what others hold, as an inventory says it to who has heard nothing.
func held(inv *Inventory) []inventory.Sighting {
	return slices.DeleteFunc(inv.Held(), func(s inventory.Sighting) bool { return s.Wishes != nil })
}

// hears has an informer's store take in objects as if it had heard of them.
func (inv *Inventory) hears(t testing.TB, source cache.SharedIndexInformer, objects ...runtime.Object) {
	t.Helper()
	inv.stores(t, source, source.GetStore().Add, objects...)
}

// loses has it lose them.
func (inv *Inventory) loses(t testing.TB, source cache.SharedIndexInformer, objects ...runtime.Object) {
	t.Helper()
	inv.stores(t, source, source.GetStore().Delete, objects...)
}

func (inv *Inventory) stores(t testing.TB, source cache.SharedIndexInformer, as func(any) error, objects ...runtime.Object) {
	t.Helper()
	for _, o := range objects {
		kept, err := inv.transform(o)
		if err != nil {
			t.Fatal(err)
		}
		key, err := cache.MetaNamespaceKeyFunc(kept)
		if err != nil {
			t.Fatal(err)
		}
		if was, there, err := source.GetStore().GetByKey(key); err == nil && there {
			inv.heard(was)
		}
		if err := as(kept); err != nil {
			t.Fatal(err)
		}
		inv.heard(kept)
	}
}
