package reclaim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

func TestHoldsForWishes(t *testing.T) {
	elsewhere := func(w *Wish, labels ...Pair) *Wish { w.Where.Labels = labels; return w }
	taint := func(m *Machine) *Machine { m.Taints = []Taint{{"team", "a", "NoSchedule"}}; return m }
	tolerant := wish("p", 1)
	tolerant.Where.Tolerates = []Toleration{{Key: "team", Op: "Exists"}}
	blocked := wish("p", 2)
	blocked.Blocked = true
	shut := counted("m", 2, 2)
	shut.Shut = true
	keeps := counted("m", 2, 2)
	keeps.Slices = nil
	for name, c := range map[string]struct {
		machine *Machine
		costs   map[job.SliceID]Cost
		wishes  []*Wish
		want    string
	}{
		"the least work is lost": {counted("m", 2, 2), map[job.SliceID]Cost{"m/0": {Lost: time.Minute}, "m/1": {Lost: time.Hour}},
			[]*Wish{wish("p", 1)}, "m/0 for pod p\nm/0 for pod p\nm/0 from 1m30s cut for pod p"},
		"then the least time is left": {counted("m", 2, 2), map[job.SliceID]Cost{"m/0": {Left: time.Hour}, "m/1": {Left: time.Minute}},
			[]*Wish{wish("p", 1)}, "m/1 for pod p\nm/1 for pod p\nm/1 from 1m30s cut for pod p"},
		"one is free": {counted("m", 3, 2), nil, []*Wish{wish("p", 2)},
			"m/0 for pod p\nm/0 for pod p\nm/0 from 1m30s cut for pod p\nm/2 for pod p"},
		"two who wait": {counted("m", 3, 2), nil, []*Wish{wish("p", 2), wish("q", 1)},
			"m/0 for pod p\nm/0 for pod p\nm/0 from 1m30s cut for pod p\n" +
				"m/1 for pod q\nm/1 for pod q\nm/1 from 1m30s cut for pod q\nm/2 for pod p"},
		"more than there is": {counted("m", 2, 2), nil, []*Wish{wish("p", 3)}, ""},
		"there is room, which would be sold": {counted("m", 2, 1), nil, []*Wish{wish("p", 1)},
			"m/1 for pod p"},
		"room for one of two": {counted("m", 2, 1), nil, []*Wish{wish("p", 1), wish("q", 1)},
			"m/1 for pod p\nm/0 for pod q\nm/0 from 1m30s cut for pod q"},
		"it means another machine": {counted("m", 2, 2), nil, []*Wish{elsewhere(wish("p", 1), Pair{"zone", "b"})},
			""},
		"the machine is shut": {shut, nil, []*Wish{wish("p", 1)},
			""},
		"nothing may be taken": {keeps, nil, []*Wish{wish("p", 1)},
			""},
		"a taint": {taint(counted("m", 2, 2)), nil, []*Wish{wish("p", 1)},
			""},
		"that is tolerated": {taint(counted("m", 1, 1)), nil, []*Wish{tolerant},
			"m/0 for pod p\nm/0 for pod p\nm/0 from 1m30s cut for pod p"},
		"what it wants is not known": {counted("m", 2, 2), nil, []*Wish{blocked},
			""},
		"a device of three": {board("m", 0, 1, 2, 3), map[job.SliceID]Cost{"m/1g-3": {Lost: time.Minute}, "m/1g-0": {Lost: time.Minute}},
			[]*Wish{deviceWish("p", 1, "3g")},
			"m/1g-3 for pod p\nm/1g-3 for pod p\nm/1g-3 from 1m30s cut for pod p\nm/1g-4 for pod p\nm/1g-5 for pod p"},
		"two of three": {board("m", 0, 6), nil, []*Wish{deviceWish("p", 2, "3g")},
			"m/1g-0 for pod p\nm/1g-0 from 1m30s cut for pod p\nm/1g-1 for pod p\nm/1g-2 for pod p\nm/1g-3 for pod p\n" +
				"m/1g-4 for pod p\nm/1g-5 for pod p"},
	} {
		t.Run(name, func(t *testing.T) {
			k := New()
			k.Hear(c.machine)
			for _, w := range c.wishes {
				k.Wish(w)
			}
			k.Decide(at(time.Minute), costs(c.costs))
			if got := told(k, "m"); !same(got, c.want) {
				t.Errorf("held are\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// same compares lines as a set: a slice that is both kept and cut has two holds.
func same(a, b string) bool {
	set := func(s string) []string {
		lines := strings.Split(s, "\n")
		slices.Sort(lines)
		return slices.Compact(lines)
	}
	return slices.Equal(set(a), set(b))
}

// TestUnusedPlaceIsReleased a minute after all that is cut for it is gone; then the wish backs off, longer each time, until it is served.
func TestUnusedPlaceIsReleased(t *testing.T) {
	k := New()
	k.Hear(counted("m", 1, 1))
	k.Wish(wish("p", 1))
	k.Decide(at(0), nil)
	if w := k.Why(at(0), "p"); w.Verdict != Kept || len(w.Place.Stops) != 1 {
		t.Fatalf("it is %v", w)
	}
	k.Hear(counted("m", 1, 0)) // ours is gone
	for _, d := range []time.Duration{40 * time.Second, 90 * time.Second} {
		if k.Decide(at(d), nil); len(k.Places()) != 1 {
			t.Fatalf("after %v the place is released", d)
		}
	}
	k.Decide(at(101*time.Second), nil)
	if w := k.Why(at(101*time.Second), "p"); w.Verdict != BackingOff || w.Until != at(101*time.Second+firstBackoff) ||
		len(k.Places()) != 0 {
		t.Fatalf("it is %v", w)
	}
	k.Hear(counted("m", 1, 1))
	if k.Decide(at(5*time.Minute), nil); len(k.Places()) != 0 {
		t.Fatal("the wish does not back off")
	}
	if k.Decide(at(12*time.Minute), nil); len(k.Places()) != 1 {
		t.Fatal("the wish backs off for good")
	}
	k.Withdraw("p", true)
	d := k.Decide(at(13*time.Minute), nil)
	if len(k.Places()) != 0 || !slices.Equal(d.Machines, []string{"m"}) || d.Again != quantity.Never {
		t.Errorf("the decision is %+v", d)
	}
	if len(k.unused)+len(k.backoffs) != 0 {
		t.Error("the backoff is not reset, though the wish was served")
	}
}

// TestStopTimeout: a place is released if the subjob that is cut for it never stops.
func TestStopTimeout(t *testing.T) {
	k := New()
	k.Hear(counted("m", 1, 1))
	k.Wish(wish("p", 1))
	for d, want := range map[time.Duration]int{0: 1, 5 * time.Minute: 1} {
		if k.Decide(at(0), nil); len(k.Places()) != want {
			t.Errorf("after %v there are %d", d, len(k.Places()))
		}
	}
	if k.Decide(at(31*time.Second+stopTimeout), nil); len(k.Places()) != 0 {
		t.Error("the place is kept without end")
	}
}

// TestFreeRoomThatIsNotUsed: room that is there is kept for a wish for twelve seconds, then it is made elsewhere, and what is free is sold.
// Others of its class have nothing kept that is free for a while, until one of them is served.
func TestFreeRoomThatIsNotUsed(t *testing.T) {
	k := New()
	k.Hear(counted("m", 2, 1))
	k.Hear(counted("n", 1, 1))
	k.Wish(wish("p", 1))
	for _, d := range []time.Duration{0, time.Second, 11 * time.Second} {
		k.Decide(at(d), nil)
		expect(t, k, "m/1 for pod p", "m", "n")
	}
	k.Decide(at(13*time.Second), nil)
	expect(t, k, "n/0 for pod p\nn/0 for pod p\nn/0 from 43s cut for pod p", "m", "n")

	brother := wish("q", 1)
	brother.Equiv = wish("p", 1).Equiv
	k.Wish(brother)
	k.Decide(at(14*time.Second), nil)
	if w := k.Why(at(14*time.Second), "q"); w.Verdict != RoomFree {
		t.Errorf("a brother of it is %v", w)
	}
	k.Withdraw("p", true)
	k.Withdraw("q", false)
	k.Decide(at(15*time.Second), nil)
	k.Wish(brother)
	k.Decide(at(16*time.Second), nil)
	expect(t, k, "m/1 for pod q", "m", "n")
}

// TestFreeDevicesOfClaimsAreNotKept: the scheduler may have given them to another already.
func TestFreeDevicesOfClaimsAreNotKept(t *testing.T) {
	k := New()
	k.Hear(board("m", 0, 1, 2))
	k.Wish(deviceWish("p", 1, "1g"))
	k.Decide(at(0), nil)
	if w := k.Why(at(0), "p"); w.Verdict != RoomFree || len(k.Places()) != 0 {
		t.Errorf("it is %v", w)
	}
}

// TestFreeRoomThatAnotherTakesIsReplaced at once, by what is free elsewhere, else by stopping something.
func TestFreeRoomThatAnotherTakesIsReplaced(t *testing.T) {
	taken := func(name string) *Machine {
		m := counted(name, 2, 1)
		m.Tenants = append(m.Tenants, Tenant{Asks: []Ask{{"gpu", 1}}, End: quantity.Never})
		m.Resources[0].Others[1] = quantity.Never
		return m
	}
	k := New()
	for _, m := range []string{"m", "n"} {
		k.Hear(counted(m, 2, 1))
	}
	k.Wish(wish("p", 1))
	k.Decide(at(0), nil)
	first := k.Places()[0].Machine
	second := map[string]string{"m": "n", "n": "m"}[first]
	k.Hear(taken(first))
	k.Decide(at(2*time.Second), nil)
	expect(t, k, second+"/1 for pod p", "m", "n")
	k.Hear(taken(second))
	k.Decide(at(3*time.Second), nil)
	if got := k.Places(); len(got) != 1 || len(got[0].Stops) != 1 {
		t.Errorf("kept are %v", got)
	}
}

// TestTakenPlaceIsReplaced: if another workload takes the place, a new one is found.
func TestTakenPlaceIsReplaced(t *testing.T) {
	k := New()
	k.Hear(counted("m", 2, 2))
	k.Wish(wish("p", 1))
	k.Decide(at(0), costs(map[job.SliceID]Cost{"m/0": {}, "m/1": {Lost: time.Hour}}))
	m := counted("m", 2, 2)
	m.Tenants[0] = Tenant{Asks: []Ask{{"gpu", 1}}, End: quantity.Never}
	m.Resources[0].Others[0] = quantity.Never
	k.Hear(m)
	k.Decide(at(31*time.Second), nil)
	if got := k.Places(); len(got) != 1 || !slices.Equal(got[0].Stops, []job.SliceID{"m/1"}) {
		t.Errorf("kept are %v", got)
	}
}

// TestSharedClaimIsAllocatedOnce: wishes that share a claim are placed on the same machine.
func TestSharedClaimIsAllocatedOnce(t *testing.T) {
	k := New()
	for _, m := range []string{"m", "n"} {
		k.Hear(board(m, 0, 1, 2, 3, 4, 5, 6))
	}
	both := []Claim{{Key: "c", Requests: profile(1, "3g")}}
	for _, id := range []string{"p", "q"} {
		w := deviceWish(id, 1, "3g")
		w.Claims = both
		if id == "q" {
			w.Claims = append(slices.Clip(both), Claim{Requests: profile(1, "3g")})
		}
		k.Wish(w)
	}
	k.Decide(at(0), nil)
	k.Decide(at(time.Second), nil)
	got := k.Places()
	if len(got) != 2 || got[0].Machine != got[1].Machine || len(got[0].Devices)+len(got[1].Devices) != 2 {
		t.Errorf("kept are %v", got)
	}
}

// TestPlaceOfIsTheFirstByID in any map order.
func TestPlaceOfIsTheFirstByID(t *testing.T) {
	for range 20 {
		r := newMemory()
		for _, id := range []ID{"d", "b", "c", "a"} {
			r.places[id] = &Place{Wish: id, Claims: []string{"x"}}
		}
		if pl := r.placeOf("x", r.places["a"], nil); pl.Wish != "b" {
			t.Fatalf("it is %s", pl.Wish)
		}
	}
}

// group has n members that want a counted device each.
func group(id string, n int, change func(*Group)) *Group {
	g := &Group{ID: ID(id), Owners: []string{id}, Since: start, Admitted: true,
		Parts: []Part{{N: n, Like: Wish{Who: "workload " + id, Equiv: Equiv{Owner: id}, Asks: []Ask{{"gpu", 1}}}}}}
	if change != nil {
		change(g)
	}
	return g
}

func TestPlacesAheadOfTime(t *testing.T) {
	waits := func(from, until time.Duration) func(*Group) {
		return func(g *Group) {
			g.Since, g.Admitted, g.Queue, g.From, g.Until = 0, false, "q", at(from), quantity.Never
			if until > 0 {
				g.Until = at(until)
			}
		}
	}
	other := counted("m", 2, 1)
	other.Tenants = append(other.Tenants, Tenant{Asks: []Ask{{"gpu", 1}}, End: at(time.Hour)})
	other.Resources[0].Others[1] = at(time.Hour)
	for name, c := range map[string]struct {
		machine *Machine
		groups  []*Group
		want    string
	}{
		"there is room": {counted("m", 2, 1), []*Group{group("g", 1, nil)},
			"m/1 for workload g"},
		"two members, and room for one": {counted("m", 2, 1), []*Group{group("g", 2, nil)},
			"m/0 for workload g\nm/0 from 30s cut for workload g\nm/1 for workload g"},
		"all or none": {counted("m", 2, 1), []*Group{group("g", 3, nil)},
			""},
		"something else holds it back": {counted("m", 2, 1), []*Group{group("g", 2, func(g *Group) { g.Admitted = false })},
			"m/0 for workload g\nm/1 for workload g"},
		"its members are there": {counted("m", 2, 1), []*Group{group("g", 1, func(g *Group) { g.Parts[0].Bound = []string{"m"} })},
			""},
		"it waits for what ends": {other, []*Group{group("g", 1, waits(time.Hour, 0))},
			"m/1 from 1h0m0s cut for workload g"},
		"and not for ever": {other, []*Group{group("g", 1, waits(time.Hour, 2*time.Hour))},
			"m/1 from 1h0m0s to 2h0m0s cut for workload g"},
		"it waits, and for what is unknown": {other, []*Group{group("g", 1, func(g *Group) { waits(0, 0)(g); g.From = 0 })},
			""},
		"the first of its queue": {other,
			[]*Group{group("g", 1, func(g *Group) { waits(time.Hour, 0)(g); g.Rank = 1 }), group("h", 1, waits(time.Hour, 0))},
			"m/1 from 1h0m0s cut for workload h"},
	} {
		t.Run(name, func(t *testing.T) {
			k := New()
			k.Hear(c.machine)
			for _, g := range c.groups {
				k.Expect(g)
			}
			k.Decide(at(0), nil)
			if got := told(k, "m"); !same(got, c.want) {
				t.Errorf("held are\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// TestMemberTakesOverItsPlace with what is cut for it.
func TestMemberTakesOverItsPlace(t *testing.T) {
	k := New()
	k.Hear(counted("m", 2, 2))
	k.Expect(group("g", 1, nil))
	k.Decide(at(0), nil)
	w := wish("p", 1)
	w.Group = "g"
	k.Wish(w)
	k.Decide(at(10*time.Second), nil)
	got := k.Places()
	if len(got) != 1 || got[0].Wish != "p" || got[0].Group != "" || got[0].At != at(30*time.Second) || k.ahead != 0 {
		t.Errorf("kept are %+v", got)
	}
}

// TestGroupNotAdmittedInTimeBacksOff: the next of its queue gets the place.
func TestGroupNotAdmittedInTimeBacksOff(t *testing.T) {
	m := counted("m", 2, 0)
	for i, end := range []time.Duration{time.Hour, 2 * time.Hour} {
		m.Tenants = append(m.Tenants, Tenant{Asks: []Ask{{"gpu", 1}}, End: at(end)})
		m.Resources[0].Others[1-i] = at(end)
	}
	k := New()
	k.Hear(m)
	queued := func(id string, rank int, from time.Duration) *Group {
		return group(id, 1, func(g *Group) {
			g.Since, g.Queue, g.Rank, g.From, g.Until = 0, "q", rank, at(from), quantity.Never
		})
	}
	k.Expect(queued("g", 0, time.Hour))
	k.Expect(queued("h", 1, time.Hour))
	k.Decide(at(0), nil)
	expect(t, k, "m/1 from 1h0m0s cut for workload g", "m")
	k.Expect(queued("g", 0, 2*time.Hour))
	k.Expect(queued("h", 1, 2*time.Hour))
	for range 3 {
		k.Decide(at(time.Hour+2*time.Minute), nil)
	}
	expect(t, k, "m/1 from 2h0m0s cut for workload h", "m")
}

// TestUnsatisfiableWishesDoNotStarveOthers: a later wish is served within three passes, though 300 older ones find nothing.
func TestUnsatisfiableWishesDoNotStarveOthers(t *testing.T) {
	k := New()
	k.Hear(counted("m", 1, 1))
	for i := range 300 {
		k.Wish(wish(fmt.Sprint("old", i), int64(10+i)))
	}
	clock := time.Duration(0)
	for range 120 {
		k.Decide(at(clock), nil)
		clock += time.Second
	}
	w := wish("young", 1)
	w.Since = at(clock)
	k.Wish(w)
	for range 3 {
		k.Decide(at(clock), nil)
		clock += 200 * time.Millisecond
	}
	if got := k.Places(); len(got) != 1 || got[0].Wish != "young" {
		t.Errorf("kept are %v", got)
	}
	if w := k.Why(at(clock), "old7"); w.Verdict != NoRoom {
		t.Errorf("an unsatisfiable wish is %v", w)
	}
}
