package reclaim

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Verdict is the state of a wish.
type Verdict uint8

// The states of a wish.
const (
	// Pending: it has not been searched for yet, or is blocked.
	Pending Verdict = iota
	// Kept: a place is kept for it.
	Kept
	// RoomFree: there seems to be room without stopping anything.
	RoomFree
	// NoRoom: stopping all that may be stopped would not make room for it, as of the last search.
	NoRoom
	// BackingOff: it, or others of its class, did not use places that were kept for them.
	BackingOff
)

// Reason is why a place is kept for a wish, or none.
type Reason struct {
	Verdict Verdict
	// Place that is kept for it, if any.
	Place *Place
	// Until is when the state ends at the latest; 0: not known.
	Until quantity.Instant
	// Times a place was not used.
	Times int
}

// Why is the state of a wish, with its reason.
func (k *Keeper) Why(now quantity.Instant, id ID) Reason {
	w := k.wishes[id]
	switch {
	case k.places[id] != nil:
		g := k.places[id]
		return Reason{Verdict: Kept, Place: g, Until: g.Until}
	case w == nil || w.Blocked:
		return Reason{}
	case now < k.backoffs[id].until:
		return Reason{Verdict: BackingOff, Until: k.backoffs[id].until, Times: k.backoffs[id].times}
	case k.unused[w.Equiv] != nil && now < k.unused[w.Equiv].until:
		return Reason{Verdict: BackingOff, Until: k.unused[w.Equiv].until, Times: k.unused[w.Equiv].times}
	case k.freeSince[id] != 0:
		return Reason{Verdict: RoomFree, Until: k.freeSince[id].Add(schedulerBackoff)}
	case k.retryAt(id, w.Equiv.Shape) != 0:
		return Reason{Verdict: NoRoom, Until: k.retryAt(id, w.Equiv.Shape)}
	}
	return Reason{}
}

// String is the reason in a sentence.
func (r Reason) String() string {
	switch r.Verdict {
	case Pending:
	case Kept:
		return "kept: " + r.Place.String()
	case RoomFree:
		return "there seems to be room for it without stopping anything"
	case NoRoom:
		return "stopping all that may be stopped would not make room for it"
	case BackingOff:
		return fmt.Sprintf("backing off: %d places that were kept for it, or for others of its class, were not used", r.Times)
	}
	return "not searched for yet"
}

// String says what the place is, and what it costs.
func (g *Place) String() string {
	text := "a place on " + g.Machine
	if len(g.Cut) == 0 {
		return text + ", where nothing has to be stopped"
	}
	ids := make([]string, len(g.Cut))
	for i, id := range g.Cut {
		ids[i] = string(id)
	}
	return fmt.Sprintf("%s: %s stopped, which loses %v of work and %v of sold time; the lowest cost of %d machines", text,
		strings.Join(ids, ", "), g.Cost.Lost.Round(time.Second), g.Cost.Left.Round(time.Second), g.Looked)
}
