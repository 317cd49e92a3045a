package search

import (
	"fmt"

	"sluice.dev/sluice/internal/core/federation/flow"
)

// Audit says what of the tickets does not fit together, empty if all does; for tests. It looks at everything.
func (h *Home) Audit() string {
	parked := 0
	for id, j := range h.tickets { //sluice:sorted for tests, which any order serves
		switch {
		case j.ticket.ID != id || j.state == Idle:
			return fmt.Sprintf("ticket %d is kept for %s, which is %v with ticket %d", id, j.Name(), j.state, j.ticket.ID)
		case j.state == Parked:
			parked++
		case j.state == Away && !h.ground.Has(id) && j.slot == 0:
			return fmt.Sprintf("%s has a ticket that is nowhere, and nobody misses it", j.Name())
		}
		if why := h.cfg.broken(&j.ticket); why != "" {
			return fmt.Sprintf("%s: %s", j.Name(), why)
		}
	}
	if parked != h.lot.Len() {
		return fmt.Sprintf("%d tickets are parked, the lot has %d", parked, h.lot.Len())
	}
	return h.ground.audit()
}

func (g *Ground) audit() string {
	for k, x := range g.guests { //sluice:sorted for tests, which any order serves
		switch {
		case k.home == g.zone && g.homeless(k.id):
			return fmt.Sprintf("ticket %d searches at home, and its home does not know it", k.id)
		case x.slot == 0:
			return fmt.Sprintf("ticket %d searches in zone %d and waits for nothing", k.id, g.zone)
		case x.Phase != flow.Searching && x.Phase != flow.Asking:
			return fmt.Sprintf("ticket %d searches in zone %d and is %v", k.id, g.zone, x.Phase)
		}
		if why := g.cfg.broken(&x.Ticket); why != "" {
			return fmt.Sprintf("ticket %d in zone %d: %s", k.id, g.zone, why)
		}
	}
	if n := g.dir.Tickets(); n != len(g.guests) {
		return fmt.Sprintf("%d tickets search in zone %d, its directory counts %d", len(g.guests), g.zone, n)
	}
	return ""
}

// homeless says whether the home here has no such ticket.
func (g *Ground) homeless(id flow.TicketID) bool {
	h, ok := g.home.(*Home)
	return ok && h.tickets[id] == nil
}

// broken is the bound that a ticket has passed, empty if none.
func (c *Config) broken(t *flow.Ticket) string {
	f := &c.Flow
	switch {
	case int(t.Hops) > f.MaxHops:
		return fmt.Sprintf("%d hops, %d are allowed", t.Hops, f.MaxHops)
	case int(t.Resplits) > f.Resplits:
		return fmt.Sprintf("%d resplits, %d are allowed", t.Resplits, f.Resplits)
	case t.Churn < 255 && int(t.Draws) > f.Resplits+2+int(t.Churn):
		return fmt.Sprintf("%d draws with %d resplits allowed and %d grants lost", t.Draws, f.Resplits, t.Churn)
	}
	return ""
}
