// Package actor is what a driver needs of the gate, the zone and the node: to step them and to ask them. Both drivers, the live
// one (internal/host) and the simulated one (internal/lab/sim), feed the same actors, and neither takes a scheduling decision.
package actor

import (
	"strings"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Gate is what a driver needs of the gate: the actor, whether a spec would be accepted (the error says everything that
// is wrong), which life of a job of that name is the present one (0: there is none), and where a job of that name has its home (empty:
// there is no such job, or its home was not drawn yet).
type Gate interface {
	protocol.Actor
	Check(now quantity.Instant, spec *job.Spec) error
	Life(id job.ID) job.Generation
	Home(id job.ID) job.ZoneID
	// Draw is where a job would have its home if it were submitted now; empty: no zone is known that could run it.
	Draw(spec *job.Spec) job.ZoneID
}

// Zone is what a driver needs of the zone: the actor and its views for people. Views change nothing.
type Zone interface {
	protocol.Actor
	// Page lists jobs, the newest before a key; what it costs grows with its limit.
	Page(now quantity.Instant, q status.JobQuery) status.JobPage
	// Job is one job with its subjobs, Brief the same without them.
	Job(now quantity.Instant, id job.ID) (status.Job, bool)
	Brief(now quantity.Instant, id job.ID) (status.Job, bool)
	Windows(now quantity.Instant) []status.Window
	Explain(now quantity.Instant, id job.ID) (status.Explanation, bool)
	// ExplainFiled explains a job that the zone has left to the archive, from the record it filed.
	ExplainFiled(now quantity.Instant, r *protocol.Record) status.Explanation
	DryRun(now quantity.Instant, spec *job.Spec) status.Explanation
	Queues(now quantity.Instant) []status.Queue
	// Costs completes what a node says of the subjobs that a reservation would cut.
	Costs(cuts []status.Cut) []status.Cut
}

// Strayer is a gate that finds a job whose home is none of the zones it knows: nothing may be decided then.
type Strayer interface {
	Stray() (id job.ID, home job.ZoneID, found bool)
}

// Drainer is a gate that knows which zones were drained for good.
type Drainer interface{ Drained(zone job.ZoneID) bool }

// Keeper is a zone that counts the jobs it keeps a record of, those that are over and not archived among them.
type Keeper interface{ Kept() int }

// Surveyor is a zone that shows more than people ask for by itself.
type Surveyor interface{ Survey() Survey }

// Survey is what it shows.
type Survey interface {
	// Offered lists the slices which nodes have offered it, of this process and of others.
	Offered(now quantity.Instant) []status.Slice
	// Sold is until when the last claim on a node's slices lasts; 0: none stands.
	Sold(node job.NodeID) quantity.Instant
	// Older are the subjobs of a job which Job leaves out, since there are very many: the last of them before an index
	// (status.Job.HistoryDropped), and the life of the job.
	Older(id job.ID, before int) (list []status.Subjob, life job.Generation, ok bool)
}

// Searcher is a zone in which tickets search for places, Drawer a gate that draws zones for them.
type Searcher interface {
	Searching(now quantity.Instant) *status.Search
}

// Drawer completes what a zone says of the search in it.
type Drawer interface {
	Drawn(now quantity.Instant, zone job.ZoneID, s *status.Search)
}

// Negotiator is a zone that counts what its market has done since it came up.
type Negotiator interface {
	Negotiation() status.Negotiation
}

// Node is what a driver needs of the node.
type Node interface {
	protocol.Actor
	Slices(now quantity.Instant) []status.Slice
	// Cuts says which subjobs a reservation would cut short.
	Cuts(now quantity.Instant, r protocol.Reservation) ([]status.Cut, error)
	// Strain is its host's memory in numbers, Airlock what it makes of it, AirlockSteps what was done to a life of a job for its sake.
	Strain(now quantity.Instant) status.Strain
	Airlock(now quantity.Instant) status.Airlock
	AirlockSteps(id job.ID, g job.Generation) []status.AirlockStep
	// Reclaims is who waits for devices that its subjobs use, and what it decided for them of late.
	Reclaims(now quantity.Instant) status.Reclaims
	// HostWaits are the latest waits of such that are over, with numbers above after, in order.
	HostWaits(after uint64) []status.HostWait
}

// Departing is a node whose machine may be gone for good at a known time.
type Departing interface {
	// Remaining is how many subjobs it has not handed over to their homes.
	Remaining() int
}

// Neighbourly is a node that may share a machine with others.
type Neighbourly interface {
	// Neighbours are its subjobs for the others, with what they use of the machine's memory.
	Neighbours(uses []protocol.Use) []protocol.Neighbour
}

// ZoneAt is a zone with its name.
type ZoneAt struct {
	ID job.ZoneID
	Zone
}

// NodeAt is a node with its name and its zone.
type NodeAt struct {
	ID job.NodeID
	// Zone that it offers its slices to.
	Zone job.ZoneID
	Node
}

// GateAt is a gate with its name, which is empty where there is one.
type GateAt struct {
	ID job.GateID
	Gate
}

// Set is the state machines of one process, each in the order in which it was configured: at least one gate, one zone and one node; or, of
// a machine that has joined a cluster, nodes alone.
type Set struct {
	Gates []GateAt
	Zones []ZoneAt
	Nodes []NodeAt
}

// Alone is the set of one of each.
func Alone(zone job.ZoneID, node job.NodeID, g Gate, z Zone, n Node) Set {
	return Set{Gates: OneGate(g), Zones: []ZoneAt{{zone, z}}, Nodes: []NodeAt{{node, zone, n}}}
}

// Joined reports whether gates and zones are elsewhere.
func (s Set) Joined() bool { return len(s.Gates) == 0 }

// Lead is the first gate, which decides for all zones; nil if gates are elsewhere.
func (s Set) Lead() Gate {
	if s.Joined() {
		return nil
	}
	return s.Gates[0].Gate
}

// OneGate is the list of one gate, which has no name.
func OneGate(g Gate) []GateAt { return []GateAt{{Gate: g}} }

// gates are the names of the gates.
func (s Set) gates() (names protocol.Gates) {
	for i := range s.Gates {
		names = append(names, s.Gates[i].ID)
	}
	return names
}

// GateOf is the gate of the job of a name.
func (s Set) GateOf(name job.ID) Gate {
	at := job.GateID(s.gates().Of(name).ID)
	for i := range s.Gates {
		if s.Gates[i].ID == at {
			return s.Gates[i].Gate
		}
	}
	return nil
}

// Parties lists the actors with their addresses, in the order in which every driver serves them: the gates, the zones, the nodes.
func (s Set) Parties() []Party {
	list := make([]Party, 0, len(s.Gates)+len(s.Zones)+len(s.Nodes))
	for _, g := range s.Gates {
		list = append(list, Party{Address: protocol.Address{Role: protocol.Gate, ID: string(g.ID)}, Actor: g.Gate})
	}
	for _, z := range s.Zones {
		list = append(list, Party{Address: protocol.Address{Role: protocol.Zone, ID: string(z.ID)}, Actor: z.Zone})
	}
	for _, n := range s.Nodes {
		list = append(list, Party{Address: protocol.Address{Role: protocol.Node, ID: string(n.ID)}, Actor: n.Node})
	}
	return list
}

// At is the zone of that name, nil if there is none.
func (s Set) At(zone job.ZoneID) Zone {
	for i := range s.Zones {
		if s.Zones[i].ID == zone {
			return s.Zones[i].Zone
		}
	}
	return nil
}

// Party is one actor with its address.
type Party struct {
	Address protocol.Address
	Actor   protocol.Actor
}

// Names lists parties for people.
func Names(list []Party) string {
	names := make([]string, len(list))
	for i := range list {
		names[i] = Name(list[i].Address)
	}
	return strings.Join(names, ", ")
}

// Tick is the timer's message to an actor that is due.
func Tick(to protocol.Address) protocol.Message {
	return protocol.Message{Kind: protocol.Tick, From: protocol.Address{Role: protocol.Timer}, To: to}
}

// Name is an address for people.
func Name(a protocol.Address) string {
	switch a.Role {
	case protocol.Gate:
		if a.ID != "" {
			return "gate " + a.ID
		}
		return "the gate"
	case protocol.Zone:
		return "zone " + a.ID
	case protocol.Node:
		return "node " + a.ID
	case protocol.Person:
		return "a person"
	case protocol.Executor:
		return "the executor of " + a.ID
	case protocol.Timer:
		return "the timer"
	case protocol.Bidder:
		return "the agent of job " + a.ID
	case protocol.Archive:
		return "the archive"
	case protocol.Provider:
		return "provider " + a.ID
	}
	return "nobody"
}
