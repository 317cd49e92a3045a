package zone

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// continuations lets running subjobs bid for the window that follows their own (docs/ARCHITECTURE.md, windows): of the jobs that
// asked for it, and of rigid jobs whose overrun extends. It returns when to look again.
func (z *Zone) continuations(now quantity.Instant, out *protocol.Out) quantity.Instant {
	return z.home.Continue(now, func(j *home.Job, c *protocol.Claim, l *home.Lease) {
		if j.Spec.Extends() {
			z.overrun(now, j, c, l, out)
		} else if z.search == nil {
			z.continueInto(now, j, c, l, out)
		}
	})
}

// following is the free time that begins where a claim ends, empty if there is none.
func (z *Zone) following(now quantity.Instant, c *protocol.Claim) (*slice, protocol.Gap) {
	if s := z.slice(c.Slice); s != nil {
		for _, g := range z.floor.Unsold(&s.floor, now) {
			if max(g.Start, now) == c.End && g.End > now {
				return s, g
			}
		}
	}
	return nil, protocol.Gap{}
}

// overrun moves a rigid job's end by a quarter of its walltime, as far as nothing else is reserved behind it.
func (z *Zone) overrun(now quantity.Instant, j *home.Job, c *protocol.Claim, l *home.Lease, out *protocol.Out) {
	_, g := z.following(now, c)
	if end := min(c.End.Add(max(10*time.Second, j.Spec.WalltimeAt(c.Speed)/4)), g.End); end > c.End {
		z.home.Extend(now, j, c, l, c.Range, end, trp.Peak{}, out)
	}
}

// continueInto gives the running job the window behind its own if the policy prefers it to every waiting job that could
// use that window.
func (z *Zone) continueInto(now quantity.Instant, j *home.Job, c *protocol.Claim, l *home.Lease, out *protocol.Out) {
	s, g := z.following(now, c)
	if s == nil {
		return
	}
	w := z.floor.Window(&entryOf(j).floor, s.floor.Class(), c.End, g.End)
	if b := s.wagerOf(c.Token); b != nil && !b.bet.None() {
		w.End = min(w.End, b.bet.Until) // what it was sold on: it is to be over, and its work saved, by then
	}
	v := j.View()
	v.Continues, v.Running = c.Range, v.Running-1
	p, r := atomizer.Fit(&v, w)
	// The grace is already at the end of the lease; it moves along.
	if r.Why != atomizer.Interested || z.floor.Elsewhere(now, z.home.Waiting(), &entryOf(j).floor, c) {
		return
	}
	if z.floor.Displaces(now, &entryOf(j).floor, &s.floor, c, g.End, &p) != nil {
		return
	}
	whole := job.Range{From: c.Range.From, To: p.Range.To}
	peak := peakOn(&s.view.Slice, j, whole, c.Demand.Max(p.Demand), c.Plan.Option)
	z.home.Extend(now, j, c, l, whole, c.End.Add(p.Wall), peak, out)
}
