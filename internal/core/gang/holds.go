// Package gang is how one job gets slices of several nodes at once, or none of them: what its home keeps while it has the nodes hold them,
// one after the other (Holds), and from the claim to the end of the last member (Course). Both are soft and pure: what is durable is
// the home's claim and the nodes' leases, and after a crash the nodes are asked again.
package gang

import (
	"slices"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// MostMembers is for how many members a hold waits at most: holds are taken one after the other, and the first stands as long as all others
// need.
const MostMembers = 64

// Holds are what the nodes of a gang hold for it. One node is asked at a time, in order of node id: of gangs that want the same nodes the
// one that has the first of them never waits for a node that another holds and that comes before it, so no two wait for each other,
// whatever homes they are of.
type Holds struct {
	members []protocol.Member
	held    int
}

// NewHolds begins with members that hold nothing, in order of node id.
func NewHolds(members []protocol.Member) *Holds {
	for i := 1; i < len(members); i++ {
		invariant.Check(members[i-1].Node < members[i].Node, "a gang's members are asked in order of node id, and %q comes before %q",
			members[i-1].Node, members[i].Node)
	}
	return &Holds{members: slices.Clone(members)}
}

// Members are all of them, with the tokens of those that hold.
func (h *Holds) Members() []protocol.Member { return h.members }

// Held are those that hold.
func (h *Holds) Held() []protocol.Member { return h.members[:h.held] }

// Next is the member that is asked now.
func (h *Holds) Next() int { return h.held }

// Hold notes that the node that is asked holds under a token. It says whether all do.
func (h *Holds) Hold(t job.Token) (all bool) {
	invariant.Check(h.held < len(h.members), "a gang of %d members is held by more", len(h.members))
	h.members[h.held].Token = t
	h.held++
	return h.held == len(h.members)
}
