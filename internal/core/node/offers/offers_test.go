package offers

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestASliceIsOfferedWhenItsGapsChange: and when gaps come into sight, or the view of somebody was the old one; else not.
func TestASliceIsOfferedWhenItsGapsChange(t *testing.T) {
	i := inventory.New()
	o := New(Config{Zone: "z", Horizon: time.Hour, MinGap: time.Second}, record.New("n", func(*protocol.Fact) {}), i)
	i.List([]protocol.Slice{{ID: "a"}, {ID: "b"}})
	i.Confirm()
	now := quantity.Instant(1_000_000 * time.Second)
	offered := func() (list []job.SliceID) {
		var out protocol.Out
		o.Offer(now, 1, func(*protocol.SliceView) {}, &out)
		for _, m := range out.Effects {
			list = append(list, m.Body.(*protocol.SliceView).Slice.ID)
		}
		return list
	}
	expect := func(what string, want ...job.SliceID) {
		t.Helper()
		got := offered()
		if len(got) != len(want) || len(got) > 0 && got[0] != want[0] {
			t.Errorf("%s: %v are offered, want %v", what, got, want)
		}
	}
	expect("at first", "a", "b")
	i.Of("a").Remark()
	expect("nothing has changed")
	i.Of("a").Sell(protocol.ForLease, "j", job.Token{Seq: 1}, now, now.Add(2*time.Hour))
	expect("it is sold for longer than is looked ahead", "a")
	if at := o.Next(); at != now.Add(time.Hour/2) {
		t.Errorf("it is looked again at %v", at)
	}
	now = now.Add(90 * time.Minute)
	if expect("a gap comes into sight", "a"); o.Next() != quantity.Never {
		t.Errorf("it is looked again at %v", o.Next())
	}
	var out protocol.Out
	o.Refuse(&protocol.Message{Job: "j"}, 1, "b", nil, "why", &out)
	if !o.Prompt() {
		t.Error("the view can wait")
	}
	expect("somebody's view was the old one", "b")
	i.Lose(i.Of("b"))
	if expect("it is gone", "b"); o.ShownUsable(i.Of("b")) {
		t.Error("what is gone is offered")
	}
}

// TestASaleIsToldAlthoughAClosureIsOver: as many reservations stand as in the last view, with the same gap before them, and they are
// others.
func TestASaleIsToldAlthoughAClosureIsOver(t *testing.T) {
	z := newZoneView("a")
	at := func(n int) quantity.Instant { return quantity.Instant(1000+n) * quantity.Instant(time.Second) }
	z.close("a", at(0), at(1))
	z.close("a", at(40), at(41))
	z.offer()
	for z.now < at(1) {
		z.pass(at(1))
		z.offer()
	}
	z.sell("a", protocol.ForLease, at(41), at(42))
	z.offer()
	if why := z.wrong("a"); why != "" {
		t.Error(why)
	}
}
