package node

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/gang"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/node/holds"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/memory"
	"sluice.dev/sluice/internal/core/node/reservations"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// ask holds time for a zone, or refuses with a reason and a fresh view. The same ask answers the same grant while it
// stands.
func (n *Node) ask(now quantity.Instant, in *protocol.Message, a *protocol.Asking, out *protocol.Out) {
	asked := holds.Question{From: in.From, Ask: a.Ask}
	h, stands := n.holds.Answer(asked)
	if !stands {
		own := n.ownPlace(in.Job, a.Reservation)
		if why := n.refusal(now, in, a, own); why != "" {
			n.offers.Refuse(in, a.Ask, a.Slice, a.Also, why, out)
			return
		}
		h = n.holds.Make(now, holds.Hold{
			Asked: asked, Job: in.Job, Slice: a.Slice, Also: a.Also, Start: a.Start, End: a.End, OwnPlace: own != "",
			Gang: a.Plan.Members > 0, Residence: a.Plan.Residence, Peak: joint.PeakOf(a.Peak, a.Demand),
		}, holdFor(n, a))
	}
	n.send(out, protocol.Message{
		Kind: protocol.Granted, To: in.From, Token: h.Token, Job: h.Job,
		Body: out.Grants.Keep(protocol.Grant{Ask: a.Ask, Slice: h.Slice, Also: h.Also, Start: h.Start, End: h.End, Expiry: h.Expiry}),
	})
}

// ownPlace is the job, if it asks for the place that the zone had reserved for it: that is no obstacle to the job.
func (n *Node) ownPlace(id job.ID, r *protocol.Reservation) job.ID {
	if r == nil {
		return ""
	}
	if r.ID != protocol.OwnPlace {
		if is, s := n.reservations.Of(r.ID); s == nil || is.Kind != protocol.ForRigid || is.Job != id {
			return ""
		}
	}
	return id
}

// holdFor is how long a hold lasts. One for a member of a gang lasts as long as the members behind it need for theirs.
func holdFor(n *Node, a *protocol.Asking) time.Duration {
	return n.cfg.GrantTTL * time.Duration(max(1, min(a.Plan.Members, gang.MostMembers)-a.Plan.Member))
}

// earlierLife is why nothing is sold to an earlier life of a job than the one that a lease stands for here.
const earlierLife = "it is for an earlier life of the job"

// refusal says why the time asked for can't be held, empty if it can.
func (n *Node) refusal(now quantity.Instant, in *protocol.Message, a *protocol.Asking, own job.ID) string {
	switch {
	case !job.ValidID(in.Job):
		return reservations.Unnamed(in.Job)
	case a.Start >= a.End:
		return "the ask ends before it starts"
	case a.End <= now:
		return "the time asked for is over"
	case n.leases.Outlived(in.Job, in.Generation):
		return earlierLife
	case a.Start > now.Add(n.cfg.Horizon):
		return fmt.Sprintf("it starts more than %v ahead, which is as far as this node sells", n.cfg.Horizon)
	}
	all := append([]job.SliceID{a.Slice}, a.Also...)
	for i, id := range all {
		if slices.Contains(all[:i], id) {
			return fmt.Sprintf("%s is asked for twice", id)
		}
	}
	for _, id := range all {
		s := n.inventory.Of(id)
		if s == nil {
			return fmt.Sprintf("%s is not a slice of this node", id)
		}
		if why := s.Refuses(a.Demand); why != "" {
			return why
		}
		if why := n.residents.Refuses(now, s, a); why != "" {
			return why
		}
		if s.Full() {
			return fmt.Sprintf("%s: %d reservations is as many as a slice may have", id, timeline.Max)
		}
		if r, ok := s.Free(now, max(now, a.Start), a.End, own); !ok {
			return fmt.Sprintf("%s: %s", id, timeline.Describe(&r))
		}
	}
	return n.memory.Overcrowded(now, memory.Piece{From: a.Start, To: a.End, Peak: joint.PeakOf(a.Peak, a.Demand), Slice: a.Slice,
		Also: a.Also})
}

// redeem turns a hold into a lease, once. What was redeemed already is confirmed again, with the result if it has ended.
func (n *Node) redeem(now quantity.Instant, in *protocol.Message, w *protocol.Work, out *protocol.Out) {
	if n.runner.Redeemed(in, out) {
		return
	}
	h, found := n.holds.Of(in.Token)
	why := "the token lapsed, or is of an earlier boot of this node"
	if found && h.Job == in.Job {
		why = n.unredeemable(now, &h, in, w)
	}
	if why != "" {
		n.send(out, protocol.Message{
			Kind: protocol.RedeemRefused, To: in.From, Token: in.Token, Job: in.Job, Body: &protocol.Refusal{Slice: w.Slice, Text: why},
		})
		return
	}
	terms := out.Terms.Keep(protocol.Terms{Zone: n.cfg.zone(in), Placement: w.Placement, Rank: w.Rank})
	terms.Slice, terms.Also = h.Slice, h.Also
	n.record.Fact(out, protocol.Fact{
		Kind: protocol.LeaseMade, Token: h.Token, Job: h.Job, Epoch: in.Epoch, Generation: in.Generation.Number(), Body: terms,
	})
	if h.OwnPlace {
		n.withdrawOwn(h.Slice, h.Also, h.Job, h.Start, h.End, out)
	}
	n.runner.Made(h.Token, w.Spec, out)
}

// unredeemable says why a standing hold can't become this lease, empty if it can.
func (n *Node) unredeemable(now quantity.Instant, h *holds.Hold, in *protocol.Message, w *protocol.Work) string {
	switch {
	case w.Slice != h.Slice:
		return fmt.Sprintf("the token is for %s", h.Slice)
	case w.Start < h.Start || w.End > h.End || w.Start >= w.End:
		return fmt.Sprintf("the token is for %s to %s", timeline.Clock(h.Start), timeline.Clock(h.End))
	case w.End <= now:
		return "its time is over"
	case w.Range.Empty():
		return "there is no work in it"
	case w.Spec == nil:
		return "it does not say what to run"
	case n.leases.Outlived(in.Job, in.Generation):
		return earlierLife
	}
	why := ""
	n.inventory.Each(h.Slice, h.Also, func(s *inventory.Slice) {
		if refuses := s.RefusesHeld(w.Demand); refuses != "" {
			why = refuses
		}
	})
	if why == "" && !n.pressure.Honours(now, h.Token) {
		why = fmt.Sprintf("%s: %s", h.Slice, inventory.KeepsRoom)
	}
	if peak := joint.PeakOf(w.Peak, w.Demand); why == "" && (peak.Mean > h.Peak.Mean || peak.Deviation > h.Peak.Deviation) {
		// More than the hold was for.
		why = n.memory.Overcrowded(now, memory.Piece{From: w.Start, To: w.End, Peak: peak, Slice: h.Slice, Also: h.Also, But: h.Token})
	}
	return why
}

// withdrawOwn withdraws the places that were kept for a job on the time it now has.
func (n *Node) withdrawOwn(first job.SliceID, also []job.SliceID, own job.ID, from, to quantity.Instant, out *protocol.Out) {
	n.inventory.Each(first, also, func(s *inventory.Slice) { n.reservations.WithdrawOwn(s, own, from, to, out) })
}

// extend moves a lease's end, if the time is free.
func (n *Node) extend(now quantity.Instant, in *protocol.Message, e *protocol.Extension, out *protocol.Out) {
	why, same := n.runner.Unextendable(now, in, e, out)
	if same {
		return
	}
	if why == "" {
		t := n.leases.Of(in.Token).Terms()
		if e.Peak.Mean != 0 || e.Peak.Deviation != 0 {
			t.Peak = e.Peak
		}
		why = n.memory.Overcrowded(now, memory.Piece{
			From: now, To: e.End, Peak: joint.PeakOf(t.Peak, t.Demand), Slice: t.Slice, Also: t.Also, But: t.Token,
		})
		if why == "" {
			n.runner.Extend(in, e, out)
			n.withdrawOwn(t.Slice, t.Also, t.Job, t.End, e.End, out)
			n.runner.TellExtended(in, e, out)
			return
		}
	}
	n.offers.Refuse(in, e.Ask, e.Slice, nil, why, out)
}
