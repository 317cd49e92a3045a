package reclaim

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// TestEveryReasonInWords: one line for each state of a wish and of a group, with the word that programs get.
func TestEveryReasonInWords(t *testing.T) {
	minute := func(lost, left int) Cost {
		return Cost{time.Duration(lost) * time.Minute, time.Duration(left) * time.Minute}
	}
	a, b := []job.SliceID{"a"}, []job.SliceID{"b"}
	place := func(change func(*Place)) *Place {
		pl := &Place{Machine: "m", Stops: a, Cost: minute(1, 9), Search: Search{Machines: 3, Known: 3, Places: 2, Whole: true},
			Spared: []Way{{Machine: "n", Stops: b, Cost: minute(5, 2)}}}
		change(pl)
		return pl
	}
	for _, c := range []struct {
		r    Reason
		want string
	}{
		{Reason{}, "pending: not searched for yet"},
		{Reason{Verdict: Blocked}, "blocked: what it wants is not known yet"},
		{Reason{Verdict: NotOffered}, "not-offered: it wants nothing that is offered here"},
		{Reason{Verdict: Sharing, Machine: "m"},
			"sharing: its claims get their devices on m, in the place of another that shares them"},
		{Reason{Verdict: RoomFree}, "room-free: there seems to be room for it without stopping anything"},
		{Reason{Verdict: Limit, Times: 256}, "limit: 256 places are kept for others, which is the most at once"},
		{Reason{Verdict: InTurn, Times: 2, Class: true},
			"in-turn: it, or others like it, did not use 2 places kept for them, so a place is kept for one of them at a time"},
		{Reason{Verdict: BackingOff, Wish: "p", Times: 1}, "backing-off: backing off: it did not use 1 place kept for it"},
		{Reason{Verdict: BackingOff, Wish: "p", Times: 3, Class: true},
			"backing-off: backing off: it, or others like it, did not use 3 places kept for them"},
		{Reason{Verdict: BackingOff, Group: "g", Times: 2},
			"backing-off: backing off: it was not admitted when its time came (2 times)"},
		{Reason{Verdict: BackingOff, Group: "g", Class: true},
			"backing-off: backing off: others of its owner did not use places that were kept for them"},
		{Reason{Verdict: NoRoom, Group: "g"}, "no-room: no places were found for all of its members at once"},
		{Reason{Verdict: NoRoom, Wish: "p"}, "no-room: nothing runs that could be stopped for it"},
		{Reason{Verdict: NoRoom, Wish: "p", Search: Search{Known: 4, Whole: true}},
			"no-room: it may run on none of the 4 machines where something could be stopped for it"},
		{Reason{Verdict: NoRoom, Wish: "p", Search: Search{Machines: 1, Known: 4, Whole: true}},
			"no-room: stopping all that may be stopped would not make room for it; it may run on 1 machine of 4"},
		{Reason{Verdict: NoRoom, Wish: "p", Search: Search{Machines: 512, Known: 900}},
			"no-room: no room was found for it on the 512 machines searched last, even by stopping all that may be stopped"},
		{Reason{Verdict: Kept, Place: place(func(*Place) {})},
			"kept: a place is kept on m: what runs on a stops, which loses 1m0s of work and 9m0s of sold time; nothing else that " +
				"makes room for it loses less work; in its stead stopping what runs on b (n) would lose 5m0s of work and 2m0s of sold " +
				"time"},
		{Reason{Verdict: Kept, Place: place(func(pl *Place) { pl.Spared = nil })},
			"kept: a place is kept on m: what runs on a stops, which loses 1m0s of work and 9m0s of sold time; there is no other way " +
				"to make room for it"},
		{Reason{Verdict: Kept, Place: place(func(pl *Place) { pl.Spared, pl.Stops = nil, []job.SliceID{"a", "c"} })},
			"kept: a place is kept on m: what runs on a, c stops, which loses 1m0s of work and 9m0s of sold time; every way to make " +
				"room for it stops some of that"},
		{Reason{Verdict: Kept, Place: place(func(pl *Place) { pl.Search.Whole, pl.Spared = false, nil })},
			"kept: a place is kept on m: what runs on a stops, which loses 1m0s of work and 9m0s of sold time; of what was compared, " +
				"on 2 machines, nothing loses less work"},
		{Reason{Verdict: Kept, Place: place(func(pl *Place) { pl.Search.Avoided, pl.Spared = 1, nil; pl.Search.Whole = false })},
			"kept: a place is kept on m: what runs on a stops, which loses 1m0s of work and 9m0s of sold time; of what was compared, " +
				"on 1 machine, nothing loses less work"},
		{Reason{Verdict: Kept, Place: place(func(pl *Place) {
			pl.Search.Avoided, pl.Search.Free, pl.Spared[0].Avoided, pl.Spared[0].Cost = 1, 1, true, Cost{}
		})},
			"kept: a place is kept on m: what runs on a stops, which loses 1m0s of work and 9m0s of sold time; nothing else that " +
				"makes room for it loses less work, but on machines where a place for it, or for others like it, was not used; in its " +
				"stead stopping what runs on b (n) would lose 0s of work and 0s of sold time; room that seems to be free on 1 machine " +
				"was not used"},
		{Reason{Verdict: Kept, Place: place(func(pl *Place) { pl.Search.Avoided, pl.Search.Last, pl.Spared = 2, true, nil })},
			"kept: a place is kept on m: what runs on a stops, which loses 1m0s of work and 9m0s of sold time; there is no other way " +
				"to make room for it; a place there was not used before, and there was none on another machine"},
		{Reason{Verdict: Kept, Place: place(func(pl *Place) { pl.Stops = nil })},
			"kept: a place is kept on m, where nothing has to be stopped"},
		{Reason{Verdict: Kept, Place: place(func(pl *Place) { pl.Group, pl.Open, pl.Search.Whole, pl.Spared = "g", true, false, nil })},
			"kept: a place is kept on m for one that is still to come: what runs on a stops once that is admitted, which loses 1m0s " +
				"of work and 9m0s of sold time; of what was compared, on 2 machines, nothing loses less work"},
		{Reason{Verdict: Kept, Place: place(func(pl *Place) { pl.Group, pl.From, pl.Search.Whole, pl.Spared = "g", 5, false, nil })},
			"kept: a place is kept on m for one that is still to come: what runs on a stops when its time comes, which loses 1m0s of " +
				"work and 9m0s of sold time; of what was compared, on 2 machines, nothing loses less work"},
	} {
		if got := fmt.Sprintf("%v: %v", c.r.Verdict, c.r); got != c.want {
			t.Errorf("it is\n%s\nwant\n%s", got, c.want)
		}
	}
}

// TestWhyASubjobIsSparedInWords: by what decided, in the order in which costs are compared.
func TestWhyASubjobIsSparedInWords(t *testing.T) {
	pl := &Place{Machine: "m", Stops: []job.SliceID{"a"}, Cost: Cost{time.Minute, time.Hour}}
	for _, c := range []struct {
		w    Way
		want string
	}{
		{Way{Stops: []job.SliceID{"b"}, Cost: Cost{2 * time.Minute, 0}},
			"stopping it would lose 2m0s of work and 0s of sold time, and stopping what runs on a (m) loses 1m0s of work and 1h0m0s " +
				"of sold time"},
		{Way{Stops: []job.SliceID{"b", "c"}, Cost: pl.Cost},
			"stopping what runs on b, c would lose 1m0s of work and 1h0m0s of sold time, and stopping what runs on a (m) loses as " +
				"much with fewer subjobs"},
		{Way{Stops: []job.SliceID{"b"}, Cost: pl.Cost},
			"stopping it would lose 1m0s of work and 1h0m0s of sold time, and stopping what runs on a (m) loses as much"},
		{Way{Stops: []job.SliceID{"b"}, Avoided: true},
			"stopping it would lose 0s of work and 0s of sold time; machines where a place for the one that waits, or for others like " +
				"it, was not used come last"},
	} {
		if got := pl.Sparing(&c.w); got != c.want {
			t.Errorf("it is\n%s\nwant\n%s", got, c.want)
		}
	}
}

// TestWhatWasCompared: the sentence about a place counts neither machines without room nor what a wish can't use, and says that nothing
// else loses less only where all was compared.
func TestWhatWasCompared(t *testing.T) {
	cost := costs(map[job.SliceID]Cost{
		"m/0": {3 * time.Minute, 0}, "m/1": {2 * time.Minute, 0}, "n/0": {4 * time.Minute, 0}, "tiny/0": {0, 0},
		"d/1g-0": {time.Minute, 0}, "d/1g-6": {0, 0},
	})
	for name, c := range map[string]struct {
		machines []*Machine
		wish     *Wish
		want     string
		search   Search
		spared   string
	}{
		"counted: other machines, and the other subjob of its own": {
			[]*Machine{counted("m", 2, 2), counted("n", 1, 1), other("tiny")}, wish("p", 1),
			"nothing else that makes room for it loses less work; in its stead stopping what runs on m/0 (m) would lose 3m0s of work " +
				"and 0s of sold time", Search{Machines: 3, Known: 3, Places: 2, Whole: true}, "[m/0] [n/0]",
		},
		"two of a machine: what is left is no way": {
			[]*Machine{counted("m", 2, 2), counted("n", 1, 1)}, wish("p", 2), "every way to make room for it stops some of that",
			Search{Machines: 2, Known: 2, Places: 1, Whole: true}, "",
		},
		"devices: the subjob beside the device that is wanted is no way, and costs less": {
			[]*Machine{board("d", 0, 3, 6)}, deviceWish("p", 1, "3g"),
			"nothing else that makes room for it loses less work; in its stead stopping what runs on d/1g-3 (d) would lose 16m40s of " +
				"work and 1h0m0s of sold time",
			Search{Machines: 1, Known: 1, Places: 1, Whole: true}, "[d/1g-3]",
		},
		"of two kinds of devices the first that fits is taken: not all is compared": {
			[]*Machine{board("d", 0, 3)}, choosing("p", "3g", "7g"),
			"of what was compared, on 1 machine, nothing loses less work; in its stead stopping what runs on d/1g-3 (d) would lose " +
				"16m40s of work and 1h0m0s of sold time", Search{Machines: 1, Known: 1, Places: 1}, "[d/1g-3]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := New()
			for _, m := range c.machines {
				k.Hear(m)
			}
			k.Wish(c.wish)
			k.Decide(start.Add(1000*time.Second), cost)
			got := k.Places()
			if len(got) != 1 {
				t.Fatalf("kept are %v", got)
			}
			if got[0].Basis() != c.want || got[0].Search != c.search {
				t.Errorf("of %+v it is\n%s\nwant %+v\n%s", got[0].Search, got[0].Basis(), c.search, c.want)
			}
			text := ""
			for i := range got[0].Spared {
				text += fmt.Sprint(" ", got[0].Spared[i].Stops)
			}
			if text != "" && text[1:] != c.spared || text == "" && c.spared != "" {
				t.Errorf("spared are%s, want %s", text, c.spared)
			}
		})
	}
}

// other is a machine with a subjob of ours on a device of another kind.
func other(name string) *Machine {
	m := counted(name, 1, 1)
	m.Resources[0].Name, m.Tenants[0].Asks[0].Resource = "tiny", "tiny"
	return m
}

// choosing is a wish for one device of the first of these profiles that there is room for.
func choosing(id string, profiles ...string) *Wish {
	w := deviceWish(id, 1, profiles[0])
	for _, p := range profiles[1:] {
		r := &w.Claims[0].Requests[0]
		r.Choices = append(r.Choices, profile(1, p)[0].Choices[0])
	}
	return w
}

// TestReasonsOfAllWhoWait: in the order of their waiting, places ahead and groups among them, whatever the order in which they came.
func TestReasonsOfAllWhoWait(t *testing.T) {
	k := New()
	k.Hear(counted("m", 2, 2))
	late := wish("late", 1)
	late.Since = at(time.Second)
	k.Wish(late)
	k.Wish(wish("large", 9))
	lost := wish("lost", 1)
	lost.Blocked = true
	k.Wish(lost)
	member := *wish("member", 1)
	member.Who = "pod w, which waits for it"
	k.Expect(&Group{ID: "g", Since: at(2 * time.Second), Admitted: true, Parts: []Part{{N: 1, Like: member}}})
	wide := *wish("wide", 5)
	k.Expect(&Group{ID: "h", Since: at(3 * time.Second), Admitted: true, Parts: []Part{{N: 2, Like: wide}}})
	k.Decide(at(4*time.Second), nil)
	got := ""
	for _, r := range k.Reasons(at(4 * time.Second)) {
		got += fmt.Sprintf("%s%s of %s is %v\n", r.Wish, NameOf(" "+r.Who), r.Group, r.Verdict)
	}
	want := "large pod large of  is no-room\nlost pod lost of  is blocked\nlate pod late of  is kept\ng/1 pod w of g is kept\n pod " +
		"wide of h is no-room\n"
	if got != want {
		t.Errorf("they are\n%swant\n%s", got, want)
	}
}
