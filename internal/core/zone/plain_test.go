package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/zone/bets"
	"sluice.dev/sluice/internal/core/zone/sites"
)

// Plain makes a zone do after every input what the definition says and nothing less: every slice, every claim and every
// waiting job is looked at, and the floor is told that each of them may be another. It is the oracle of what looks only at changes. That
// the floor sells by changes what it would sell by looking at everything is tested below it, in market/interest and market/auction.
func Plain(z *Zone) {
	p := &plain{z: z}
	z.pass = p.pass
	z.assemble()
}

type plain struct{ z *Zone }

func (p *plain) pass(now quantity.Instant, out *protocol.Out) {
	z := p.z
	rearmLedger(z.home, now)
	wake := z.home.Settle().Overdue(now, out)
	rearmLedger(z.home, now)
	wake = min(wake, z.home.Settle().Continue(now, func(j *home.Job, c *protocol.Claim, st *home.ClaimState) {
		p.stirSlices()
		if s, g := following(now, c, z.sites, z.floor); s != nil && j.Spec.Extends() {
			z.overrun(now, j, c, st, out)
		} else if s != nil {
			p.continueInto(now, j, c, st, s, g, out)
		}
	}))
	z.wakeAt(now, min(wake, p.market(now, out)), out)
}

func (p *plain) continueInto(now quantity.Instant, j *home.Job, c *protocol.Claim, st *home.ClaimState, s *sites.Slice, g protocol.Gap,
	out *protocol.Out) {
	z, v := p.z, j.View()
	v.Continues, v.Running = c.Range, v.Running-1
	mine, r := atomizer.Fit(&v, z.floor.Estimator().Window(&entryOf(j).floor, s.Class(), c.End, g.End))
	if r.Why != atomizer.Interested {
		return
	}
	if z.floor.Elsewhere(now, z.home.Book().Waiting(), &entryOf(j).floor, c) || z.floor.Displaces(now, &entryOf(j).floor, s.Market(), c,
		g.End,
		&mine) != nil {
		return
	}
	whole := job.Range{From: c.Range.From, To: mine.Range.To}
	z.home.Claims().Extend(now, j, c, st, whole, c.End.Add(mine.Wall), peakOn(&s.View().Slice, j, whole, c.Demand.Max(mine.Demand),
		c.Plan.Option),
		out)
}

// stirSlices has every slice's free time computed anew, from all claims, asks and plans there are.
func (p *plain) stirSlices() {
	z := p.z
	z.sites.Restate(func(id job.SliceID) (sold []sites.Sale, asks []*home.Ask) {
		for _, j := range busyOf(z.home) {
			for i := range j.Claims() {
				if c := &j.Claims()[i]; c.Slice == id || slices.Contains(c.Also, id) {
					sold = append(sold, sites.Sale{Sale: bets.Sale{Token: c.Token, Start: c.Start, End: c.End}, Job: j})
				}
			}
		}
		for _, a := range z.home.Claims().Asks() {
			if a.Slice == id || slices.Contains(a.Also, id) {
				asks = append(asks, a)
			}
		}
		return sold, asks
	})
}

func (p *plain) market(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z := p.z
	z.lapse(now, out)
	var rigid []*backfill.Job
	for _, j := range liveOf(z.home) {
		if r := entryOf(j).rigid; r != nil {
			rigid = append(rigid, r)
		}
	}
	z.guests.Expire(now)
	rigid = append(rigid, z.guests.All()...)
	z.planner.Anew(rigid)
	z.keepCaps(now)
	p.stirSlices()
	wake := min(z.planner.Plan(now, out), z.trade(now, out))
	p.stirSlices()
	for s := range z.sites.All() {
		z.floor.InvalidateSlice(s.Market())
	}
	for _, j := range liveOf(z.home) {
		z.floor.InvalidateJob(&entryOf(j).floor)
	}
	wake = min(wake, z.floor.Sell(now, z.home.Book().Waiting(), out))
	return min(wake, z.sites.Next(), z.planner.Unanswered(), z.home.Next(now))
}
