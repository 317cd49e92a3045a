package bidder

import (
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Hostile says everything that an agent must not say: it answers a round many times over, with thousands of variants drawn
// from the edges of every field, honest ones doubled and moved apart among them; it answers rounds that it was not asked
// in, and as a session that is not its own.
type Hostile struct{}

// flood is how many variants one of its answers has.
const flood = 2000

// Change implements Strategy.
func (Hostile) Change(t *Turn) {
	honest := t.Answers[0].Body.(*protocol.Proposal).Variants
	draw := prng.New(prng.Name("hostile"), prng.Name(string(t.Spec.Name)), t.Call.Round)
	bad := make([]protocol.Variant, 0, flood+2*len(honest))
	for range flood {
		bad = append(bad, edge(&draw, t))
	}
	for _, v := range honest { // the same work again, apart from itself in time, and under an id that is taken
		bad = append(bad, v)
		v.Start = v.Start.Add(v.Wall)
		bad = append(bad, v)
	}
	draw.Shuffle(len(bad), func(i, j int) { bad[i], bad[j] = bad[j], bad[i] })
	round := t.Call.Round
	t.Answers = []protocol.Message{
		{Kind: protocol.Answer, Body: &protocol.Proposal{Round: round, Variants: bad}, Session: t.Session + 1},
		{Kind: protocol.Answer, Body: &protocol.Proposal{Round: round + 1, Variants: bad}},
		{Kind: protocol.Answer, Body: &protocol.Proposal{Round: math.MaxUint64, Variants: bad}},
		{Kind: protocol.Answer, Body: &protocol.Proposal{Round: round, Variants: bad}},
		{Kind: protocol.Answer, Body: &protocol.Proposal{Round: round, Variants: honest}},
		{Kind: protocol.Answer, Body: &protocol.Proposal{Round: round, Variants: bad}},
	}
}

// edge is a variant with every field at one of its edges, or beyond.
func edge(draw *prng.Stream, t *Turn) protocol.Variant {
	whole := []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, 1, t.Spec.Grid, t.Spec.Total - 1, t.Spec.Total, t.Spec.Total + 1,
		math.MaxInt64 / 2, math.MaxInt64}
	any := func() int64 { return whole[draw.IntN(len(whole))] }
	v := protocol.Variant{
		ID: uint32(draw.IntN(3)), Window: draw.Uint64() % 64, Range: job.Range{From: any(), To: any()}, Start: quantity.Instant(any()),
		Run: time.Duration(any()), Wall: time.Duration(any()), Demand: trp.Vector{quantity.Amount(any())}, Score: any(),
	}
	if n := len(t.Call.Windows); n > 0 && draw.IntN(2) == 0 { // one that is on offer, so that more is looked at
		w := &t.Call.Windows[draw.IntN(n)]
		v.Window = w.Window
		v.Start = []quantity.Instant{w.Start, w.Start.Add(time.Second), w.End, v.Start}[draw.IntN(4)]
	}
	if draw.IntN(2) == 0 {
		v.Score = int64(draw.IntN(1_000_001))
	}
	if draw.IntN(8) == 0 {
		v.Option = string(slices.Repeat([]byte{'x'}, draw.IntN(1000)))
	}
	return v
}
