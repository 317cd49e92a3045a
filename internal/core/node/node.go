// Package node is the actor that owns slices: their timelines, the leases on them, what runs and whether it is confirmed gone, results
// until their home has them, quarantine. It is a pure state machine (protocol.Actor).
//
// It knows no market, policy or job progress: it grants time that is free, honours each token once, starts nothing without a lease, and
// never frees the time of a started subjob before its process tree is confirmed gone. Which job gets which time is decided elsewhere.
//
// Each part of its state is a folder of its own, from the bottom up: inventory (slices and what is reserved on each), holds (grants),
// leases (what runs), quarantine, offers, reservations, memory and pressure (the host's), tickets, giving. Node passes each message to the
// part that it concerns, and decides only what concerns several of them. What is not durable (holds, foreign processes, timers) is found
// again or asked for again after a restart.
package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/federation/floor"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/giving"
	"sluice.dev/sluice/internal/core/node/holds"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/node/memory"
	"sluice.dev/sluice/internal/core/node/offers"
	"sluice.dev/sluice/internal/core/node/pressure"
	"sluice.dev/sluice/internal/core/node/quarantine"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/node/reservations"
	"sluice.dev/sluice/internal/core/node/residents"
	"sluice.dev/sluice/internal/core/node/tickets"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Node is the actor. It is not safe for concurrent use.
type Node struct {
	cfg          Config
	record       *record.Recorder
	inventory    *inventory.Inventory
	holds        *holds.Holds
	leases       *leases.Leases
	runner       *leases.Runner
	quarantine   *quarantine.Quarantine
	offers       *offers.Offers
	reservations *reservations.Reservations
	memory       *memory.Host
	pressure     *pressure.Pressure
	tickets      *tickets.Tickets // nil where none search
	residents    *residents.Residents
	giving       giving.Giver // to those who wait for devices that slices are cut from
	answers      answers

	// market is where jobs that wait negotiate for the node's time; nil where they do not. trades is when it is to look again.
	market *floor.Floor
	trades quantity.Instant

	parts   capture.Parts[capture.Part] // none: all of the state is small
	booted  bool
	wake    quantity.Instant // the earliest Tick that is asked for, 0 if none
	refresh quantity.Instant // when everything is offered again
}

// New returns a node without state. The configuration must be valid: see Config.Validate.
func New(cfg Config) *Node {
	err := cfg.Validate()
	invariant.Check(err == nil, "node: New with a configuration that was not validated: %v", err)
	cfg = cfg.withDefaults()
	n := &Node{cfg: cfg, inventory: inventory.New()}
	n.record = record.New(cfg.ID, n.apply)
	n.holds = holds.New(n.inventory, cfg.Number)
	n.leases = leases.New(n.record, n.inventory)
	n.runner = leases.NewRunner(leases.Config{
		ResultRetry: cfg.ResultRetry, Overdue: cfg.Overdue, TruncateGrace: cfg.TruncateGrace, Fixed: cfg.Fixed,
	}, n.leases)
	n.quarantine = quarantine.New(n.record, n.inventory, n.leases, n.runner)
	n.offers = offers.New(offers.Config{Zone: cfg.Zone, Horizon: cfg.Horizon, MinGap: cfg.MinGap}, n.record, n.inventory)
	n.reservations = reservations.New(reservations.Config{Number: cfg.Number, Most: cfg.MaxReservations, PastTolerance: cfg.PastTolerance,
		HandOver: cfg.HandOver},
		reservations.Parts{Record: n.record, Inventory: n.inventory, Holds: n.holds, Leases: n.leases, Runner: n.runner, Offers: n.offers})
	n.residents = residents.New(n.record, n.inventory, cfg.ResultRetry, n.leases, n.holds)
	n.memory = memory.New(cfg.Host, cfg.Horizon, cfg.MinGap, n.inventory, n.leases, n.holds)
	n.pressure = pressure.New(cfg.Airlock, n.inventory, n.holds, n.leases, n.runner)
	if cfg.Search != nil {
		n.tickets = tickets.New(tickets.Config{Search: cfg.Search, Zone: cfg.Zone, TTL: cfg.GrantTTL, MinGap: cfg.MinGap}, tickets.Parts{
			Record: n.record, Inventory: n.inventory, Holds: n.holds, Leases: n.leases, Memory: n.memory, Share: n.pressure.Share,
		})
	}
	if cfg.Market != nil {
		c := *cfg.Market
		c.Self, c.Horizon, c.MinWindow = n.record.Self(), cfg.Horizon, cfg.MinGap
		n.market = floor.New(c, &owner{n.inventory, n.holds, n.memory, n.record, &n.cfg})
		n.inventory.Watch(n.market)
	}
	return n
}

// Apply folds one fact of this node into durable state. It decides nothing. A fact that does not follow from the ones
// before it is a broken invariant: the journal is not this node's, or we have a bug.
func (n *Node) Apply(f protocol.Fact) { n.apply(&f) }

// apply hands a fact to the parts that it is about.
func (n *Node) apply(f *protocol.Fact) {
	n.record.Count()
	switch f.Kind {
	case protocol.Booted:
		n.holds.Boot(f.Epoch)
		if last, ok := f.Body.(*protocol.Reservation); ok {
			n.reservations.Given(last.ID)
		}
	case protocol.LeaseMade:
		n.holds.Drop(f.Token)
		n.leases.Apply(f)
	case protocol.LeaseGone:
		n.leases.Apply(f)
		n.giving.Over(f.Token)
	case protocol.LeaseExtended, protocol.Truncated, protocol.SubjobStarted, protocol.SubjobVacated, protocol.SubjobEnded,
		protocol.ResultSettled:
		n.leases.Apply(f)
	case protocol.ReservationMade:
		n.reservations.ApplyMade(*f.Body.(*protocol.Reservation))
	case protocol.ReservationGone:
		n.reservations.ApplyGone(f.Body.(*protocol.Reservation).ID)
	case protocol.Quarantined:
		n.quarantine.Apply(f)
		n.leases.ApplyStuck(f.Token)
	case protocol.QuarantineLifted, protocol.SliceFailed, protocol.SliceMended:
		n.quarantine.Apply(f)
	default:
		invariant.Check(false, "node: fact %d: kind %d is not a node's", n.record.Applied(), f.Kind)
	}
}

// Digest is a hash of the durable state: the sum over all entities of each one's hash, so that a change costs one
// subtraction and one addition and the order of entities does not matter. It is for comparing two states that should be
// equal, not against an adversary.
func (n *Node) Digest() uint64 {
	sum := n.leases.Sum() + n.reservations.Sum() + n.quarantine.Sum()
	if epoch, last := n.holds.Epoch(), n.reservations.Last(); epoch != 0 || last != 0 {
		sum += record.Hash(record.TagMeta).Int(int64(epoch), int64(last)).Sum()
	}
	// A node without facts has a digest of its own: an empty state of another format does not look the same.
	return sum + record.Hash(record.TagNode).Text(string(n.cfg.ID)).Sum()
}

// Capture implements capture.Source. A node's state is one part: it is no more than the slices of one machine and what runs there.
func (n *Node) Capture() capture.Run {
	small := []protocol.Fact{{Kind: protocol.Booted, Epoch: n.holds.Epoch(), Body: &protocol.Reservation{ID: n.reservations.Last()}}}
	for _, s := range n.inventory.All() {
		small = quarantine.Facts(s, reservations.Facts(s, small))
	}
	return n.parts.Begin(n.record.Self(), n.leases.Facts(small))
}

// Executor and homes get the parts' messages in the node's name; this is for messages of no part.
func (n *Node) send(out *protocol.Out, m protocol.Message) { n.record.Send(out, m) }

var _ protocol.Actor = (*Node)(nil)

// places fills in the configured location and address of the node's slices.
func (c *Config) places(list []protocol.Slice) []protocol.Slice {
	if c.Rack == "" && c.Block == "" && c.Address == "" {
		return list
	}
	list = slices.Clone(list)
	for i := range list {
		list[i].Rack, list[i].Block, list[i].Address = c.Rack, c.Block, c.Address
	}
	return list
}

// address of the zone that slices are offered to.
func (c *Config) zone(of *protocol.Message) job.ZoneID {
	if of.From.Role == protocol.Zone && of.From.ID != "" {
		return job.ZoneID(of.From.ID)
	}
	return c.Zone
}
