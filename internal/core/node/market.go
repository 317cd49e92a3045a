package node

import (
	"sluice.dev/sluice/internal/core/federation/floor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// The node's side of its market (mechanism laminar): jobs that wait negotiate here for time that is free now or will be, and what they win
// is held for their homes like any other grant.

// owner is the node as its floor sees it.
type owner Node

// openMarket makes room for a market, where there is one.
func (n *Node) openMarket() {
	if n.cfg.Market != nil {
		c := *n.cfg.Market
		c.Self, c.Horizon, c.MinWindow = n.self, n.cfg.Horizon, n.cfg.MinGap
		n.market = floor.New(c, (*owner)(n))
	}
}

func (n *owner) Usable(id job.SliceID) bool {
	_, ok := (*Node)(n).usable((*Node)(n).record(id))
	return ok
}

func (n *owner) Unsold(now quantity.Instant, id job.SliceID, out []protocol.Gap) []protocol.Gap {
	s := (*Node)(n).record(id)
	if _, ok := (*Node)(n).usable(s); !ok || s.time.Full() {
		return out[:0]
	}
	out, _ = s.time.Gaps(now, n.cfg.Horizon, n.cfg.MinGap, out[:0])
	return out
}

// Sell holds what was won, long enough for its home to say yes to it.
func (n *owner) Sell(now quantity.Instant, a floor.Award, out *protocol.Out) {
	node := (*Node)(n)
	s := node.record(a.Slice)
	if _, free := s.time.Free(now, max(now, a.Start), a.End, ""); !free {
		return // it went to a probe in this very step
	}
	peak := trp.Peak{Mean: a.Demand[trp.Memory]}
	if node.overcrowds(now, a.Start, a.End, peak, node.hosted(a.Slice, nil), job.Token{}) != "" {
		return // what was sold of another slice in this very step left too little
	}
	g := node.hold(now, grant{from: a.Home, job: a.Job, slice: a.Slice, start: a.Start, end: a.End, unasked: true, peak: peak},
		n.cfg.GrantTTL)
	node.send(out, protocol.Message{Kind: protocol.Winning, To: a.Home, Job: a.Job, Session: a.Session, Body: &protocol.Prize{
		Place: protocol.Place{Token: g.token, Node: n.cfg.ID, Slice: s.bearing(max(s.desc.Bears, peak.Mean)), Start: g.start, End: g.end,
			Expiry: g.expiry},
		Plan: protocol.Plan{Run: a.Run, Wall: a.Wall, Window: a.Window, Round: a.Round, Option: a.Option}, Range: a.Range, Demand: a.Demand,
		Speed: a.Speed, Bid: a.Bid,
	}})
}

// visited takes in what homes say of jobs that negotiate here.
func (n *Node) visited(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	if n.market == nil {
		return
	}
	switch in.Kind {
	case protocol.Visiting:
		if !job.ValidID(in.Job) {
			return
		}
		if !n.market.Enter(now, in.From, in.Job, in.Session, in.Body.(*protocol.Visit)) {
			n.send(out, protocol.Message{Kind: protocol.Parting, To: in.From, Job: in.Job, Session: in.Session})
		}
	case protocol.Parting:
		n.market.Leave(in.Job, in.Session)
	case protocol.Answer:
		n.market.Answer(now, in)
	}
}

// trade has the market offer what has changed. It returns when to look again.
func (n *Node) trade(now quantity.Instant, out *protocol.Out) quantity.Instant {
	if n.market == nil || !n.confirmed {
		return quantity.Never
	}
	return n.market.Sell(now, out)
}
