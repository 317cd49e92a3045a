package reclaim

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Verdict is how a wish stands.
type Verdict uint8

// How a wish stands.
const (
	// Unheard: it is in turn, or blocked.
	Unheard Verdict = iota
	// Kept: a place is kept for it.
	Kept
	// Roomy: there seems to be room without our help.
	Roomy
	// Hopeless: nothing that may be given back would make room for it, as of the last search.
	Hopeless
	// LeftAlone: it, or those like it, did not come to places that were kept for them.
	LeftAlone
)

// Reason is why something is given back for a wish, or nothing.
type Reason struct {
	Verdict Verdict
	// Place that is kept for it, if one is.
	Place *Place
	// Until when it stays at that, as far as that is known; 0: it is not.
	Until quantity.Instant
	// Times a place was kept in vain.
	Times int
}

// Why says how a wish stands.
func (k *Keeper) Why(now quantity.Instant, id ID) Reason {
	w := k.wishes[id]
	switch {
	case k.places[id] != nil:
		g := k.places[id]
		return Reason{Verdict: Kept, Place: g, Until: g.Until}
	case w == nil || w.Blocked:
		return Reason{}
	case now < k.shunned[id].until:
		return Reason{Verdict: LeftAlone, Until: k.shunned[id].until, Times: k.shunned[id].times}
	case k.failed[w.Kin] != nil && now < k.failed[w.Kin].until:
		return Reason{Verdict: LeftAlone, Until: k.failed[w.Kin].until, Times: k.failed[w.Kin].times}
	case k.roomy[id] != 0:
		return Reason{Verdict: Roomy, Until: k.roomy[id].Add(pauses)}
	case k.due(id, w.Kin.Shape) != 0:
		return Reason{Verdict: Hopeless, Until: k.due(id, w.Kin.Shape)}
	}
	return Reason{}
}

// String is the reason in a sentence.
func (r Reason) String() string {
	switch r.Verdict {
	case Unheard:
	case Kept:
		return "kept is " + r.Place.String()
	case Roomy:
		return "there seems to be room for it already"
	case Hopeless:
		return "nothing that may be given back would make room for it"
	case LeftAlone:
		return fmt.Sprintf("left alone: %d places were kept for it, or for those like it, in vain", r.Times)
	}
	return "its turn has not come yet"
}

// String says what a place is, and what it costs.
func (g *Place) String() string {
	text := "a place on " + g.Machine
	if len(g.Cut) == 0 {
		return text + ", where nothing has to be stopped"
	}
	ids := make([]string, len(g.Cut))
	for i, id := range g.Cut {
		ids[i] = string(id)
	}
	return fmt.Sprintf("%s: %s stopped, which loses %v of work and %v of time that was sold; the least of %d machines looked at", text,
		strings.Join(ids, ", "), g.Cost.Lost.Round(time.Second), g.Cost.Left.Round(time.Second), g.Looked)
}
