package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/score"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// outbidder is a job whose variant for the window behind a running subjob is worth more than that the subjob goes on, or that
// has waited too long; nil if there is none. Who rests now is in no ranking, and not looked at. Agents are not asked: what their jobs may be worth is seen in the round of a
// window that is there.
func (z *Zone) outbidder(now quantity.Instant, st *state, s *slice, c *protocol.Claim, end quantity.Instant, p *atomizer.Piece) *state {
	at := c.End
	more := job.Range{From: c.Range.To, To: p.Range.To}
	v := st.view()
	left := max(1, v.Left())
	mine := tender{job: st, end: at.Add(p.Wall), speed: c.Speed, Variant: protocol.Variant{
		Range: more, Start: at, Run: p.Run, Wall: p.Wall, Demand: p.Demand,
		Score: score.Job{
			Progress: score.Progress(more.Len(), left), Laxity: score.Laxity(st.finish(at, s.class), st.deadline()), Overhead: score.One,
		}.Of(st.Spec.Worth),
	}}
	l, w := lot{slice: s, full: true}, window{start: at, end: end}
	z.relaxed = false
	z.value(at, &mine, &l, &w)
	z.listen(now)
	z.lotAt = 0
	for _, other := range z.hearers(at, &l, &w) {
		if other == st || other.notBefore > now {
			continue
		}
		z.tenders = z.tenders[:0]
		z.propose(at, other, &l, &w)
		starves := z.cfg.Market.Starve >= 0 && other.waited(at) > z.cfg.Market.Starve
		if slices.ContainsFunc(z.tenders, func(t tender) bool { return starves || t.weight > mine.weight }) {
			return other
		}
	}
	return nil
}
