package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/timeline"
)

// cut is a lease that a reservation takes time from: it ends at end, or, withdrawn, never begins.
type cut struct {
	lease     *lease
	end       quantity.Instant
	withdrawn bool
}

// cuts are the leases on a slice that r cuts short if it may. A running subjob is cut where the reservation begins, or a
// moment from now if it has begun; what has not begun is withdrawn.
func (n *Node) cuts(now quantity.Instant, s *slice, r *protocol.Reservation) (list []cut) {
	for _, l := range n.leasesOn(s) {
		o, hit := timeline.Overlap(r, max(now, l.start), l.end)
		if !hit {
			continue
		}
		if !l.issued() {
			list = append(list, cut{l, o.Start, true})
			continue
		}
		end := o.Start
		if end <= now {
			end = now.Add(n.cfg.CutGrace)
		}
		if end < l.end { // else it is over by then
			list = append(list, cut{l, end, false})
		}
	}
	return list
}

// makeWay takes sold time back for a reservation that may cut it short. The homes learn it from the Results.
func (n *Node) makeWay(now quantity.Instant, s *slice, r *protocol.Reservation, out *protocol.Out) {
	cause := "time taken (" + r.Kind.String() + ")"
	if r.Source != "" {
		cause += " by " + r.Source
	}
	for _, c := range n.cuts(now, s, r) {
		if c.withdrawn {
			n.end(now, c.lease, ownResult(now, c.lease, job.Stopped, "withdrawn: "+cause+" from "+clock(c.end)), true, out)
			continue
		}
		n.fact(out, protocol.Fact{Kind: protocol.Truncated, Token: c.lease.token, Job: c.lease.job, End: c.end, Text: cause})
		n.sendDeadline(c.lease, out)
	}
	for i := len(n.grants) - 1; i >= 0; i-- {
		g := n.grants[i]
		if _, hit := timeline.Overlap(r, max(now, g.start), g.end); hit && touches(s.id, g.slice, g.also) {
			n.dropGrant(g.token)
		}
	}
}

// Cuts says which subjobs a reservation would cut short or withdraw, in order of token, and changes nothing. An error is the
// one with which it would be refused.
func (n *Node) Cuts(now quantity.Instant, r protocol.Reservation) ([]status.Cut, error) {
	if r.Start == 0 {
		r.Start = now
	}
	targets, err := n.reservable(now, &r)
	if err != nil {
		return nil, err
	}
	var list []status.Cut
	for _, s := range targets {
		for _, c := range n.cuts(now, s, &r) {
			if len(c.lease.also) > 0 && slices.ContainsFunc(list, func(o status.Cut) bool { return o.Token == c.lease.token }) {
				continue // it holds several slices
			}
			list = append(list, status.Cut{
				Job: c.lease.job, Token: c.lease.token, Slice: c.lease.slice, Slices: 1 + len(c.lease.also), Range: c.lease.rng,
				Started: c.lease.at,
				End:     c.lease.end, At: c.end, Withdrawn: c.withdrawn || !c.lease.seen(),
			})
		}
	}
	slices.SortFunc(list, func(a, b status.Cut) int { return a.Token.Compare(b.Token) })
	return list, nil
}
