package wire

import (
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

// sightFields makes what writes and reads a Sight. What it is made of is in no other body.
func sightFields() func(*coder.Coder, *supply.Sight) {
	slice := func(c *coder.Coder, s *supply.Slice) {
		coder.Vector(c, 1, &s.Capacity)
		coder.Signed(c, 2, &s.Speed)
		coder.Text(c, 3, &s.Model)
		coder.Text(c, 4, &s.Profile)
	}
	pool := func(c *coder.Coder, p *supply.Pool) {
		coder.Text(c, 1, &p.Name)
		coder.Signed(c, 2, &p.Most)
		coder.Numbers(c, 3, &p.Lengths)
		coder.Signed(c, 4, &p.Step)
		coder.Signed(c, 5, &p.Idle)
		coder.Signed(c, 6, &p.Start)
		coder.Signed(c, 7, &p.HandOver)
		coder.List(c, 8, &p.Slices, slice)
		coder.Text(c, 9, &p.Paused)
	}
	gap := func(c *coder.Coder, g *supply.Gap) {
		coder.Instant(c, 1, &g.Start)
		coder.Instant(c, 2, &g.End)
		coder.Signed(c, 3, &g.Count)
	}
	pilot := func(c *coder.Coder, p *supply.Pilot) {
		coder.Text(c, 1, &p.Name)
		coder.Enum(c, 2, &p.State, supply.Leaving)
		coder.Signed(c, 3, &p.Length)
		coder.Instant(c, 4, &p.Asked)
		coder.Instant(c, 5, &p.Started)
		coder.Instant(c, 6, &p.Joined)
		coder.Instant(c, 7, &p.Until)
		coder.Instant(c, 8, &p.Expected)
		coder.Instant(c, 9, &p.Idle)
		coder.Boolean(c, 10, &p.Recalled)
	}
	ending := func(c *coder.Coder, e *supply.Ending) {
		coder.Text(c, 1, &e.Name)
		coder.Enum(c, 2, &e.How, supply.Vanished)
		coder.Signed(c, 3, &e.Length)
		coder.Instant(c, 4, &e.Asked)
		coder.Instant(c, 5, &e.Started)
		coder.Instant(c, 6, &e.Joined)
		coder.Instant(c, 7, &e.Ended)
		coder.Text(c, 8, &e.Why)
		coder.Boolean(c, 9, &e.Limited)
	}
	return func(c *coder.Coder, s *supply.Sight) {
		coder.Unsigned(c, 1, &s.Number)
		coder.Value(c, 2, &s.Pool, pool)
		coder.Instant(c, 3, &s.Seen)
		coder.Text(c, 4, &s.Silent)
		coder.Boolean(c, 5, &s.Blind)
		coder.List(c, 6, &s.Gaps, gap)
		coder.List(c, 7, &s.Pilots, pilot)
		coder.List(c, 8, &s.Endings, ending)
	}
}

func orderFields(c *coder.Coder, o *supply.Order) {
	coder.Text(c, 1, &o.Pool)
	coder.Unsigned(c, 2, &o.Number)
	coder.Numbers(c, 3, &o.Ask)
	coder.List(c, 4, &o.Cancel, func(c *coder.Coder, x *supply.Cancel) {
		coder.Text(c, 1, &x.Name)
		coder.Text(c, 2, &x.Why)
	})
	coder.Texts(c, 5, &o.Idle)
	coder.Text(c, 6, &o.Why)
	coder.Instant(c, 7, &o.Next)
}
