package node

import (
	"cmp"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/timeline"
)

// Slices returns every slice as people see it, in order of id. The values are the caller's.
func (n *Node) Slices(now quantity.Instant) []status.Slice {
	out := make([]status.Slice, 0, len(n.inventory.All()))
	for _, s := range n.inventory.All() {
		if n.inventory.Confirmed() && !s.Present() && !s.Durable() {
			continue
		}
		v := status.Slice{Slice: s.Desc(), Node: n.cfg.ID, Reservations: s.Reserved(now, nil)}
		n.describe(now, s, &v)
		out = append(out, v)
	}
	return out
}

// describe says what a slice is doing.
func (n *Node) describe(now quantity.Instant, s *inventory.Slice, v *status.Slice) {
	v.State, v.Reason = "idle", ""
	if r, busy := s.Free(now, now, now+1, ""); !busy {
		v.State, v.Reason = "reserved", timeline.Describe(&r)
	}
	for _, r := range s.Closed() {
		if _, hit := timeline.Overlap(&r, now, now+1); hit {
			v.State, v.Reason = "reserved", timeline.Describe(&r)
		}
	}
	if x := s.Stay(); x != nil && x.Leaving == "" && v.State == "idle" {
		v.Reason = fmt.Sprintf("a program of job %s stays there and waits for its next subjob", x.Job)
	}
	for _, l := range n.leases.On(s) {
		if !l.Seen() {
			continue
		}
		t := l.Terms()
		v.State, v.Reason, v.Job, v.Until = "running", t.Text, t.Job, t.End
		if why := n.pressure.Explain(l); why != "" {
			v.Reason = why
		} else if t.Plan.Members > 0 && t.Text == "" {
			v.Reason = fmt.Sprintf("member %d of %d", t.Plan.Member, t.Plan.Members)
		}
	}
	c := s.Condition()
	switch why, ok := s.Usable(); {
	case ok:
		if crowded := n.memory.Crowded(now, s); v.State == "idle" && crowded != "" {
			v.Reason = crowded
		}
	case c.Quarantined:
		v.State, v.Reason = "quarantined", c.Explain()
	case c.Fault != nil:
		v.State, v.Reason = "quarantined", c.Fault.Text
	case why == inventory.ShortOfMemory:
		if v.State == "idle" {
			v.State, v.Reason = "reserved", why+": "+n.pressure.Words()
		}
	case why == inventory.KeepsRoom:
		if v.State == "idle" {
			v.State, v.Reason = "reserved", why+": "+n.pressure.Kept()
		}
	case s.Stay() != nil && s.Stay().Leaving != "":
		if v.State == "idle" {
			v.State, v.Reason = "reserved", why
		}
	default:
		v.State, v.Reason = "unconfirmed", why
	}
}

// Cuts says which subjobs a reservation would cut short or withdraw, in order of token, and changes nothing. An error is the
// one with which it would be refused.
func (n *Node) Cuts(now quantity.Instant, r protocol.Reservation) ([]status.Cut, error) {
	r.Start = cmp.Or(r.Start, now)
	targets, err := n.reservations.Reservable(now, &r)
	if err != nil {
		return nil, err
	}
	var list []status.Cut
	for _, s := range targets {
		for _, c := range n.runner.Truncations(now, s, &r) {
			t := c.Terms()
			if len(t.Also) > 0 && slices.ContainsFunc(list, func(o status.Cut) bool { return o.Token == t.Token }) {
				continue // it holds several slices
			}
			list = append(list, status.Cut{
				Job: t.Job, Token: t.Token, Slice: t.Slice, Slices: 1 + len(t.Also), Range: t.Range, Started: c.Started(),
				End: t.End, At: c.End, Withdrawn: c.Withdrawn || !c.Seen(),
			})
		}
	}
	slices.SortFunc(list, func(a, b status.Cut) int { return a.Token.Compare(b.Token) })
	return list, nil
}

// Strain is the memory of the node's host in numbers, Airlock what the node makes of it, and did of late, AirlockSteps what was done to a
// life of a job for its sake.
func (n *Node) Strain(now quantity.Instant) status.Strain { return n.pressure.Strain(now) }

// Airlock see Strain.
func (n *Node) Airlock(now quantity.Instant) status.Airlock { return n.pressure.Airlock(now, n.cfg.ID) }

// AirlockSteps see Strain.
func (n *Node) AirlockSteps(id job.ID, g job.Generation) []status.AirlockStep {
	return n.pressure.AirlockSteps(n.cfg.ID, id, g)
}

// Remaining is how many subjobs the machine has not handed over: leases whose result their home has not settled.
func (n *Node) Remaining() int { return n.leases.Remaining() }

// Reclaims is who waits for devices that this node's subjobs use, and what it decided for them of late.
func (n *Node) Reclaims(now quantity.Instant) status.Reclaims {
	r := n.giving.Reclaims(now, soldBy(n))
	for i := range r.Wishes {
		r.Wishes[i].Node = n.cfg.ID
	}
	for i := range r.Steps {
		r.Steps[i].Node = n.cfg.ID
	}
	return r
}

// HostWaits are the waits that are over, of workloads outside Sluice for what subjobs of this node had, with numbers above after.
func (n *Node) HostWaits(after uint64) []status.HostWait {
	list := n.giving.Waits(after)
	for i := range list {
		list[i].Node = n.cfg.ID
	}
	return list
}

// Neighbours are this node's subjobs for the others of its machine, with what they use. It changes nothing, and may be called between any
// two steps.
func (n *Node) Neighbours(uses []protocol.Use) []protocol.Neighbour {
	return n.pressure.Neighbours(uses)
}
