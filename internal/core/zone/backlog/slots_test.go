package backlog

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone/sites"
)

// ledger has no job that avoids a slice.
type ledger struct{}

func (ledger) Avoiding() bool             { return false }
func (ledger) LooksAnother(_ job.SliceID) {}
func (ledger) Removed(_ job.SliceID)      {}

// planned sells nothing.
type planned struct{ backfill.Sale }

func (planned) Reopen(*backfill.Slice) {}

// TestSlotsAreTheFirstTimeForSale on each slice: behind what it is sold for now, and as far as nothing is known to come.
func TestSlotsAreTheFirstTimeForSale(t *testing.T) {
	at := func(d time.Duration) quantity.Instant { return now.Add(d) }
	gap := func(from, to quantity.Instant) protocol.Gap { return protocol.Gap{Start: from, End: to} }
	lease := func(from, to quantity.Instant) protocol.Reservation {
		return protocol.Reservation{Kind: protocol.ForLease, Start: from, End: to}
	}
	sale := func(from, to quantity.Instant) protocol.Sale {
		x := protocol.Sale{Node: "n"}
		x.Slice, x.Start, x.End = "s", from, to
		return x
	}
	type view = protocol.SliceView
	type reserved = []protocol.Reservation
	const minute = time.Minute
	for _, c := range []struct {
		name     string
		view     view
		claims   []protocol.Sale
		asks     []protocol.Sale
		free     quantity.Instant
		until    quantity.Instant
		unusable bool
	}{
		{name: "nothing is known to come", view: view{Gaps: []protocol.Gap{gap(now, quantity.Never)}}, free: now,
			until: quantity.Never},
		{name: "its machine leaves", view: view{Gaps: []protocol.Gap{gap(now, at(minute))},
			Reserved: reserved{{Kind: protocol.ForReclaim, Start: at(minute), End: quantity.Never}}}, free: now, until: at(minute)},
		{name: "a subjob runs", view: view{Gaps: []protocol.Gap{gap(at(minute), at(9*minute))},
			Reserved: reserved{lease(at(-minute), at(minute))}}, free: at(minute), until: at(9 * minute)},
		{name: "another follows it", view: view{Gaps: []protocol.Gap{gap(at(2*minute), at(9*minute))}, Reserved: reserved{
			lease(at(minute), at(2*minute)), lease(at(-minute), at(minute))}}, free: at(2 * minute), until: at(9 * minute)},
		{name: "one follows after a gap", view: view{Gaps: []protocol.Gap{gap(now, at(minute)), gap(at(2*minute), at(9*minute))},
			Reserved: reserved{lease(at(minute), at(2*minute))}}, free: now, until: at(minute)},
		{name: "it was sold, and its node has not said so", view: view{Gaps: []protocol.Gap{gap(now, at(9*minute))}},
			claims: []protocol.Sale{sale(now, at(minute))}, free: at(minute), until: at(9 * minute)},
		{name: "what was sold is over, and its result is not known", view: view{Gaps: []protocol.Gap{gap(now, at(9*minute))}},
			claims: []protocol.Sale{sale(at(-minute), at(-1))}, free: now + 1, until: at(9 * minute)},
		{name: "it is asked for", view: view{Gaps: []protocol.Gap{gap(now, at(9*minute))}},
			asks: []protocol.Sale{sale(now, at(minute))}, free: at(minute), until: at(9 * minute)},
		{name: "a place is kept for a rigid job", view: view{Gaps: []protocol.Gap{gap(now, at(minute))}, Reserved: reserved{
			{Kind: protocol.ForRigid, Start: at(minute), End: at(5 * minute), Job: "r"}}}, free: now, until: at(5 * minute)},
		{name: "others have it", view: view{Gaps: []protocol.Gap{gap(at(minute), at(9*minute))}, Reserved: reserved{
			{Kind: protocol.ForForeign, Start: at(-minute), End: at(minute)}}}, free: now, until: now},
		{name: "it is sold to its end", view: view{Reserved: reserved{lease(at(-minute), at(minute)),
			{Kind: protocol.ForReclaim, Start: at(minute), End: quantity.Never}}}, free: at(minute), until: at(minute)},
		{name: "it may not be used", view: view{Gaps: []protocol.Gap{gap(now, at(9*minute))}, Why: "quarantined"}, free: now, until: now,
			unusable: true},
	} {
		floor := market.NewFloor(market.FloorConfig{Policy: fifo.Policy{}, Horizon: time.Hour, MinWindow: time.Second}, nil)
		all := sites.New(floor, backfill.New(backfill.Config{}, floor, planned{}), ledger{}, nil, time.Second, nil)
		v := c.view
		v.Slice = protocol.Slice{ID: "s", Speed: 1000, Capacity: trp.Vector{trp.Memory: gib}}
		v.Node, v.Version, v.Usable = "n", 1, v.Why == ""
		all.SetView(now, 1, &v)
		z := &zone{}
		j := z.add(&protocol.Record{Spec: chain("j", job.Steps)})
		for i := range c.claims {
			all.Sold(j, &protocol.Claim{Sale: c.claims[i]})
		}
		for _, s := range c.asks {
			all.Ask(&home.Ask{Job: j, Sale: s})
		}
		want := supply.Slot{Node: "n", Free: c.free, Until: c.until, Usable: !c.unusable}
		if got := Slots(now, all, nil); len(got) != 1 || got[0] != want {
			t.Errorf("%s: %+v, want %+v", c.name, got, want)
		}
	}
}
