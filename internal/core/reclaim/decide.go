package reclaim

import (
	"sluice.dev/sluice/internal/core/quantity"
)

// Decision is what a call of Decide came to.
type Decision struct {
	// Machines on which places came, went or changed, in order, each once.
	Machines []string
	// Again is when Decide is to be called at the latest, if nothing is heard before; Never: not before something is heard.
	Again quantity.Instant
}

// Decide keeps places for those who wait and lets go of those that are needed no longer. costs says what stopping the subjob on a slice
// costs now; it must say the same as long as nothing changes.
func (k *Keeper) Decide(now quantity.Instant, costs Costs) Decision {
	p := &pass{Keeper: k, now: now, costs: costs, rooms: map[string]*room{}, changed: map[string]bool{}}
	coming := p.coming()
	for _, id := range sortedKeys(k.places) {
		if g := k.places[id]; !p.keeps(g) {
			p.drop(g)
		}
	}
	k.forget(now, func(id ID) bool { return k.wishes[id] != nil })
	p.serve()
	p.ahead(coming)
	return Decision{Machines: sortedKeys(p.changed), Again: p.again()}
}
