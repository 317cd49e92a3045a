package flow

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/quantity"
)

// TicketID is unique in a flow while the ticket lives. Every tie ends on it.
type TicketID uint64

// Kind is what a ticket is for.
type Kind uint8

const (
	// Fleeting work (an F-task) is worth nothing later: it expires when its search is over.
	Fleeting Kind = iota
	// Lasting work waits at home until there is room again; it expires only by a deadline that its owner gave.
	Lasting
)

// Phase of a ticket's life. Drawing, Searching and Asking take turns; the others end a search.
type Phase uint8

const (
	// Drawing: it is between zones, or has not begun.
	Drawing Phase = iota
	// Searching: it is in a zone, counted there, and asks nobody now.
	Searching
	// Asking: a probe is on its way to Node.
	Asking
	// Landed: a node has granted a place. The home decides what becomes of it.
	Landed
	// Parked: it waits at home.
	Parked
	// Expired: it is over.
	Expired
)

// PhaseNames are the names of the phases, in order.
var PhaseNames = []string{"drawing", "searching", "asking", "landed", "parked", "expired"}

// String is the phase's name.
func (p Phase) String() string { return PhaseNames[p] }

// Ticket is what looks for a place for one pending job: the paper's persistent lightweight agent. It lives through failed hops
// and carries what they have taught, so a failed probe never submits anything again. It has no pointers, and what the job does
// stays at home. Its home makes it from the job and has the only one that counts; a ticket of an earlier Epoch is void.
type Ticket struct {
	ID TicketID
	// Demand of the largest resource that classes are made of, and Class, which it belongs to.
	Demand quantity.Amount
	// Deadline by which it must have landed, which its owner gave; 0: none.
	Deadline quantity.Instant
	// Born is when the job began to wait. Since is when this search began.
	Born, Since quantity.Instant
	// Next is when it may hop again.
	Next quantity.Instant
	// Visited is a filter of the nodes asked in this zone, by node modulo 64.
	Visited uint64
	// Epoch of the home, and Home, the zone that owns the job.
	Epoch uint32
	Home  ZoneID
	// Zone where it searches, or was last, and Node that it asked last.
	Zone ZoneID
	Node NodeID
	// Episode counts its searches from 0: one, and one for each time it was woken.
	Episode uint16
	// Priority of the job: a step of it counts more than age, fit and churn together can.
	Priority int16
	// Hops in this search; Here is those in this zone, with the looks that found nothing to ask.
	Hops, Here uint8
	// Draws of a zone in this search, and how many of them because one zone's hops were over.
	Draws, Resplits uint8
	// Crowded is set once a zone had no place for another ticket.
	Crowded bool
	// Churn counts grants of this ticket that came to nothing, at most 255.
	Churn uint8
	Class Class
	Kind  Kind
	Phase Phase
	// Why it expired or is parked.
	Why Why
}

// due says whether its owner's deadline is over.
func (t *Ticket) due(now quantity.Instant) bool { return t.Deadline != 0 && t.Deadline <= now }

// until is the instant at, or the deadline if that is before it.
func (t *Ticket) until(at quantity.Instant) quantity.Instant {
	if t.Deadline != 0 {
		return min(at, t.Deadline)
	}
	return at
}

// Why is why a search ended without a place. The values are stored and sent: only append.
type Why uint8

const (
	// Unended is the zero value: the search goes on, or has landed.
	Unended Why = iota
	// OutOfPatience: it took Patience.
	OutOfPatience
	// OutOfHops: it took MaxHops.
	OutOfHops
	// AllCrowded: the zone it was drawn to, and the next one, had as many tickets as they take.
	AllCrowded
	// NoZone is alive, by the digests that have come.
	NoZone
	// PastDeadline: its owner's deadline is over.
	PastDeadline
)

var whyNames = [...]string{
	"", "no place was found within its patience", "as many nodes as it may ask have refused it",
	"as many search in two zones as may", "no zone is alive", "its deadline is over",
}

// String is a sentence for people.
func (w Why) String() string { return whyNames[w] }

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

// utility is what a probe is worth to a node, in thousandths of a step of priority (adr 0036): priority + .5 age/W + .2 fit - .1 churn.
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
