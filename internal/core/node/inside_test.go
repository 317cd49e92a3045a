package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Lease is one lease as the node knows it, for tests and for people who look inside.
type Lease struct {
	Token      job.Token
	Job        job.ID
	Slice      job.SliceID
	Also       []job.SliceID
	Range      job.Range
	Start, End quantity.Instant
	// Started: the process was seen. Ended: it is confirmed gone. Settled: its home has the result. Stuck: it can't be
	// ended and its slices are quarantined.
	Started, Ended, Settled, Stuck bool
}

// Leases returns every lease that is not gone, in order of token. The values are the caller's.
func (n *Node) Leases() []Lease {
	all := n.leases.Ordered()
	out := make([]Lease, 0, len(all))
	for _, l := range all {
		t := l.Terms()
		out = append(out, Lease{
			Token: t.Token, Job: t.Job, Slice: t.Slice, Also: slices.Clone(t.Also), Range: t.Range, Start: t.Start, End: t.End,
			Started: l.Seen(), Ended: l.Vacated(), Settled: l.Settled(), Stuck: l.Stuck(),
		})
	}
	return out
}

// Epoch is the node's boot count.
func (n *Node) Epoch() uint32 { return n.holds.Epoch() }
