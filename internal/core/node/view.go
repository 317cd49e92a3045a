package node

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/timeline"
)

// Slices returns every slice as people see it, in order of id. The values are the caller's.
func (n *Node) Slices(now quantity.Instant) []status.Slice {
	out := make([]status.Slice, 0, len(n.slices))
	for _, s := range n.slices {
		if n.confirmed && !s.known && !s.left() {
			continue
		}
		v := status.Slice{Slice: s.desc, Node: n.cfg.ID, Reservations: s.reserved(now, nil)}
		v.State, v.Reason = "idle", ""
		if r, busy := s.time.Free(now, now, now+1, ""); !busy {
			v.State, v.Reason = "reserved", describe(&r)
		}
		for _, r := range s.time.Closed() {
			if _, hit := timeline.Overlap(&r, now, now+1); hit {
				v.State, v.Reason = "reserved", describe(&r)
			}
		}
		for _, l := range n.leasesOn(s) {
			if l.seen() {
				v.State, v.Reason, v.Job, v.Until = "running", l.cut, l.job, l.end
				if why := n.standing(l); why != "" {
					v.Reason = why
				} else if l.plan.Members > 0 && l.cut == "" {
					v.Reason = fmt.Sprintf("member %d of %d", l.plan.Member, l.plan.Members)
				}
			}
		}
		switch why, ok := n.usable(s); {
		case ok:
			if crowded := n.crowded(now, s); v.State == "idle" && crowded != "" {
				v.Reason = crowded
			}
		case s.quarantined:
			v.State, v.Reason = "quarantined", s.barred()
		case s.fault != nil:
			v.State, v.Reason = "quarantined", s.fault.Text
		case why == shortOfMemory:
			if v.State == "idle" {
				v.State, v.Reason = "reserved", why+": "+n.memory.words
			}
		default:
			v.State, v.Reason = "unconfirmed", why
		}
		out = append(out, v)
	}
	return out
}

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
	out := make([]Lease, 0, len(n.leases))
	for _, l := range n.byToken() {
		out = append(out, Lease{
			Token: l.token, Job: l.job, Slice: l.slice, Also: slices.Clone(l.also), Range: l.rng, Start: l.start, End: l.end,
			Started: l.seen(), Ended: l.vacated(), Settled: l.settled(), Stuck: l.stuck(),
		})
	}
	return out
}

// Epoch is the node's boot count.
func (n *Node) Epoch() uint32 { return n.epoch }

var _ protocol.Actor = (*Node)(nil)
