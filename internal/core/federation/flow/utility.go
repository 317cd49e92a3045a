package flow

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/quantity"
)

// Probe is a ticket's question to a node: whether it may land there.
type Probe struct {
	Ticket TicketID
	// Demand, Born and Priority as the ticket has them.
	Demand   quantity.Amount
	Born     quantity.Instant
	Epoch    uint32
	Home     ZoneID
	Priority int16
	Churn    uint8
	Class    Class
}

// Probe is what a ticket asks a node.
func (t *Ticket) Probe() Probe {
	return Probe{Ticket: t.ID, Demand: t.Demand, Born: t.Born, Epoch: t.Epoch, Home: t.Home, Priority: t.Priority, Churn: t.Churn,
		Class: t.Class}
}

// utility is what a probe is worth to a node, in thousandths of a step of priority (SYSTEMS 3.2): priority + .5 age/W + .2 fit - .1 churn.
// Age counts up to W (Patience), so that no age makes up for a step of priority with the default weights; who has waited longer than W
// has its turn in the order of waking (Lot). Fit is demand over what the fragment holds, that is level of its class.
func (c *Config) utility(now quantity.Instant, p *Probe, fragment Class, fits bool) int64 {
	age := min(max(now.Sub(p.Born), 0), c.Patience)
	u := 1000*int64(p.Priority) + c.AgeWeight*int64(age/1000)/int64(c.Patience/1000)
	if fits {
		level := c.Classes[fragment]
		u += c.FitWeight * int64(min(p.Demand, level)>>fitShift(level)) / int64(level>>fitShift(level))
	}
	return u - c.ChurnWeight*int64(p.Churn)
}

// fitShift leaves the highest 32 bits of a level, so that products with it stay within 63.
func fitShift(level quantity.Amount) int { return max(0, bits.Len64(uint64(level))-32) }
