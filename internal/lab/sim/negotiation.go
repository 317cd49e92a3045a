package sim

import (
	gaps "sluice.dev/sluice/internal/core/ends"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/status"
)

// negotiator is a zone that counts what its market does. A crash forgets the counts.
type negotiator interface {
	Negotiation() status.Negotiation
	Learned() (status.Foresight, gaps.Stats)
}

// negotiated is what the markets of all zones so far have done.
type negotiated struct {
	// past are the counts of zones that have crashed.
	past   status.Negotiation
	told   status.Foresight
	awards int64
	weight float64
}

// forget keeps the counts of a zone that crashes.
func (n *negotiated) forget(zone protocol.Actor) {
	z, ok := zone.(negotiator)
	if !ok {
		return
	}
	c, p := z.Negotiation(), &n.past
	p.Rounds, p.Calls, p.Answers, p.Missed = p.Rounds+c.Rounds, p.Calls+c.Calls, p.Answers+c.Answers, p.Missed+c.Missed
	p.Variants, p.Denied, p.Withdrawn = p.Variants+c.Variants, p.Denied+c.Denied, p.Withdrawn+c.Withdrawn
	t, _ := z.Learned()
	n.told.Waits, n.told.Sooner, n.told.Later = n.told.Waits+t.Waits, n.told.Sooner+t.Sooner, n.told.Later+t.Later
	p.Value, p.Bound, p.Regret = p.Value+c.Value, p.Bound+c.Bound, p.Regret+c.Regret
}

// sold counts a subjob that was bid for.
func (n *negotiated) sold(f *protocol.Fact) {
	if f.Kind != protocol.Claimed {
		return
	}
	if b := f.Body.(*protocol.Sale).Bid; b != nil {
		n.awards++
		n.weight += float64(b.Weight)
	}
}
