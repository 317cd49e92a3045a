package laminar

import (
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm"
)

// The protocol. X is the ticket in all of them.
const (
	adopt   uint8 = iota // gate to zone: Task has its home there, and its ticket searches there first
	adopted              // home to gate: of a long task, which is said again until then
	search               // gate to zone: the ticket searches there
	probe                // zone to node: Task, A the ticket's move, C 1 if tickets wait in the zone for room
	answer               // node to zone: A as in probe, B the slice that is held or -1, and what is free, C the hold
	found                // zone to home: the ticket has landed: A the node, B the slice, C the hold
	redeem               // home to node: Task, A the ticket's move, B the slice, C the hold
	leased               // node to home: A as in redeem, B 1 if the task has started, and what is free
	again                // zone to gate: the ticket is to be drawn to another zone
	back                 // zone or gate to home: its search found nothing
	renewed              // zone to gate: without persistence, the task is submitted again
	// node to zone: it has room again, and has refused a probe since it had or knows that a task waits: B is what is free.
	freed
	// Timers.
	rests    // zone: A the ticket's move
	silent   // zone: no answer to the probe of move A
	unsaid   // home: no answer to the redemption of move A, after B
	due      // home: the deadline of a parked ticket
	away     // home: the ticket has not come back
	homeless // gate: the home has not said that it has the task
	retries  // gate: a ticket that is to be drawn
	lapses   // node: A the slice, B the hold
	decides  // node: about the probes of this instant
)

// Variant is what is taken out of the mechanism to see what it is worth.
type Variant uint8

// The variants.
const (
	// Whole: nothing.
	Whole Variant = iota
	// Argmax: a gate takes the zone with the most room, not a draw.
	Argmax
	// Uniform: a gate draws among zones alike.
	Uniform
	// Forgetful: a ticket that four nodes have refused is submitted again as a new one.
	Forgetful
	// Blind: hops go to any node.
	Blind
	// FirstCome: a node answers each probe as it comes, not all of one instant by their worth.
	FirstCome
	// Direct: a node that has room starts the task at once, as those of the peers do. Nothing is granted, claimed and redeemed, so a home
	// that dies or misses a ticket can not send another one after it.
	Direct
)

var variantNames = [...]struct{ name, what string }{
	{"laminar", "tickets drawn to zones, probing nodes by hints, node-local grants (core/federation/flow)"},
	{"laminar:argmax", "laminar, but a gate takes the zone with the most room"},
	{"laminar:uniform", "laminar, but a gate draws among zones alike"},
	{"laminar:forgetful", "laminar, but what four nodes have refused is submitted again"},
	{"laminar:blind", "laminar without hints: hops go to any node"},
	{"laminar:first-come", "laminar, but a node answers probes as they come"},
	{"laminar:direct", "laminar, but a node starts what it has room for: no grant, no claim"},
}

// Kind is the mechanism.
func Kind() swarm.Kind { return New(Whole) }

// Ablations are the variants but the whole.
func Ablations() []swarm.Kind {
	return []swarm.Kind{New(Argmax), New(Uniform), New(Forgetful), New(Blind), New(FirstCome), New(Direct)}
}

// New is a variant.
func New(v Variant) swarm.Kind {
	return swarm.Kind{
		Name: variantNames[v].name, Summary: variantNames[v].what, Reports: true, Digests: true,
		Messages: []swarm.MessageKind{
			{Name: "adopt", Bytes: 128}, {Name: "adopted", Bytes: 24}, {Name: "search", Bytes: 128}, {Name: "probe", Bytes: 64, Hop: true},
			{Name: "answer", Bytes: 64},
			{Name: "found", Bytes: 64}, {Name: "redeem", Bytes: 64}, {Name: "leased", Bytes: 48}, {Name: "again", Bytes: 128},
			{Name: "back", Bytes: 128}, {Name: "renewed", Bytes: 32}, {Name: "freed", Bytes: 32},
		},
		New: func(s swarm.Setup, port swarm.Port) (swarm.Mechanism, error) { return newMechanism(v, s, port) },
	}
}

// config is the flow's, for a cluster whose classes have no sizes but an order. The older digests are, the more of the room that they show
// is noise: so much counts as room everywhere.
func config(v Variant, s *swarm.Setup) (*flow.Config, error) {
	cfg := flow.Config{Seed: s.Seed, Period: s.Period, Patience: s.Patience, Pace: min(20*time.Millisecond, s.Patience),
		ZoneTickets: 1 << 20, Guesses: 1, Epsilon: max(1000, s.Period.Milliseconds()*10)}
	for c := range s.Cluster.Classes {
		cfg.Classes = append(cfg.Classes, quantity.Amount(c+1)<<30)
	}
	if v == Forgetful {
		cfg.MaxHops, cfg.ZoneHops = 4, 4
	}
	return cfg.Checked()
}
