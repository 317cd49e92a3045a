// Package flow finds a place for one pending job among many zones and nodes without asking them all: the search of Laminar. A small record,
// the Ticket, is drawn to a zone by the zones' digests (Splitter), asks a few nodes there that the zone believes to be free (Search,
// Directory), and lands where a node grants it a place (Arbiter, which alone decides). The cost of a search is bounded before it begins
// (Config, Bound); its end always has a reason: it landed, it expired, or it is parked and waits (Why, Lot).
//
// All state here is soft. Ownership never moves: the home of a job keeps its progress and its claims, and a grant is a proposal to it like
// any other. All numbers are integers; the only floats are those of exponents other than 1 (weights.go), and they are rounded before they
// decide anything.
//
// The package must not know markets, actors, messages, or what a job does.
package flow
