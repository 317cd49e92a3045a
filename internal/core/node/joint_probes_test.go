package node

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// probedHost is a node that tickets ask, whose slices share so much memory.
func probedHost(t *testing.T, memory quantity.Amount, capacities ...quantity.Amount) *probed {
	cfg, err := search.Config{Flow: flow.Config{Classes: flow.Levels(capacities)},
		Zones: []search.Zone{{ID: "z", Nodes: []job.NodeID{"n"}}}}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	p := &probed{T: t, n: New(Config{ID: "n", Zone: "z", Search: cfg, Host: joint.Config{Memory: memory}}), now: t0}
	p.n.Recover(p.now, &p.out)
	stock := &protocol.Stock{}
	for i, c := range capacities {
		d := device(job.SliceID(rune('a' + i)))
		d.Capacity = trp.Vector{c}
		stock.Slices = append(stock.Slices, d)
	}
	p.step(protocol.Message{Kind: protocol.Inventory, From: executor, Body: stock})
	return p
}

// TestAProbeHoldsWhatItsHostBears: two tickets of one instant take no more together than there is; the piece of the second is cut to what
// is left, and a third waits for room, and hears of it.
func TestAProbeHoldsWhatItsHostBears(t *testing.T) {
	p := probedHost(t, 60*gib, 40*gib, 40*gib, 40*gib, 10*gib)
	small := func(id flow.TicketID) {
		p.step(protocol.Message{Kind: protocol.Probe, From: zone, Job: "j", Generation: 1, Body: &protocol.Inquiry{
			Probe: flow.Probe{Ticket: id, Born: p.now, Demand: 15 * gib, Class: 1}, Hop: 1, Least: time.Minute, Most: time.Hour,
		}})
	}
	small(1)
	small(2)
	small(3)
	p.step(protocol.Message{Kind: protocol.Tick})
	if got := p.answers(); len(got) != 3 || got[1] == "" || got[2] == "" || got[3] != "" {
		t.Fatalf("places %v, want two", got)
	}
	first, second := p.place(1), p.place(2)
	if a, b := first.Slice.Offered()[trp.Memory], second.Slice.Offered()[trp.Memory]; a != 40*gib || b != 20*gib {
		t.Errorf("pieces of %d and %d GiB may be cut, want 40 and 20", a/gib, b/gib)
	}
	// The first home cuts a piece that needs less: there is room for the third.
	p.step(protocol.Message{Kind: protocol.Redeem, From: zone, Job: "j", Token: first.Token, Generation: 1,
		Body: &protocol.Work{Placement: protocol.Placement{Slice: first.Slice.ID, Start: first.Start, End: first.End,
			Range: job.Range{To: 10}, Demand: trp.Vector{18 * gib}, Peak: trp.Peak{Mean: 15 * gib, Deviation: gib}}, Spec: spec}})
	if said(protocol.Room, p.out.Effects) == nil {
		t.Error("who waits for room is not told that there is some")
	}
	small(3)
	p.step(protocol.Message{Kind: protocol.Tick})
	if got := p.answers(); got[3] == "" {
		t.Errorf("places %v, want one for the third", got)
	}
}

// TestAPrizeIsWithinWhatItsHostBears: a visitor is offered no more of a window than the host bears.
func TestAPrizeIsWithinWhatItsHostBears(t *testing.T) {
	x := newTradingOn(t, 4, joint.Config{Memory: 3 << 30})
	call := said(protocol.Announce, x.visit("j")).Body.(*protocol.Call)
	if got := call.Windows[0].Capacity[trp.Memory]; got != 3<<30 {
		t.Fatalf("a window of %d bytes is offered, the host has 3 GiB", got)
	}
	x = newTradingOn(t, 4, joint.Config{Memory: 3 << 30})
	p := x.win("j", 0)
	if p.Slice.Host != 3<<30 || p.Slice.Offered()[trp.Memory] < p.Demand[trp.Memory] {
		t.Errorf("the prize is on %+v, its demand is %v", p.Slice, p.Demand)
	}
}
