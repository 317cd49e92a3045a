// Package claims sells what jobs have won: it asks the nodes, turns grants into claims, makes nodes turn them into leases, and repeats
// unanswered messages. Claims are settled elsewhere (home/settle).
package claims

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/home/standing"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Ask is an unanswered Ask: soft, the node's grant is fenced by its own epoch. What is asked for counts as claimed.
type Ask struct {
	Job *record.Job
	// Sale that it is to become. Without a Node the slice is of the one that offers it here.
	protocol.Sale
	// Version of the slice's view that it was decided on.
	Version uint64
	// Late is what was spent for it of the budget of jobs that are late.
	Late int64

	id uint64
	// generation of the job that it was decided for.
	generation     job.Generation
	asked, expires quantity.Instant
	// holds and places of a gang over several nodes; nil and none for a claim at one node.
	holds  *gang.Holds
	places []Basis
}

// Basis is what is asked of one member's node: the reservation of the job's own that it takes over, 0 if it has none there, and the version
// of the view that it was decided on.
type Basis struct{ Reservation, Version uint64 }

// Gang makes it an ask of several nodes, with a place at each.
func (a *Ask) Gang(members []protocol.Member, places []Basis) {
	a.holds, a.places, a.Version = gang.NewHolds(members), places, places[0].Version
}

// ID of the ask.
func (a *Ask) ID() uint64 { return a.id }

// Slices are those that are asked for: of a gang, of the node that is asked now.
func (a *Ask) Slices() []job.SliceID {
	if a.holds != nil && len(a.holds.Held()) < len(a.holds.Members()) {
		return standing.Slices(protocol.Part(a.Slice, a.Also, a.holds.Members(), a.holds.Next()))
	}
	return standing.Slices(a.Slice, a.Also)
}

// covered reports whether a grant is of all the time that is asked for, and, for a gang, whether all nodes hold. What a node grants beyond
// that is not sold: a subjob ends when its home says.
func (a *Ask) covered(g *protocol.Grant) bool {
	return g.Start <= a.Start && g.End >= a.End && (a.holds == nil || len(a.holds.Held()) == len(a.holds.Members()))
}

// taken reports whether a token names something of the job already. Nodes with different numbers give out different tokens
// (node.Config.Number), so who gives out another's is not to be dealt with.
func taken(j *record.Job, t job.Token) bool {
	_, member, _ := j.ClaimSet().Member(t)
	_, unpublished := j.Output().Find(t)
	return member != nil || unpublished || j.ClaimSet().Claim(t) != nil
}

// price is what it will take of its queue's credits.
func (a *Ask) price() int64 {
	if a.Bid == nil {
		return 0
	}
	return a.Bid.Price
}

// asks are those that are not answered. Invariant: they are in order of their ids, and so of when they expire; ids of different lives of
// the ledger are distinct, since a node answers a repeated id with the same grant.
type asks struct {
	list []*Ask
	// last id that was given out; since is when this ledger came up. No life of one makes an ask a nanosecond.
	last  uint64
	since quantity.Instant
}

// number is a new id.
func (s *asks) number() uint64 {
	s.last = max(s.last, uint64(s.since)) + 1
	return s.last
}

func (s *asks) find(id uint64) (int, bool) {
	return slices.BinarySearchFunc(s.list, id, func(a *Ask, id uint64) int { return cmp.Compare(a.id, id) })
}

// of is the ask with an id, take takes it out; nil if there is none.
func (s *asks) of(id uint64) *Ask {
	if i, found := s.find(id); found {
		return s.list[i]
	}
	return nil
}

func (s *asks) take(id uint64) *Ask {
	i, found := s.find(id)
	if !found {
		return nil
	}
	a := s.list[i]
	s.list = slices.Delete(s.list, i, i+1)
	return a
}

// add gives an ask a new id.
func (s *asks) add(a *Ask, expires quantity.Instant) {
	a.id, a.expires = s.number(), expires
	s.list = append(s.list, a)
}

// first is when the first of them expires, and which that is; Never if there is none.
func (s *asks) first() (uint64, quantity.Instant) {
	if len(s.list) == 0 {
		return 0, quantity.Never
	}
	return s.list[0].id, s.list[0].expires
}
