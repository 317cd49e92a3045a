package zone

import (
	"maps"
	"slices"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/home/hometest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Plain makes a zone do after every input what the definition says and nothing less: every slice, every claim and every
// waiting job is looked at. It is the oracle of what looks only at changes.
func Plain(z *Zone) {
	p := &plain{z: z}
	z.pass = p.pass
	z.floor = market.NewFloor(z.floorConfig(), (*seller)(z))
	z.floor.Plainly()
	z.planner = backfill.New(z.plannerConfig(), z.floor, (*placer)(z))
}

type plain struct{ z *Zone }

func (p *plain) pass(now quantity.Instant, out *protocol.Out) {
	z := p.z
	hometest.Rearm(z.home, now)
	wake := z.home.Overdue(now, out)
	hometest.Rearm(z.home, now)
	wake = min(wake, z.home.Continue(now, func(j *home.Job, c *protocol.Claim, l *home.Lease) {
		p.stirSlices()
		if s, g := z.following(now, c); s != nil && j.Spec.Extends() {
			z.overrun(now, j, c, l, out)
		} else if s != nil {
			p.continueInto(now, j, c, l, s, g, out)
		}
	}))
	z.wakeAt(now, min(wake, p.market(now, out)), out)
}

func (p *plain) continueInto(now quantity.Instant, j *home.Job, c *protocol.Claim, l *home.Lease, s *slice, g protocol.Gap, out *protocol.Out) {
	z, v := p.z, j.View()
	v.Continues, v.Running = c.Range, v.Running-1
	mine, r := atomizer.Fit(&v, z.floor.Window(&entryOf(j).floor, s.floor.Class(), c.End, g.End))
	if r.Why != atomizer.Interested {
		return
	}
	if z.floor.Elsewhere(now, z.home.Waiting(), &entryOf(j).floor, c) || z.floor.Displaces(now, &entryOf(j).floor, &s.floor, c, g.End, &mine) != nil {
		return
	}
	whole := job.Range{From: c.Range.From, To: mine.Range.To}
	z.home.Extend(now, j, c, l, whole, c.End.Add(mine.Wall), peakOn(&s.view.Slice, j, whole, c.Demand.Max(mine.Demand), c.Plan.Option), out)
}

// stirSlices has every slice's free time computed anew, from all claims, asks and plans there are.
func (p *plain) stirSlices() {
	z := p.z
	for s := range z.offeredSlices() {
		z.floor.InvalidateSlice(&s.floor)
		s.sold, s.asks = nil, nil
		for _, j := range hometest.Busy(z.home) {
			for i := range j.Claims() {
				if c := &j.Claims()[i]; c.Slice == s.id || slices.Contains(c.Also, s.id) {
					s.sold = append(s.sold, sale{c.Token, j, c.Start, c.End})
				}
			}
		}
		for _, a := range z.home.Asks() {
			if a.Slice == s.id || slices.Contains(a.Also, s.id) {
				s.asks = append(s.asks, a)
			}
		}
	}
}

func (p *plain) market(now quantity.Instant, out *protocol.Out) quantity.Instant {
	z := p.z
	z.lapse(now, out)
	var rigid []*backfill.Job
	for _, j := range hometest.Live(z.home) {
		if r := entryOf(j).rigid; r != nil {
			rigid = append(rigid, r)
		}
	}
	z.expireGuests(now)
	for _, name := range slices.Sorted(maps.Keys(z.guests.of)) {
		rigid = append(rigid, &z.guests.of[name].rigid)
	}
	z.planner.Anew(rigid)
	z.keepCaps(now)
	p.stirSlices()
	wake := min(z.planner.Plan(now, out), z.trade(now, out))
	p.stirSlices()
	wake = min(wake, z.floor.Sell(now, z.home.Waiting(), out))
	for s := range z.offeredSlices() { // a refusal may have left one alone meanwhile
		if s.stale > now {
			wake = min(wake, s.stale)
		}
	}
	return min(wake, z.planner.Unanswered(), z.home.Next(now))
}
