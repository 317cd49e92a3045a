package reclaim

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Decision is the result of a pass.
type Decision struct {
	// Machines whose places were added, removed or changed, in order, each once.
	Machines []string
	// Again is when Decide is due again without news; Never: only upon news.
	Again quantity.Instant
}

// Decide keeps places for wishes and groups, and releases those that are needed no longer. costs is the current cost of stopping the subjob
// on a slice; it must be stable between changes.
func (k *Keeper) Decide(now quantity.Instant, costs Costs) Decision {
	p := &pass{Keeper: k, now: now, costs: costs, rooms: map[string]*room{}, changed: map[string]bool{}}
	coming := p.expectedGroups()
	for _, id := range sortedKeys(k.places) {
		if pl := k.places[id]; !p.stillNeeded(pl) {
			p.drop(pl)
		}
	}
	k.forget(now, func(id ID) bool { return k.wishes[id] != nil })
	serveNominated(p)
	p.serve()
	p.keepAhead(coming)
	again := now.Add(retryDelay)
	switch {
	case p.unfinished: // searches are left
		again = now.Add(200 * time.Millisecond)
	case len(k.freeSince) > 0 || k.nominations.awaits(now): // the time to use free room is about to end
		again = now.Add(time.Second)
	case k.Idle():
		again = quantity.Never
	}
	return Decision{Machines: sortedKeys(p.changed), Again: again}
}
