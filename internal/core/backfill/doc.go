// Package backfill is how live rigid work is planned: whose place is kept while it waits, and who may start before those that came earlier
// (A. W. Mu'alem and D. G. Feitelson, IEEE TPDS 12(6), 2001, for the words). The planners that these are named after, which place whole
// clusters, are baselines of simulations and live in internal/lab/planner.
//
// A Planner is a part of an actor that embeds it beside a market.Floor: it is deterministic, and all that it keeps is soft. It finds
// placements for the first rigid jobs in line, asks nodes to reserve them, and starts jobs when their time has come; the floor sells what
// is left. It must not know zones, claims or leases: it knows Supply, Demand and Sale (contract.go).
//
//	planner.go   Planner, its line of jobs, and one plan: the values passed between its parts
//	survey.go    each slice's free time from pass to pass, where it changed, and the earliest placement on it
//	opening.go   an index of the nodes on which a placement could begin soonest
//	order.go     gangs in one order with all others, where the policy has an index
//	late.go      gangs that have waited too long, where nobody holds a place by age
//	reserve.go   reservations that were asked for, are held, or are withdrawn
//	place.go     which of two placements is better, and a placement's properties on some slices
//	contract.go  a planner's calls to its owner, and its own state of jobs and slices
package backfill
