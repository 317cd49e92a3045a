package offers

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Times of these tests are whole units, so that every gap is long enough to be told.
const (
	unit    = time.Second
	horizon = 20 * unit
)

// zoneView is what a zone has heard of the slices of one node, beside what is so.
type zoneView struct {
	o         *Offers
	inventory *inventory.Inventory
	now       quantity.Instant
	heard     map[job.SliceID]*protocol.SliceView
	// taken is the oracle: the time that is reserved on each slice.
	taken   map[job.SliceID][]protocol.Reservation
	next    uint64
	version uint64
}

func newZoneView(ids ...job.SliceID) *zoneView {
	z := &zoneView{inventory: inventory.New(), now: quantity.Instant(1000 * unit), heard: map[job.SliceID]*protocol.SliceView{},
		taken: map[job.SliceID][]protocol.Reservation{}}
	z.o = New(Config{Zone: "z", Horizon: horizon, MinGap: unit}, record.New("n", func(*protocol.Fact) {}), z.inventory)
	var list []protocol.Slice
	for _, id := range ids {
		list = append(list, protocol.Slice{ID: id})
	}
	z.inventory.List(list)
	z.inventory.Confirm()
	return z
}

// offer is a node's step: it offers if anything may have to be. It returns the slices that the zone has heard of.
func (z *zoneView) offer() (told []job.SliceID) {
	if !z.o.Due(z.now) {
		return nil
	}
	var out protocol.Out
	z.o.Offer(z.now, 7, func(*protocol.SliceView) {}, &out)
	for _, m := range out.Effects {
		v := m.Body.(*protocol.SliceView)
		if m.Kind != protocol.Offer || m.Epoch != 7 || m.To.ID != "z" || v.Version <= z.version {
			panic(fmt.Sprintf("not a view for the zone, or an old one: %+v", m))
		}
		z.version = v.Version
		z.heard[v.Slice.ID] = v
		told = append(told, v.Slice.ID)
	}
	return told
}

// sell takes time of a slice for a lease or a hold.
func (z *zoneView) sell(s job.SliceID, kind protocol.ReservationKind, from, to quantity.Instant) {
	z.next++
	t := job.Token{Seq: z.next}
	z.inventory.Of(s).Sell(kind, "j", t, from, to)
	z.taken[s] = append(z.taken[s], protocol.Reservation{ID: z.next, Kind: kind, Start: from, End: to, Token: t})
}

// close reserves time of a slice for others.
func (z *zoneView) close(s job.SliceID, from, to quantity.Instant) {
	z.next++
	r := protocol.Reservation{ID: z.next, Kind: protocol.ForDrain, Slice: s, Start: from, End: to}
	z.inventory.Of(s).Close(r)
	z.taken[s] = append(z.taken[s], r)
}

// free drops the k-th reservation of a slice.
func (z *zoneView) free(s job.SliceID, k int) {
	if r := z.taken[s][k]; isSold(&r) {
		z.inventory.Of(s).Return(r.Token)
	} else {
		z.inventory.Of(s).Reopen(r.ID)
	}
	z.taken[s] = slices.Delete(z.taken[s], k, k+1)
}

func isSold(r *protocol.Reservation) bool {
	return r.Kind == protocol.ForLease || r.Kind == protocol.ForHold
}

func covers(from, to, at quantity.Instant) bool { return from <= at && at < to }

// wrong says what the zone believes of a slice that is not so: nothing that is taken may be offered, and all that is free within half the
// horizon is.
func (z *zoneView) wrong(id job.SliceID) string {
	v := z.heard[id]
	if v == nil {
		return "the zone has not heard of it"
	}
	if _, usable := z.inventory.Of(id).Usable(); v.Usable != usable || z.o.ShownUsable(z.inventory.Of(id)) != usable {
		return fmt.Sprintf("it is usable: %v, as the zone has heard: %v", usable, v.Usable)
	} else if !usable {
		if len(v.Gaps) > 0 {
			return fmt.Sprintf("it is not usable, and %v of it is offered", v.Gaps)
		}
		return ""
	}
	for at := z.now; at < z.now.Add(3*horizon); at = at.Add(unit) {
		taken := slices.ContainsFunc(z.taken[id], func(r protocol.Reservation) bool { return covers(r.Start, r.End, at) })
		offered := slices.ContainsFunc(v.Gaps, func(g protocol.Gap) bool { return covers(g.Start, g.End, at) })
		switch in := at.Sub(z.now) / unit; {
		case taken && offered:
			return fmt.Sprintf("the time %d units from now is offered and taken", in)
		case !taken && !offered && at < z.now.Add(horizon/2):
			return fmt.Sprintf("the time %d units from now is free and not offered", in)
		}
	}
	sold := 0
	for i := range z.taken[id] {
		if isSold(&z.taken[id][i]) {
			sold++
		}
	}
	for i := range v.Reserved {
		if isSold(&v.Reserved[i]) {
			sold--
		}
	}
	if sold != 0 {
		return fmt.Sprintf("%v are reserved as the zone has heard, in truth %v", v.Reserved, z.taken[id])
	}
	return ""
}

// TestTheZoneKnowsWhatIsFree: whatever is sold, given back, reserved or lost, and however much time goes by, as long as the node wakes
// when it says. A step without a change says nothing.
func TestTheZoneKnowsWhatIsFree(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ids := []job.SliceID{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "slices")]
		z := newZoneView(ids...)
		gone := map[job.SliceID]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "events") {
			id := rapid.SampledFrom(ids).Draw(t, "slice")
			s, mine := z.inventory.Of(id), z.taken[id]
			from := z.now.Add(time.Duration(rapid.IntRange(0, 40).Draw(t, "from")) * unit)
			to := from.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "length")) * unit)
			switch rapid.IntRange(0, 9).Draw(t, "what") {
			case 0, 1:
				kind := rapid.SampledFrom([]protocol.ReservationKind{protocol.ForLease, protocol.ForHold}).Draw(t, "kind")
				if _, ok := s.Free(z.now, from, to, ""); ok && !gone[id] {
					z.sell(id, kind, from, to)
				}
			case 2:
				z.close(id, from, to)
			case 3:
				if len(mine) > 0 {
					z.free(id, rapid.IntRange(0, len(mine)-1).Draw(t, "which"))
				}
			case 4:
				if k := slices.IndexFunc(mine, func(r protocol.Reservation) bool { return isSold(&r) }); k >= 0 && mine[k].End > to {
					if to > mine[k].Start {
						s.Truncate(mine[k].Token, to)
						mine[k].End = to
					}
				}
			case 5:
				s.Remark() // of no consequence
			case 6:
				var out protocol.Out
				z.o.Refuse(&protocol.Message{}, 1, id, ids, "why", &out)
				if z.offer(); z.o.Prompt() {
					t.Fatal("a prompt view was sent and is prompt still")
				}
			case 7:
				if gone[id] = !gone[id]; gone[id] {
					z.inventory.Lose(s)
				} else {
					var list []protocol.Slice
					for _, id := range ids {
						if !gone[id] {
							list = append(list, protocol.Slice{ID: id})
						}
					}
					z.inventory.List(list)
				}
			case 8, 9:
				till := z.now.Add(time.Duration(rapid.IntRange(1, 30).Draw(t, "later")) * unit)
				for z.now < till {
					z.pass(till)
					z.offer()
				}
			}
			z.offer()
			for _, id := range ids {
				if why := z.wrong(id); why != "" {
					t.Fatalf("slice %s: %s\nheard %+v\ntaken %+v", id, why, z.heard[id].Gaps, z.taken[id])
				}
			}
			if told := z.offer(); told != nil || z.o.Due(z.now) {
				t.Fatalf("%v are told again though nothing has changed", told)
			}
		}
	})
}

// pass lets time go by until the node is to look again, or something that was sold is over, which is given back then; at the latest until
// till.
func (z *zoneView) pass(till quantity.Instant) {
	to := min(till, max(z.o.Next(), z.now+1))
	for _, list := range z.taken {
		for i := range list {
			if isSold(&list[i]) && list[i].End > z.now {
				to = min(to, list[i].End)
			}
		}
	}
	z.now = to
	for id, list := range z.taken {
		for k := len(list) - 1; k >= 0; k-- {
			if isSold(&list[k]) && list[k].End <= z.now {
				z.free(id, k)
			}
		}
	}
}

// TestAViewIsSentForWhatTheZoneCanUse: for gaps that begin or end elsewhere, a slice that may not be sold or has another share of memory,
// and for whoever had an old view; not for time that has gone by, nor because somebody looked.
func TestAViewIsSentForWhatTheZoneCanUse(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(z *zoneView)
		told bool
	}{
		{"nothing", func(*zoneView) {}, false},
		{"it is looked at", func(z *zoneView) { z.inventory.Of("a").Remark() }, false},
		{"time goes by within a gap", func(z *zoneView) {
			z.free("a", 0)
			z.offer()
			z.now = z.now.Add(3 * unit)
			z.inventory.Of("a").Remark()
		}, false},
		{"it is sold from later on", func(z *zoneView) { z.sell("a", protocol.ForLease, z.now.Add(5*unit), z.now.Add(9*unit)) }, true},
		{"it is kept free from later on", func(z *zoneView) { z.close("a", z.now.Add(5*unit), z.now.Add(9*unit)) }, true},
		{"the hold before becomes a lease", func(z *zoneView) {
			z.free("a", 0)
			z.sell("a", protocol.ForLease, z.now, z.now.Add(2*unit))
		}, false},
		{"the hold before ends sooner", func(z *zoneView) {
			z.inventory.Of("a").Truncate(z.taken["a"][0].Token, z.now.Add(unit))
		}, true},
		{"what comes later begins sooner", func(z *zoneView) {
			z.close("a", z.now.Add(6*unit), z.now.Add(9*unit))
			z.offer()
			z.free("a", 1)
			z.close("a", z.now.Add(5*unit), z.now.Add(9*unit))
		}, true},
		{"what comes later is another thing", func(z *zoneView) {
			z.close("a", z.now.Add(6*unit), z.now.Add(9*unit))
			z.offer()
			z.free("a", 1)
			z.sell("a", protocol.ForLease, z.now.Add(6*unit), z.now.Add(9*unit))
		}, true},
		{"the hold before is given back", func(z *zoneView) { z.free("a", 0) }, true},
		{"memory is short", func(z *zoneView) { z.inventory.SetMemory(true, false) }, true},
		{"its host bears another part of it", func(z *zoneView) { z.inventory.Of("a").Bear(10, 5) }, true},
		{"somebody's view was the old one", func(z *zoneView) {
			z.o.Refuse(&protocol.Message{}, 1, "a", nil, "why", &protocol.Out{})
		}, true},
		{"somebody's view of a gang's slice was the old one", func(z *zoneView) {
			z.o.Refuse(&protocol.Message{}, 1, "gone", []job.SliceID{"also gone", "a"}, "why", &protocol.Out{})
		}, true},
		{"all are to be told again", func(z *zoneView) { z.o.AgainAll() }, true},
	} {
		z := newZoneView("a")
		z.sell("a", protocol.ForHold, z.now, z.now.Add(2*unit))
		z.offer()
		c.do(z)
		if told := z.offer(); (len(told) > 0) != c.told {
			t.Errorf("%s: %v are told", c.name, told)
		}
	}
}

// TestWhatIsForgottenIsNotRenewed: a slice that is gone has no alarm, and is told anew if it comes back.
func TestWhatIsForgottenIsNotRenewed(t *testing.T) {
	z := newZoneView("a")
	s := z.inventory.Of("a")
	z.close("a", z.now, z.now.Add(2*horizon))
	if z.offer(); z.o.Next() != z.now.Add(horizon/2) {
		t.Fatalf("the gap behind the horizon is looked for at %v", z.o.Next())
	}
	if z.o.Forget(s); z.o.Next() != quantity.Never || z.o.ShownUsable(s) {
		t.Errorf("it is looked at again at %v", z.o.Next())
	}
	z.o.Forget(s) // a second time is none
	s.Remark()
	if told := z.offer(); len(told) != 1 || z.o.Next() == quantity.Never {
		t.Errorf("it is back, and %v are told", told)
	}
}
