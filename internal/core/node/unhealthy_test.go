package node

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestAnUnhealthyNodeSellsNothing: its slices are not usable and say why, no ask is granted, and what was sold and has not begun
// waits; when it is well again all of that goes on.
func TestAnUnhealthyNodeSellsNothing(t *testing.T) {
	n := New(Config{ID: "n", Zone: "z"})
	var out protocol.Out
	n.Recover(t0, &out)
	n.Step(t0, protocol.Message{Kind: protocol.Inventory, From: executor,
		Body: &protocol.Stock{Slices: []protocol.Slice{device("a"), device("b")}}}, &out)
	now := t0
	step := func(m protocol.Message) []protocol.Message {
		out.Reset()
		n.Step(now, m, &out)
		return out.Effects
	}
	find := func(list []protocol.Message, k protocol.Kind) *protocol.Message {
		for i := range list {
			if list[i].Kind == k {
				return &list[i]
			}
		}
		return nil
	}
	want := func(id uint64, slice job.SliceID) *protocol.Message {
		a := ask(id, slice, 0, 0)
		a.Body.(*protocol.Asking).Start, a.Body.(*protocol.Asking).End = now.Add(time.Second), now.Add(time.Minute)
		return find(step(a), protocol.Granted)
	}
	g := want(1, "a")
	if g == nil {
		t.Fatal("a node that is well grants nothing")
	}
	step(redeem(*g))
	offers := 0
	for _, m := range step(protocol.Message{Kind: protocol.Unhealthy, From: executor,
		Body: &protocol.Condition{Unhealthy: true, Text: "no space left"}}) {
		if m.Kind == protocol.Offer {
			offers++
			if m.Body.(*protocol.SliceView).Usable || !strings.Contains(m.Body.(*protocol.SliceView).Why, "no space left") {
				t.Errorf("%s is offered: usable %v, %q", m.Body.(*protocol.SliceView).Slice.ID, m.Body.(*protocol.SliceView).Usable,
					m.Body.(*protocol.SliceView).Why)
			}
		}
	}
	if offers != 2 {
		t.Errorf("%d of 2 slices say that they are not for sale", offers)
	}
	if want(2, "b") != nil {
		t.Error("an unhealthy node grants")
	}
	now = now.Add(2 * time.Second)
	if find(step(protocol.Message{Kind: protocol.Tick}), protocol.Start) != nil {
		t.Error("an unhealthy node starts what it sold before")
	}
	if find(step(protocol.Message{Kind: protocol.Unhealthy, From: executor, Body: &protocol.Condition{}}), protocol.Start) == nil {
		t.Error("a node that is well again does not start what waited")
	}
	if want(3, "b") == nil {
		t.Error("a node that is well again grants nothing")
	}
}
