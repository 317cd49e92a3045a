package zone

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone/sites"
)

// Running subjobs bid for the window that follows their own (docs/ARCHITECTURE.md, windows): of the jobs that asked for it, and of rigid
// jobs whose overrun extends.

// following is the free time that begins where a claim ends, empty if there is none.
func following(now quantity.Instant, c *protocol.Claim, on *sites.Sites, floor *market.Floor) (*sites.Slice, protocol.Gap) {
	if s := on.FindOffered(c.Slice); s != nil {
		for _, g := range floor.Unsold(s.Market(), now) {
			if max(g.Start, now) == c.End && g.End > now {
				return s, g
			}
		}
	}
	return nil, protocol.Gap{}
}

// overrun moves a rigid job's end by a quarter of its walltime, as far as nothing else is reserved behind it.
func (z *Zone) overrun(now quantity.Instant, j *home.Job, c *protocol.Claim, st *home.ClaimState, out *protocol.Out) {
	_, g := following(now, c, z.sites, z.floor)
	if end := min(c.End.Add(max(10*time.Second, j.Spec.WalltimeAt(c.Speed)/4)), g.End); end > c.End {
		z.home.Claims().Extend(now, j, c, st, c.Range, end, trp.Peak{}, out)
	}
}

// continueInto gives the running job the window behind its own if the policy prefers it to every waiting job that could
// use that window.
func (z *Zone) continueInto(now quantity.Instant, j *home.Job, c *protocol.Claim, st *home.ClaimState, out *protocol.Out) {
	s, g := following(now, c, z.sites, z.floor)
	if s == nil {
		return
	}
	w := z.floor.Estimator().Window(&entryOf(j).floor, s.Class(), c.End, g.End)
	w.End = min(w.End, s.Book().Until(c.Token))
	v := j.View()
	v.Continues, v.Running = c.Range, v.Running-1
	p, r := atomizer.Fit(&v, w)
	// The grace is already at the end of the lease; it moves along.
	if r.Why != atomizer.Interested || z.floor.Elsewhere(now, z.home.Book().Waiting(), &entryOf(j).floor, c) {
		return
	}
	if z.floor.Displaces(now, &entryOf(j).floor, s.Market(), c, g.End, &p) != nil {
		return
	}
	whole := job.Range{From: c.Range.From, To: p.Range.To}
	peak := peakOn(&s.View().Slice, j, whole, c.Demand.Max(p.Demand), c.Plan.Option)
	z.home.Claims().Extend(now, j, c, st, whole, c.End.Add(p.Wall), peak, out)
}
