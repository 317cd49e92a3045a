// Package actor is what a driver needs of the gate, the zone and the node: to step them and to ask them. Both drivers, the live
// one (internal/host) and the simulated one (internal/lab/sim), feed the same actors, and neither takes a scheduling decision.
package actor

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Gate is what a driver needs of the gate: the actor, whether a spec would be accepted (the error says everything that
// is wrong), and which life of a job of that name is the present one (0: there is none).
type Gate interface {
	protocol.Actor
	Check(now quantity.Instant, spec *job.Spec) error
	Life(id job.ID) job.Generation
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
}

// Set is the three state machines of one process.
type Set struct {
	Gate Gate
	Zone Zone
	Node Node
}

// Parties lists the actors with their addresses, in the order in which every driver serves them.
func (s Set) Parties(zone job.ZoneID, node job.NodeID) []Party {
	return []Party{
		{Address: protocol.Address{Role: protocol.Gate}, Actor: s.Gate},
		{Address: protocol.Address{Role: protocol.Zone, ID: string(zone)}, Actor: s.Zone},
		{Address: protocol.Address{Role: protocol.Node, ID: string(node)}, Actor: s.Node},
	}
}

// Party is one actor with its address.
type Party struct {
	Address protocol.Address
	Actor   protocol.Actor
}

// Tick is what the timer says to an actor whose time has come.
func Tick(to protocol.Address) protocol.Message {
	return protocol.Message{Kind: protocol.Tick, From: protocol.Address{Role: protocol.Timer}, To: to}
}

// Name is an address for people.
func Name(a protocol.Address) string {
	switch a.Role {
	case protocol.Gate:
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
	}
	return "nobody"
}
