package zone

import (
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/zone/backlog"
)

// unserved is the zone as its backlog sees it (backlog.Zone).
type unserved Zone

func (z *unserved) Live() []*home.Job             { return z.home.Book().Live() }
func (z *unserved) Listed(j *home.Job) *index.Job { return &entryOf(j).floor }
func (z *unserved) Estimator() *index.Estimator   { return z.floor.Estimator() }
func (z *unserved) Classes() []*window.Class      { return z.floor.Classes() }
func (z *unserved) Options() bool                 { return z.cfg.Market != nil }

func (z *unserved) Waits(now quantity.Instant, j *home.Job) explain.Reason {
	return z.caps.Waits(now, j)
}

// sighted answers what a provider sees of its pool with what to do. Nothing of it is durable: the next Sight is answered anew.
func (z *unserved) sighted(now quantity.Instant, in *protocol.Message, s *supply.Sight, out *protocol.Out) {
	o := supply.Decide(now, s, backlog.Demand(now, &s.Pool, z), backlog.Slots(now, z.sites, z.home.Book().Busy()))
	out.Effects = append(out.Effects, protocol.Message{Kind: protocol.Ordered, From: z.self, To: in.From, Body: &o})
}
