package wire

import (
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/edge/wire/coder"
)

// wishesFields makes what writes and reads Wishes. What these are made of is in no other body.
func wishesFields() func(*coder.Coder, *protocol.Wishes) {
	pair := func(c *coder.Coder, p *reclaim.Pair) {
		coder.Text(c, 1, &p.Name)
		coder.Text(c, 2, &p.Value)
	}
	taint := func(c *coder.Coder, t *reclaim.Taint) {
		coder.Text(c, 1, &t.Key)
		coder.Text(c, 2, &t.Value)
		coder.Text(c, 3, &t.Effect)
	}
	takeable := func(c *coder.Coder, s *reclaim.Slice) {
		coder.Text(c, 1, &s.ID)
		coder.Signed(c, 2, &s.Notice)
		coder.Text(c, 3, &s.Pool)
	}
	resource := func(c *coder.Coder, r *reclaim.Resource) {
		coder.Text(c, 1, &r.Name)
		coder.Signed(c, 2, &r.N)
		coder.Texts(c, 3, &r.Slices)
		coder.Numbers(c, 4, &r.Others)
	}
	ask := func(c *coder.Coder, a *reclaim.Ask) {
		coder.Text(c, 1, &a.Resource)
		coder.Signed(c, 2, &a.N)
	}
	tenant := func(c *coder.Coder, t *reclaim.Tenant) {
		coder.Text(c, 1, &t.Slice)
		coder.List(c, 2, &t.Asks, ask)
		coder.Instant(c, 3, &t.Began)
		coder.Signed(c, 4, &t.Limit)
		coder.Instant(c, 5, &t.End)
		coder.Boolean(c, 6, &t.Leaving)
	}
	amount := func(c *coder.Coder, a *reclaim.Amount) {
		coder.Signed(c, 1, &a.N)
		coder.Signed(c, 2, &a.Places)
	}
	capacity := func(c *coder.Coder, x *reclaim.Capacity) {
		coder.Text(c, 1, &x.Name)
		coder.Value(c, 2, &x.Amount, amount)
	}
	takes := func(c *coder.Coder, u *reclaim.Use) {
		coder.Signed(c, 1, &u.Counter)
		coder.Signed(c, 2, &u.N)
	}
	device := func(c *coder.Coder, d *reclaim.Device) {
		coder.Text(c, 1, &d.Name)
		coder.Boolean(c, 2, &d.Here)
		coder.Boolean(c, 3, &d.Barred)
		coder.Boolean(c, 4, &d.Failing)
		coder.Texts(c, 5, &d.Classes)
		coder.List(c, 6, &d.Attributes, pair)
		coder.List(c, 7, &d.Capacities, capacity)
		coder.List(c, 8, &d.Uses, takes)
		coder.Text(c, 9, &d.Slice)
		coder.Enum(c, 10, &d.Holder, reclaim.Others)
		coder.Instant(c, 11, &d.End)
	}
	pool := func(c *coder.Coder, p *reclaim.Pool) {
		coder.Text(c, 1, &p.Name)
		coder.Text(c, 2, &p.Driver)
		coder.Numbers(c, 3, &p.Total)
		coder.List(c, 4, &p.Devices, device)
		coder.Numbers(c, 5, &p.Layout)
	}
	machine := func(c *coder.Coder, m *reclaim.Machine) {
		coder.Text(c, 1, &m.Name)
		coder.List(c, 2, &m.Labels, pair)
		coder.List(c, 3, &m.Taints, taint)
		coder.Boolean(c, 4, &m.Shut)
		coder.List(c, 5, &m.Slices, takeable)
		coder.List(c, 6, &m.Resources, resource)
		coder.List(c, 7, &m.Tenants, tenant)
		coder.List(c, 8, &m.Pools, pool)
	}
	term := func(c *coder.Coder, t *reclaim.Term) {
		coder.Enum(c, 1, &t.Kind, reclaim.HasCapacity)
		coder.Text(c, 2, &t.Domain)
		coder.Text(c, 3, &t.Name)
		coder.Text(c, 4, &t.Op)
		coder.Text(c, 5, &t.Value)
		coder.Value(c, 6, &t.Amount, amount)
	}
	alike := func(c *coder.Coder, a *reclaim.Alike) {
		coder.Signed(c, 1, &a.Number)
		coder.Text(c, 2, &a.Domain)
		coder.Text(c, 3, &a.Name)
	}
	choice := func(c *coder.Coder, x *reclaim.Choice) {
		coder.Signed(c, 1, &x.N)
		coder.Text(c, 2, &x.Class)
		coder.List(c, 3, &x.Terms, term)
		coder.List(c, 4, &x.Alike, alike)
		coder.Boolean(c, 5, &x.Odd)
	}
	request := func(c *coder.Coder, r *reclaim.Request) {
		coder.List(c, 1, &r.Choices, choice)
	}
	want := func(c *coder.Coder, x *reclaim.Claim) {
		coder.Text(c, 1, &x.Key)
		coder.List(c, 2, &x.Requests, request)
	}
	rule := func(c *coder.Coder, r *reclaim.Rule) {
		coder.Text(c, 1, &r.Key)
		coder.Text(c, 2, &r.Op)
		coder.Texts(c, 3, &r.Values)
	}
	rules := func(c *coder.Coder, r *reclaim.Rules) {
		coder.List(c, 1, &r.All, rule)
	}
	toleration := func(c *coder.Coder, t *reclaim.Toleration) {
		coder.Text(c, 1, &t.Key)
		coder.Text(c, 2, &t.Op)
		coder.Text(c, 3, &t.Value)
		coder.Text(c, 4, &t.Effect)
	}
	where := func(c *coder.Coder, w *reclaim.Where) {
		coder.List(c, 1, &w.Labels, pair)
		coder.List(c, 2, &w.AnyOf, rules)
		coder.Boolean(c, 3, &w.Restricted)
		coder.List(c, 4, &w.Tolerates, toleration)
	}
	wish := func(c *coder.Coder, w *reclaim.Wish) {
		coder.Text(c, 1, &w.ID)
		coder.Text(c, 2, &w.Who)
		coder.Text(c, 3, &w.Equiv.Owner)
		coder.Text(c, 4, &w.Equiv.Shape)
		coder.Instant(c, 5, &w.Since)
		coder.Boolean(c, 6, &w.Blocked)
		coder.List(c, 7, &w.Asks, ask)
		coder.List(c, 8, &w.Claims, want)
		coder.Value(c, 9, &w.Where, where)
		coder.Text(c, 10, &w.Group)
		coder.Signed(c, 11, &w.Part)
		coder.Text(c, 12, &w.Nominated)
	}
	dropped := func(c *coder.Coder, d *protocol.Dropped) {
		coder.Text(c, 1, &d.ID)
		coder.Boolean(c, 2, &d.Served)
	}
	part := func(c *coder.Coder, p *reclaim.Part) {
		coder.Signed(c, 1, &p.N)
		coder.Texts(c, 2, &p.Bound)
		coder.Value(c, 3, &p.Like, wish)
	}
	group := func(c *coder.Coder, g *reclaim.Group) {
		coder.Text(c, 1, &g.ID)
		coder.Texts(c, 2, &g.Owners)
		coder.Instant(c, 3, &g.Since)
		coder.Boolean(c, 4, &g.Admitted)
		coder.Text(c, 5, &g.Queue)
		coder.Signed(c, 6, &g.Rank)
		coder.Instant(c, 7, &g.From)
		coder.Instant(c, 8, &g.Until)
		coder.List(c, 9, &g.Parts, part)
	}
	return func(c *coder.Coder, b *protocol.Wishes) {
		coder.List(c, 1, &b.Machines, machine)
		coder.Texts(c, 2, &b.Lost)
		coder.List(c, 3, &b.Wishes, wish)
		coder.List(c, 4, &b.Dropped, dropped)
		coder.List(c, 5, &b.Groups, group)
		coder.Texts(c, 6, &b.Disbanded)
	}
}
