package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

const gib = quantity.Amount(1) << 30

// ranked is a lease of a rank whose process was seen, a minute ago.
func (w *world) ranked(id uint64, s job.SliceID, r protocol.Rank, members int) job.Token {
	w.Helper()
	w.step(ask(id, s, w.now.Sub(t0), w.now.Sub(t0)+20*time.Minute))
	m := redeem(w.must(protocol.Granted))
	m.Body.(*protocol.Work).Rank, m.Body.(*protocol.Work).Plan.Members = r, members
	w.step(m)
	w.must(protocol.Start)
	w.step(protocol.Message{Kind: protocol.Started, From: executor, Token: m.Token, Body: &protocol.Beginning{At: w.now}})
	return m.Token
}

// pressed is a host of 100 GiB, each of two subjobs with so much of it, and room for more outside, but over the emergency line.
func (w *world) pressed(used, a, b quantity.Amount, first, second job.Token) {
	w.Helper()
	room := 50 * gib
	if used > 97 { // what is outside has ended too
		room = 0
	}
	w.step(protocol.Message{Kind: protocol.Pressure, From: executor, Body: &protocol.Strain{
		Capacity: 100 * gib, Used: used * gib, Room: room, Uses: []protocol.Use{{Token: first, Resident: a * gib},
			{Token: second, Resident: b * gib}},
	}})
}

func (w *world) still(t job.Token, still bool) {
	w.Helper()
	w.step(protocol.Message{Kind: protocol.Suspended, From: executor, Token: t, Body: &protocol.Stillness{Still: still}})
}

func (w *world) pass(d time.Duration) {
	w.Helper()
	w.now = w.now.Add(d)
	w.step(protocol.Message{Kind: protocol.Tick})
}

// TestTheLowestIsSuspendedUntilThereIsRoom: the whole of an entry that ends well. Meanwhile nothing is granted, and what is sold does not
// begin.
func TestTheLowestIsSuspendedUntilThereIsRoom(t *testing.T) {
	w := booted(t)
	low := w.ranked(1, "a", protocol.Rank{Yields: true}, 0)
	high := w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
	w.pressed(80, 10, 60, low, high)
	same(t, "effects below the lines", len(w.effects), 0)
	w.pressed(93, 20, 60, low, high)
	same(t, "suspended", w.must(protocol.Suspend).Token, low)
	view := w.must(protocol.Offer).Body.(*protocol.SliceView)
	if view.Usable || view.Why != inventory.ShortOfMemory {
		t.Errorf("the slices are offered as usable %v, since %q", view.Usable, view.Why)
	}
	same(t, "state", w.n.Slices(w.now)[0].Reason, "suspended since "+timeline.Clock(w.now)+
		", for the first time; it goes on or is ended at "+timeline.Clock(w.now.Add(30*time.Second))+": "+inventory.ShortOfMemory)
	w.step(ask(3, "a", 30*time.Minute, 40*time.Minute))
	if why := w.must(protocol.Refused).Body.(*protocol.Refusal).Text; !strings.Contains(why, inventory.ShortOfMemory) {
		t.Errorf("an ask is refused with %q", why)
	}
	w.step(protocol.Message{Kind: protocol.Exited, From: executor, Token: high,
		Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.Done, Progress: 100}}})
	if s := w.n.Slices(w.now)[1]; s.State != "reserved" || !strings.Contains(s.Reason, "95232 of 102400 MiB used") ||
		!strings.Contains(s.Reason, "suspend "+low.String()) {
		t.Errorf("an idle slice is %s: %s", s.State, s.Reason)
	}
	w.pass(time.Second)
	same(t, "asked again to be suspended", w.must(protocol.Suspend).Token, low)
	w.still(low, true)
	w.pass(5 * time.Second)
	if m := w.sent(protocol.Suspend); m != nil {
		t.Error("what is suspended is told to be again")
	}
	w.pressed(86, 0, 60, low, high)
	if m := w.sent(protocol.Resume); m != nil {
		t.Error("it goes on before it is calm")
	}
	w.pressed(60, 0, 60, low, high)
	same(t, "goes on", w.must(protocol.Resume).Token, low)
	w.still(low, true) // said before it heard that
	w.pass(time.Second)
	same(t, "asked again to go on", w.must(protocol.Resume).Token, low)
	w.still(low, false)
	same(t, "phase", w.n.leases.Of(low).Phase(), leases.Running)
	w.step(ask(4, "a", 30*time.Minute, 40*time.Minute))
	w.must(protocol.Refused)
	w.pressed(60, 10, 60, low, high) // and nothing is suspended
	w.step(ask(5, "a", 30*time.Minute, 40*time.Minute))
	w.must(protocol.Granted)
	w.pass(10 * time.Minute)
	if m := w.sent(protocol.Stop); m != nil && m.Body.(*protocol.Halt).Now {
		t.Errorf("its entry is over, and it is ended: %+v", m.Body)
	}
}

// TestAnEntryEndsWithinItsTimer: whether or not the executor says anything more.
func TestAnEntryEndsWithinItsTimer(t *testing.T) {
	for _, c := range []struct {
		name    string
		yields  bool
		confirm bool
	}{{"one that can yield", true, true}, {"one that can't", false, true}, {"one that never says that it stands", false, false}} {
		w := booted(t)
		low, high := w.ranked(1, "a", protocol.Rank{Yields: c.yields}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
		w.pressed(93, 20, 60, low, high)
		same(t, c.name+" is suspended", w.must(protocol.Suspend).Token, low)
		if c.confirm {
			w.still(low, true)
		}
		w.pass(20 * time.Second)
		if asked := w.sent(protocol.Stop); (asked != nil) != c.yields || asked != nil &&
			(asked.Token != low || asked.Body.(*protocol.Halt).Now) {
			t.Errorf("%s: after 20 s it is told %+v", c.name, asked)
		}
		if reason := w.n.Slices(w.now)[0].Reason; strings.HasPrefix(reason, "asked to yield since "+
			timeline.Clock(w.now.Add(-20*time.Second))) != c.yields {
			t.Errorf("%s: its slice is shown as %q", c.name, reason)
		}
		w.pass(9900 * time.Millisecond)
		if m := w.sent(protocol.Stop); m != nil && m.Body.(*protocol.Halt).Now {
			t.Errorf("%s: it is ended before its timer", c.name)
		}
		w.pass(100 * time.Millisecond)
		m := w.must(protocol.Stop)
		if h := m.Body.(*protocol.Halt); m.Token != low || !h.Now || !strings.Contains(h.Text, inventory.ShortOfMemory) ||
			!strings.Contains(h.Text, "93.0%") {
			t.Errorf("%s: at its timer it is told %+v", c.name, h)
		}
	}
}

// TestWhoCannotBeSuspendedIsAskedToYield: its executor says so, once. Its entry is over, nothing excuses it, and it is not suspended again.
func TestWhoCannotBeSuspendedIsAskedToYield(t *testing.T) {
	w := booted(t)
	low, high := w.ranked(1, "a", protocol.Rank{Yields: true}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
	w.pressed(93, 20, 60, low, high)
	same(t, "is suspended", w.must(protocol.Suspend).Token, low)
	w.step(protocol.Message{Kind: protocol.Suspended, From: executor, Token: low, Body: &protocol.Stillness{Refused: true}})
	if l := w.n.leases.Of(low); l.Phase() != leases.Running || l.Stand() != (leases.Stand{}) {
		t.Errorf("it is %v, and stood %+v", l.Phase(), l.Stand())
	}
	w.step(protocol.Message{Kind: protocol.Suspended, From: executor, Token: low, Body: &protocol.Stillness{Refused: true}}) // again
	w.pressed(93, 20, 60, low, high)
	if m := w.sent(protocol.Suspend); m != nil {
		t.Errorf("%v is suspended", m.Token)
	}
	if m := w.must(protocol.Stop); m.Token != low || !m.Body.(*protocol.Halt).Short || m.Body.(*protocol.Halt).Now {
		t.Errorf("%v is told %+v", m.Token, m.Body)
	}
}

// TestAMemberOfAGangIsNeverSuspendedAlone: it is the lowest, and the next above it is suspended in its place. What ends at the emergency
// line is the lowest all the same, and for its time nobody above that one: it goes on, confirmed to be suspended or not.
func TestAMemberOfAGangIsNeverSuspendedAlone(t *testing.T) {
	w := booted(t)
	low, high := w.ranked(1, "a", protocol.Rank{Class: protocol.Collective}, 2),
		w.ranked(2, "b", protocol.Rank{Class: protocol.Collective, Priority: 1}, 0)
	for times := range 3 {
		w.pressed(93, 20, 60, low, high)
		if m := w.must(protocol.Suspend); m.Token != high {
			t.Errorf("%v is suspended", m.Token)
		}
		if times > 0 {
			w.still(high, true)
		}
		w.pass(30*time.Second - 1)
		w.never(protocol.Resume)
		w.pass(1)
		w.never(protocol.Stop)
		same(t, "goes on", w.must(protocol.Resume).Token, high)
		w.still(high, false)
	}
	w.pressed(93, 20, 60, low, high)
	w.never(protocol.Suspend)
	w.pressed(98, 20, 60, low, high)
	if m := w.must(protocol.Stop); m.Token != low || !m.Body.(*protocol.Halt).Now {
		t.Errorf("at the emergency line %v is told %+v", m.Token, m.Body)
	}
}

// TestABootHasEverythingGoOn: it knows of no entry, and so of none that would end.
func TestABootHasEverythingGoOn(t *testing.T) {
	w := booted(t)
	low, high := w.ranked(1, "a", protocol.Rank{}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
	w.pressed(93, 20, 60, low, high)
	w.still(low, true)
	w.restart()
	w.inventory(protocol.Found{Token: low, Job: "j", Slice: "a", Alive: true, Still: true, Started: t0},
		protocol.Found{Token: high, Job: "j", Slice: "b", Alive: true, Started: t0})
	same(t, "goes on", w.must(protocol.Resume).Token, low)
	w.pass(time.Second)
	same(t, "asked again", w.must(protocol.Resume).Token, low)
	w.still(low, false)
	w.pass(time.Minute)
	if m := w.sent(protocol.Stop); m != nil {
		t.Errorf("%v is stopped: %+v", m.Token, m.Body)
	}
}

// TestWhoIsCancelledWhileSuspendedIsStopped: by its home's word, which the executor carries out whatever its state.
func TestWhoIsCancelledWhileSuspendedIsStopped(t *testing.T) {
	w := booted(t)
	low, high := w.ranked(1, "a", protocol.Rank{}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
	w.pressed(93, 20, 60, low, high)
	w.still(low, true)
	w.step(protocol.Message{Kind: protocol.Stop, From: zone, Token: low, Body: &protocol.Halt{Text: "cancelled"}})
	m := w.must(protocol.Stop)
	same(t, "stopped", m.Token, low)
	same(t, "why", m.Body.(*protocol.Halt).Text, "cancelled")
	same(t, "for want of memory", m.Body.(*protocol.Halt).Short, false)
	w.step(protocol.Message{Kind: protocol.Exited, From: executor, Token: low,
		Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.Stopped}}})
	same(t, "ended", w.n.leases.Of(low).Ended(), true)
}

// TestWhoIsStoppedHasItsGrace: its entry is over when its home stops it, unless it was asked to yield for its node's memory before.
func TestWhoIsStoppedHasItsGrace(t *testing.T) {
	for _, asked := range []bool{false, true} {
		w := booted(t)
		low, high := w.ranked(1, "a", protocol.Rank{Yields: asked}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
		w.pressed(93, 20, 60, low, high)
		w.still(low, true)
		w.pass(25 * time.Second)
		w.step(protocol.Message{Kind: protocol.Stop, From: zone, Token: low, Body: &protocol.Halt{Text: "cancelled"}})
		w.pass(6 * time.Second)
		if m := w.sent(protocol.Stop); (m != nil && m.Body.(*protocol.Halt).Now) != asked {
			t.Errorf("asked to yield (%v) and stopped, at the timer of its entry it is told %+v", asked, m)
		}
		w.pressed(93, 20, 60, low, high)
		if m := w.sent(protocol.Stop); m != nil && m.Body.(*protocol.Halt).Now && !asked {
			t.Errorf("with news of the memory it is told %+v", m)
		}
	}
}

// TestWhoWasSuspendedIsExcused: what it completed counts, and that it came no further is nobody's failure.
func TestWhoWasSuspendedIsExcused(t *testing.T) {
	for _, c := range []struct {
		stood     bool
		how, want job.Outcome
	}{{true, job.DeadlineKilled, job.Stopped}, {true, job.Yielded, job.Stopped}, {true, job.Done, job.Done},
		{true, job.ExitFailed, job.ExitFailed}, {false, job.DeadlineKilled, job.DeadlineKilled}} {
		w := booted(t)
		low, high := w.ranked(1, "a", protocol.Rank{}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
		if c.stood {
			w.pressed(93, 20, 60, low, high)
		}
		w.step(protocol.Message{Kind: protocol.Exited, From: executor, Token: low,
			Body: &protocol.Conclusion{Result: &job.Result{Outcome: c.how, Progress: 40, Checkpoint: true}}})
		r := w.must(protocol.Result).Body.(*protocol.Conclusion).Result
		if r.Outcome != c.want || r.Progress != 40 || !r.Checkpoint {
			t.Errorf("%v after it was suspended (%v) is %v with %d", c.how, c.stood, r.Outcome, r.Progress)
		}
	}
}

// TestAWordOfMemoryGrowsOld: a node whose executor has fallen silent about its memory is short for no longer than an entry may last.
func TestAWordOfMemoryGrowsOld(t *testing.T) {
	w := booted(t)
	high := w.ranked(1, "a", protocol.Rank{Class: protocol.Collective, Priority: 1}, 2) // nothing can be done about it
	w.pressed(93, 60, 0, high, job.Token{})
	w.step(ask(2, "b", time.Minute, 10*time.Minute))
	w.must(protocol.Refused)
	w.pass(29900 * time.Millisecond)
	w.step(ask(3, "b", time.Minute, 10*time.Minute))
	w.must(protocol.Refused)
	w.pass(100 * time.Millisecond)
	if v := w.must(protocol.Offer).Body.(*protocol.SliceView); !v.Usable {
		t.Errorf("half a minute after the last word the slices are not usable: %s", v.Why)
	}
	w.step(ask(4, "b", time.Minute, 10*time.Minute))
	w.must(protocol.Granted)
	w.pressed(93, 60, 0, high, job.Token{})
	w.step(ask(5, "b", 11*time.Minute, 12*time.Minute))
	w.must(protocol.Refused)
}

// TestWhoHadToLeaveComesBackWhenThereIsRoom: calm alone is not enough, where the room that it had is another's still.
func TestWhoHadToLeaveComesBackWhenThereIsRoom(t *testing.T) {
	w := booted(t)
	low, high := w.ranked(1, "a", protocol.Rank{Yields: true}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1, Yields: true}, 0)
	press := func(a, b quantity.Amount) { // of a host of 100 bytes; each of the two was to have 10
		t.Helper()
		w.step(protocol.Message{Kind: protocol.Pressure, From: executor, Body: &protocol.Strain{
			Capacity: 100, Used: a + b, Uses: []protocol.Use{{Token: low, Resident: a}, {Token: high, Resident: b}},
		}})
	}
	press(11, 84)
	if h := w.must(protocol.Stop); h.Token != high {
		t.Fatalf("%v is told %+v, and the other has outgrown its plan", h.Token, h.Body)
	}
	w.step(protocol.Message{Kind: protocol.Exited, From: executor, Token: low,
		Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.Yielded, Progress: 40, Checkpoint: true}}})
	press(0, 83) // calm, and 10 more would not be
	w.step(ask(3, "a", 0, 10*time.Minute))
	w.must(protocol.Refused)
	press(0, 82)
	w.step(ask(4, "a", 0, 10*time.Minute))
	w.must(protocol.Granted)
}

// TestTheMemoryOfAGPUIsNotTheHosts: who has more on the host than was planned for its GPU has outgrown nothing, and of what had to leave
// it counts what it had here.
func TestTheMemoryOfAGPUIsNotTheHosts(t *testing.T) {
	w := newWorld(t)
	gpus := []protocol.Slice{device("a"), device("b")}
	for i := range gpus {
		gpus[i].Device = "GPU-" + string(gpus[i].ID)
	}
	w.step(protocol.Message{Kind: protocol.Inventory, From: executor, Body: &protocol.Stock{Slices: gpus}})
	low, high := w.ranked(1, "a", protocol.Rank{Yields: true}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1, Yields: true}, 0)
	press := func(a, b quantity.Amount) { // of a host of 100 bytes; each of the two was to have 10 of its GPU
		t.Helper()
		w.step(protocol.Message{Kind: protocol.Pressure, From: executor, Body: &protocol.Strain{
			Capacity: 100, Used: a + b, Uses: []protocol.Use{{Token: low, Resident: a}, {Token: high, Resident: b}},
		}})
	}
	press(11, 84)
	if h := w.must(protocol.Stop); h.Token != low {
		t.Fatalf("%v is told %+v, and the other is lower", h.Token, h.Body)
	}
	w.step(protocol.Message{Kind: protocol.Exited, From: executor, Token: low,
		Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.Yielded, Progress: 40, Checkpoint: true}}})
	press(0, 82) // calm, and the 11 that left would not be
	w.step(ask(3, "a", 0, 10*time.Minute))
	w.must(protocol.Refused)
	press(0, 81)
	w.step(ask(4, "a", 0, 10*time.Minute))
	w.must(protocol.Granted)
}

// TestRoomIsKeptForAWhileAlone: who had to leave may never come back, and what it had does not keep a host that is nearly empty from
// granting.
func TestRoomIsKeptForAWhileAlone(t *testing.T) {
	for _, c := range []struct {
		name    string
		used    quantity.Amount // of 100, by another subjob
		granted time.Duration   // after so long
	}{{"more than half is free", 46, 0}, {"there is not room for half of what may be used", 47, 2 * time.Minute},
		{"little is free", 80, 2 * time.Minute}} {
		w := newWorld(t)
		gpus := []protocol.Slice{device("a"), device("b")}
		for i := range gpus {
			gpus[i].Device = "GPU-" + string(gpus[i].ID) // so that all that is known of a subjob's memory is what it has
		}
		w.step(protocol.Message{Kind: protocol.Inventory, From: executor, Body: &protocol.Stock{Slices: gpus}})
		giant, other := w.ranked(1, "a", protocol.Rank{Yields: true}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1, Yields: true}, 0)
		press := func(a, b quantity.Amount) {
			t.Helper()
			w.step(protocol.Message{Kind: protocol.Pressure, From: executor, Body: &protocol.Strain{
				Capacity: 100, Used: a + b, Uses: []protocol.Use{{Token: giant, Resident: a}, {Token: other, Resident: b}},
			}})
		}
		press(94, 1)
		same(t, "asked to yield", w.must(protocol.Stop).Token, giant)
		left := w.now
		w.step(protocol.Message{Kind: protocol.Exited, From: executor, Token: giant,
			Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.Yielded, Progress: 40, Checkpoint: true}}})
		for asks := uint64(3); ; asks++ {
			press(0, c.used)
			w.step(ask(asks, "a", w.now.Sub(t0), w.now.Sub(t0)+time.Minute))
			if w.sent(protocol.Granted) != nil {
				break
			}
			w.must(protocol.Refused)
			if w.now.Sub(left) > 5*time.Minute {
				t.Fatalf("%s: nothing is granted any more", c.name)
			}
			w.pass(5 * time.Second)
		}
		same(t, c.name+": granted after", w.now.Sub(left), c.granted)
	}
}

// TestWhatOthersHaveIsNotWaitedFor: other programs fill the host to between the lines for good, and nothing of ours is left on it.
func TestWhatOthersHaveIsNotWaitedFor(t *testing.T) {
	w := booted(t)
	high := w.ranked(1, "a", protocol.Rank{Class: protocol.Collective, Priority: 1}, 2) // nothing can be done about it
	w.pressed(93, 3, 0, high, job.Token{})
	w.pressed(90, 1, 0, high, job.Token{})
	w.step(ask(2, "b", time.Minute, 10*time.Minute))
	w.must(protocol.Refused)
	w.step(protocol.Message{Kind: protocol.Exited, From: executor, Token: high,
		Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.Done, Progress: 100}}})
	w.pressed(93, 0, 0, high, job.Token{})
	w.step(ask(3, "b", time.Minute, 10*time.Minute))
	w.must(protocol.Refused)
	w.pressed(90, 0, 0, high, job.Token{})
	w.step(ask(4, "b", time.Minute, 10*time.Minute))
	w.must(protocol.Granted)
}

// TestASubjobOnSeveralSlicesLeavesNoneOfThemIdle: room is kept for as many of those that had to leave as idle slices could take, and where
// all of them find it that is over for good. The slices of one that runs, or is about to, count as they are many.
func TestASubjobOnSeveralSlicesLeavesNoneOfThemIdle(t *testing.T) {
	for _, c := range []struct {
		name string
		held bool            // the wide one is granted, and not redeemed yet
		room quantity.Amount // of 100 that are used when there is room for all: 10 each on two idle slices, and of what comes
	}{{"a lease", false, 72}, {"a grant", true, 62}} {
		for _, more := range []quantity.Amount{0, 1} {
			w := newWorld(t)
			w.step(protocol.Message{Kind: protocol.Inventory, From: executor,
				Body: &protocol.Stock{Slices: []protocol.Slice{device("a"), device("b"), device("c"), device("d")}}})
			low := w.ranked(1, "a", protocol.Rank{Yields: true}, 0)
			uses := []protocol.Use{{Token: low, Resident: 11}}
			wide := ask(2, "b", 0, 20*time.Minute)
			wide.Body.(*protocol.Asking).Also = []job.SliceID{"c"}
			if !c.held {
				w.step(wide)
				m := redeem(w.must(protocol.Granted))
				m.Body.(*protocol.Work).Also, m.Body.(*protocol.Work).Rank.Priority = wide.Body.(*protocol.Asking).Also, 1
				w.step(m)
				w.step(protocol.Message{Kind: protocol.Started, From: executor, Token: m.Token, Body: &protocol.Beginning{At: w.now}})
				uses = append(uses, protocol.Use{Token: m.Token, Resident: 10})
			}
			press := func(used quantity.Amount) {
				t.Helper()
				w.step(protocol.Message{Kind: protocol.Pressure, From: executor, Body: &protocol.Strain{Capacity: 100, Used: used,
					Uses: uses}})
			}
			press(95)
			same(t, "asked to yield", w.must(protocol.Stop).Token, low)
			uses = uses[1:]
			w.step(protocol.Message{Kind: protocol.Exited, From: executor, Token: low,
				Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.Yielded, Progress: 40, Checkpoint: true}}})
			if c.held {
				press(c.room + more + 1) // calm, with room for one
				w.step(wide)
				w.must(protocol.Granted)
			}
			press(c.room + more)
			w.pass(time.Second) // what is granted has lapsed
			press(83)
			w.step(ask(3, "a", w.now.Sub(t0), w.now.Sub(t0)+time.Minute))
			if granted := w.sent(protocol.Granted) != nil; granted != (more == 0) {
				t.Errorf("%s: room for all but %d, and then for none: granted %v", c.name, more, granted)
			}
		}
	}
}

// TestAHoldIsNotItsOwnObstacle: on an empty machine the last room for what had to leave is granted, so nothing more is, and what was
// granted is redeemed; where less is left by then, the hold that was made first is. Where something runs it takes room for one more.
func TestAHoldIsNotItsOwnObstacle(t *testing.T) {
	for _, c := range []struct {
		name           string
		busy           bool
		used, later    quantity.Amount // of 100, at the grants and at their redemption; the severe line is at 92
		granted, begun int
	}{
		{"empty, room for one", false, 80, 80, 1, 1},
		{"empty, room for three: beside the first there has to be room for one more", false, 60, 60, 3, 1},
		{"empty, others take the room for the second", false, 62, 80, 3, 1},
		{"empty, others take all room", false, 62, 83, 3, 0},
		{"busy, room for one", true, 80, 80, 1, 0},
		{"busy, room for three", true, 61, 61, 3, 0},
	} {
		w := newWorld(t)
		w.step(protocol.Message{Kind: protocol.Inventory, From: executor,
			Body: &protocol.Stock{Slices: []protocol.Slice{device("a"), device("b"), device("c"), device("d"), device("e")}}})
		var uses []protocol.Use
		if c.busy {
			uses = []protocol.Use{{Token: w.ranked(9, "d", protocol.Rank{Priority: 1, Yields: true}, 0), Resident: 10}}
		}
		low := w.ranked(1, "a", protocol.Rank{Yields: true}, 0)
		press := func(used quantity.Amount, more ...protocol.Use) {
			t.Helper()
			w.step(protocol.Message{Kind: protocol.Pressure, From: executor,
				Body: &protocol.Strain{Capacity: 100, Used: used, Uses: append(more, uses...)}})
		}
		press(95, protocol.Use{Token: low, Resident: 10})
		same(t, c.name+": asked to yield", w.must(protocol.Stop).Token, low)
		w.step(protocol.Message{Kind: protocol.Exited, From: executor, Token: low,
			Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.Yielded, Progress: 40, Checkpoint: true}}})
		press(c.used)
		var held []protocol.Message
		for i, id := range []job.SliceID{"a", "b", "c"} {
			w.step(ask(uint64(2+i), id, 0, 10*time.Minute))
			if g := w.sent(protocol.Granted); g != nil {
				held = append(held, *g)
			} else if why := w.must(protocol.Refused).Body.(*protocol.Refusal).Text; !strings.Contains(why, inventory.KeepsRoom) {
				t.Errorf("%s: an ask is refused with %q", c.name, why)
			}
		}
		same(t, c.name+": granted", len(held), c.granted)
		if s := w.n.Slices(w.now)[4]; s.State != "reserved" || !strings.HasPrefix(s.Reason, inventory.KeepsRoom+": 0 MiB more") ||
			!strings.HasSuffix(s.Reason, "until "+timeline.Clock(w.now.Add(2*time.Minute))+" at most") {
			t.Errorf("%s: an idle slice is %s: %s", c.name, s.State, s.Reason)
		}
		press(c.later)
		begun := 0
		for _, g := range slices.Backward(held) { // the last first
			w.step(redeem(g))
			if w.sent(protocol.Leased) != nil {
				begun++
			} else if why := w.must(protocol.RedeemRefused).Body.(*protocol.Refusal).Text; !strings.Contains(why, inventory.KeepsRoom) {
				t.Errorf("%s: redeeming is refused with %q", c.name, why)
			}
		}
		same(t, c.name+": begun", begun, c.begun)
	}
}
