package bidder

import (
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

// Honest changes nothing.
type Honest struct{}

// Change implements Strategy.
func (Honest) Change(*Turn) {}

// Inflate declares the highest score for everything.
type Inflate struct{}

// Change implements Strategy.
func (Inflate) Change(t *Turn) { t.each(func(v *protocol.Variant) { v.Score = score.One }) }

// Shade multiplies declared scores by so many parts per thousand, up to the highest. A search for the best response to
// others tries its numbers.
type Shade int64

// Change implements Strategy.
func (s Shade) Change(t *Turn) {
	t.each(func(v *protocol.Variant) { v.Score = min(score.One, quantity.MulDiv(v.Score, int64(s), 1000)) })
}

// Understate multiplies declared run times by so many parts per thousand, so that more of its work seems to fit.
type Understate int64

// Change implements Strategy.
func (s Understate) Change(t *Turn) {
	t.each(func(v *protocol.Variant) {
		run := max(1, time.Duration(quantity.MulDiv(int64(v.Run), int64(s), 1000)))
		v.Run, v.Wall = run, v.Wall-v.Run+run
	})
}

// TinyMemory declares a byte.
type TinyMemory struct{}

// Change implements Strategy.
func (TinyMemory) Change(t *Turn) { t.each(func(v *protocol.Variant) { v.Demand = trp.Vector{1} }) }

// Hoard asks for every window as a whole, for the least of the pieces that it would have cut and at the score of the first,
// which is the largest.
type Hoard struct{}

// Change implements Strategy.
func (Hoard) Change(t *Turn) {
	honest := t.Answers[0].Body.(*protocol.Proposal).Variants
	var out []protocol.Variant
	for i := range t.Call.Windows {
		w := &t.Call.Windows[i]
		var least *protocol.Variant
		declared := int64(0)
		for j := range honest {
			v := &honest[j]
			if v.Window != w.Window {
				continue
			}
			declared = max(declared, v.Score)
			if least == nil || v.Range.Len() < least.Range.Len() {
				least = v
			}
		}
		if least == nil {
			continue
		}
		v := *least
		room := max(v.Wall, w.End.Sub(w.Start)-t.Spec.Launch.Grace)
		v.Start, v.Score, v.Run, v.Wall = w.Start, declared, v.Run+room-v.Wall, room
		out = append(out, v)
	}
	t.Answers[0].Body.(*protocol.Proposal).Variants = out
}

// Snipe answers as long before the round closes as it would have thought otherwise, and a millisecond.
type Snipe struct{}

// Change implements Strategy.
func (Snipe) Change(t *Turn) {
	t.Think = max(t.Think, t.Call.Closes.Sub(t.Now)-t.Think-time.Millisecond)
}

// Slow answers when the round is over: after twice the time that it has.
type Slow struct{}

// Change implements Strategy.
func (Slow) Change(t *Turn) { t.Think = max(t.Think, 2*t.Call.Closes.Sub(t.Now)) }

// Silent says nothing.
type Silent struct{}

// Change implements Strategy.
func (Silent) Change(t *Turn) { t.Answers = nil }

// Collude lets the first of its agents that hears of a round bid alone, with the highest score; the others say that they are
// not interested.
type Collude struct {
	round  uint64
	bidder string
}

// Change implements Strategy.
func (c *Collude) Change(t *Turn) {
	name := string(t.Spec.Name)
	if c.round != t.Call.Round && len(t.Answers[0].Body.(*protocol.Proposal).Variants) > 0 {
		c.round, c.bidder = t.Call.Round, name
	}
	if c.bidder != name || c.round != t.Call.Round {
		t.Answers[0].Body.(*protocol.Proposal).Variants = nil
		return
	}
	Inflate{}.Change(t)
}
