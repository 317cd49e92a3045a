package wire

import (
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/reclaim"
)

// wishesFields makes what writes and reads Wishes. What these are made of is in no other body.
func wishesFields() func(*coder, *protocol.Wishes) {
	pair := func(c *coder, p *reclaim.Pair) {
		text(c, 1, &p.Name)
		text(c, 2, &p.Value)
	}
	taint := func(c *coder, t *reclaim.Taint) {
		text(c, 1, &t.Key)
		text(c, 2, &t.Value)
		text(c, 3, &t.Effect)
	}
	takeable := func(c *coder, s *reclaim.Slice) {
		text(c, 1, &s.ID)
		signed(c, 2, &s.Notice)
	}
	resource := func(c *coder, r *reclaim.Resource) {
		text(c, 1, &r.Name)
		signed(c, 2, &r.N)
		texts(c, 3, &r.Slices)
		numbers(c, 4, &r.Others)
	}
	ask := func(c *coder, a *reclaim.Ask) {
		text(c, 1, &a.Resource)
		signed(c, 2, &a.N)
	}
	tenant := func(c *coder, t *reclaim.Tenant) {
		text(c, 1, &t.Slice)
		list(c, 2, &t.Asks, ask)
		instant(c, 3, &t.Began)
		signed(c, 4, &t.Limit)
		instant(c, 5, &t.End)
	}
	amount := func(c *coder, a *reclaim.Amount) {
		signed(c, 1, &a.N)
		signed(c, 2, &a.Places)
	}
	capacity := func(c *coder, x *reclaim.Capacity) {
		text(c, 1, &x.Name)
		value(c, 2, &x.Amount, amount)
	}
	takes := func(c *coder, u *reclaim.Use) {
		signed(c, 1, &u.Counter)
		signed(c, 2, &u.N)
	}
	device := func(c *coder, d *reclaim.Device) {
		text(c, 1, &d.Name)
		boolean(c, 2, &d.Here)
		boolean(c, 3, &d.Barred)
		boolean(c, 4, &d.Failing)
		texts(c, 5, &d.Classes)
		list(c, 6, &d.Attributes, pair)
		list(c, 7, &d.Capacities, capacity)
		list(c, 8, &d.Uses, takes)
		text(c, 9, &d.Slice)
		enum(c, 10, &d.Holder, reclaim.Others)
		instant(c, 11, &d.End)
	}
	pool := func(c *coder, p *reclaim.Pool) {
		text(c, 1, &p.Name)
		text(c, 2, &p.Driver)
		numbers(c, 3, &p.Total)
		list(c, 4, &p.Devices, device)
		numbers(c, 5, &p.Layout)
	}
	machine := func(c *coder, m *reclaim.Machine) {
		text(c, 1, &m.Name)
		list(c, 2, &m.Labels, pair)
		list(c, 3, &m.Taints, taint)
		boolean(c, 4, &m.Shut)
		list(c, 5, &m.Slices, takeable)
		list(c, 6, &m.Resources, resource)
		list(c, 7, &m.Tenants, tenant)
		list(c, 8, &m.Pools, pool)
	}
	term := func(c *coder, t *reclaim.Term) {
		enum(c, 1, &t.Kind, reclaim.HasCapacity)
		text(c, 2, &t.Domain)
		text(c, 3, &t.Name)
		text(c, 4, &t.Op)
		text(c, 5, &t.Value)
		value(c, 6, &t.Amount, amount)
	}
	alike := func(c *coder, a *reclaim.Alike) {
		signed(c, 1, &a.Number)
		text(c, 2, &a.Domain)
		text(c, 3, &a.Name)
	}
	choice := func(c *coder, x *reclaim.Choice) {
		signed(c, 1, &x.N)
		text(c, 2, &x.Class)
		list(c, 3, &x.Terms, term)
		list(c, 4, &x.Alike, alike)
		boolean(c, 5, &x.Odd)
	}
	request := func(c *coder, r *reclaim.Request) {
		list(c, 1, &r.Choices, choice)
	}
	want := func(c *coder, x *reclaim.Claim) {
		text(c, 1, &x.Key)
		list(c, 2, &x.Requests, request)
	}
	rule := func(c *coder, r *reclaim.Rule) {
		text(c, 1, &r.Key)
		text(c, 2, &r.Op)
		texts(c, 3, &r.Values)
	}
	rules := func(c *coder, r *reclaim.Rules) {
		list(c, 1, &r.All, rule)
	}
	toleration := func(c *coder, t *reclaim.Toleration) {
		text(c, 1, &t.Key)
		text(c, 2, &t.Op)
		text(c, 3, &t.Value)
		text(c, 4, &t.Effect)
	}
	where := func(c *coder, w *reclaim.Where) {
		list(c, 1, &w.Labels, pair)
		list(c, 2, &w.AnyOf, rules)
		boolean(c, 3, &w.Restricted)
		list(c, 4, &w.Tolerates, toleration)
	}
	wish := func(c *coder, w *reclaim.Wish) {
		text(c, 1, &w.ID)
		text(c, 2, &w.Who)
		text(c, 3, &w.Kin.Owner)
		text(c, 4, &w.Kin.Shape)
		instant(c, 5, &w.Since)
		boolean(c, 6, &w.Blocked)
		list(c, 7, &w.Asks, ask)
		list(c, 8, &w.Claims, want)
		value(c, 9, &w.Where, where)
		text(c, 10, &w.Group)
		signed(c, 11, &w.Part)
	}
	dropped := func(c *coder, d *protocol.Dropped) {
		text(c, 1, &d.ID)
		boolean(c, 2, &d.Served)
	}
	part := func(c *coder, p *reclaim.Part) {
		signed(c, 1, &p.N)
		texts(c, 2, &p.Bound)
		value(c, 3, &p.Like, wish)
	}
	group := func(c *coder, g *reclaim.Group) {
		text(c, 1, &g.ID)
		texts(c, 2, &g.Owners)
		instant(c, 3, &g.Since)
		boolean(c, 4, &g.Admitted)
		text(c, 5, &g.Queue)
		signed(c, 6, &g.Rank)
		instant(c, 7, &g.From)
		instant(c, 8, &g.Until)
		list(c, 9, &g.Parts, part)
	}
	return func(c *coder, b *protocol.Wishes) {
		list(c, 1, &b.Machines, machine)
		texts(c, 2, &b.Lost)
		list(c, 3, &b.Wishes, wish)
		list(c, 4, &b.Dropped, dropped)
		list(c, 5, &b.Groups, group)
		texts(c, 6, &b.Disbanded)
	}
}
