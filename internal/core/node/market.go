package node

import (
	"sluice.dev/sluice/internal/core/federation/floor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/holds"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/memory"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// The node's side of its market (mechanism laminar): jobs that wait negotiate here for time that is free now or will be, and what they win
// is held for their homes like any other grant.

// owner is what the floor of a node sees of it.
type owner struct {
	inventory *inventory.Inventory
	holds     *holds.Holds
	memory    *memory.Host
	record    *record.Recorder
	cfg       *Config
}

func (o *owner) Usable(id job.SliceID) bool {
	_, ok := o.inventory.Record(id).Usable()
	return ok
}

func (o *owner) Unsold(now quantity.Instant, id job.SliceID, out []protocol.Gap) []protocol.Gap {
	s := o.inventory.Record(id)
	if _, ok := s.Usable(); !ok || s.Full() {
		return out[:0]
	}
	out, _ = s.Gaps(now, o.cfg.Horizon, o.cfg.MinGap, out[:0])
	return out
}

// Sell holds what was won, long enough for its home to say yes to it.
func (o *owner) Sell(now quantity.Instant, a floor.Award, out *protocol.Out) {
	s := o.inventory.Record(a.Slice)
	if _, free := s.Free(now, max(now, a.Start), a.End, ""); !free {
		return // it went to a probe in this very step
	}
	peak := trp.Peak{Mean: a.Demand[trp.Memory]}
	if o.memory.Overcrowded(now, memory.Piece{From: a.Start, To: a.End, Peak: peak, Slice: a.Slice}) != "" {
		return // what was sold of another slice in this very step left too little
	}
	h := o.holds.Make(now, holds.Hold{Job: a.Job, Slice: a.Slice, Start: a.Start, End: a.End, Peak: peak}, o.cfg.GrantTTL)
	o.record.Send(out, protocol.Message{Kind: protocol.Winning, To: a.Home, Job: a.Job, Session: a.Session, Body: &protocol.Prize{
		Place: protocol.Place{
			Token: h.Token, Node: o.cfg.ID, Slice: s.Bearing(max(s.Desc().Bears, peak.Mean)), Start: h.Start, End: h.End, Expiry: h.Expiry,
		},
		Plan:  protocol.Plan{Run: a.Run, Wall: a.Wall, Window: a.Window, Round: a.Round, Option: a.Option},
		Range: a.Range, Demand: a.Demand, Speed: a.Speed, Bid: a.Bid,
	}})
}

// visited handles homes' descriptions of jobs that negotiate here.
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
	if n.market == nil || !n.inventory.Confirmed() {
		return quantity.Never
	}
	return n.market.Sell(now, out)
}
