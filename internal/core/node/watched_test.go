package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// watched is the word of a life of a watcher about two subjobs.
func (w *world) watched(life uint64, used quantity.Amount, first, second job.Token, a, b protocol.Stand) {
	w.Helper()
	w.step(protocol.Message{Kind: protocol.Pressure, From: executor, Body: &protocol.Strain{
		Capacity: 100 * gib, Used: used * gib, Room: 50 * gib, Watch: life,
		Uses: []protocol.Use{{Token: first, Resident: 20 * gib, Stand: a}, {Token: second, Resident: 60 * gib, Stand: b}},
	}})
}

// quiet: nobody is told to be suspended, to go on, or to end.
func (w *world) quiet(what string) {
	w.Helper()
	for _, m := range w.effects {
		if slices.Contains([]protocol.Kind{protocol.Suspend, protocol.Resume, protocol.Stop}, m.Kind) {
			w.Errorf("%s: %v is sent", what, m)
		}
	}
}

// TestANodeFollowsItsWatcher: it decides nothing while one lives, and knows what each lease does; nothing is granted until it is calm and
// nothing is suspended.
func TestANodeFollowsItsWatcher(t *testing.T) {
	w := booted(t)
	low, high := w.ranked(1, "a", protocol.Rank{Yields: true}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
	still, goes := protocol.Stand{State: protocol.IsSuspended, Since: w.now, Times: 1}, protocol.Stand{}
	w.watched(7, 93, low, high, goes, goes)
	w.quiet("over the line, and the watcher has done nothing yet")
	w.watched(7, 93, low, high, still, goes)
	w.quiet("one is suspended already")
	same(t, "phase", w.n.leases.Of(low).Phase(), leases.Suspended)
	if why := w.n.Slices(w.now)[0].Reason; !strings.HasPrefix(why, "suspended") {
		t.Errorf("it is shown as %q", why)
	}
	for range 4 {
		w.pass(20 * time.Second)
		w.quiet("its timer is the watcher's")
		w.watched(7, 93, low, high, still, goes)
		w.quiet("its timer is the watcher's")
	}
	w.watched(7, 60, low, high, still, goes)
	w.step(ask(3, "a", 30*time.Minute, 40*time.Minute))
	w.must(protocol.Refused)
	w.watched(7, 60, low, high, protocol.Stand{Resumed: w.now, Times: 1}, goes)
	w.quiet("it goes on")
	l := w.n.leases.Of(low)
	if l.Phase() != leases.Running || l.Stand() != (leases.Stand{Resumed: w.now, Times: 1}) {
		t.Errorf("it is %v, and stood %+v", l.Phase(), l.Stand())
	}
	w.step(ask(4, "a", 30*time.Minute, 40*time.Minute))
	w.must(protocol.Granted)
	w.watched(7, 93, low, high, protocol.Stand{State: protocol.IsToYield, Since: w.now, Times: 1}, goes)
	if m := w.must(protocol.Stop); m.Token != low || !m.Body.(*protocol.Halt).Short || m.Body.(*protocol.Halt).Now {
		t.Errorf("it is asked to yield by %+v", m.Body)
	}
	w.watched(7, 98, low, high, protocol.Stand{State: protocol.IsEnded, Since: w.now, Times: 1}, protocol.Stand{State: protocol.IsEnded})
	if h := w.must(protocol.Stop).Body.(*protocol.Halt); !h.Now || h.Text == "" {
		t.Errorf("it is ended by %+v", h)
	}
	same(t, "both are being ended", w.n.leases.Of(high).Stand().Reclaimed && w.n.leases.Of(low).Stand().Reclaimed, true)
}

// TestAnotherLifeBeginsWithEverythingGoingOn, whoever decided before.
func TestAnotherLifeBeginsWithEverythingGoingOn(t *testing.T) {
	still, goes := protocol.Stand{State: protocol.IsSuspended, Since: 5, Times: 1}, protocol.Stand{}
	w := booted(t)
	low, high := w.ranked(1, "a", protocol.Rank{}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
	w.watched(7, 93, low, high, still, goes)
	w.watched(9, 60, low, high, goes, goes) // the next watcher's first word
	same(t, "phase under the next watcher", w.n.leases.Of(low).Phase(), leases.Running)
	w.watched(9, 93, low, high, still, goes)
	w.pressed(86, 20, 60, low, high) // and none lives: the node decides
	same(t, "phase without a watcher", w.n.leases.Of(low).Phase(), leases.Running)
	w.pressed(93, 20, 60, low, high)
	same(t, "the node suspends", w.must(protocol.Suspend).Token, low)
	w.watched(11, 60, low, high, goes, goes)
	same(t, "phase under a watcher again", w.n.leases.Of(low).Phase(), leases.Running)
	w.pass(time.Minute)
	w.quiet("nothing of the node's entry is left")
}

// TestWhateverAWatcherSays the node takes, with words lost, doubled and out of order, and knows what the last one said.
func TestWhateverAWatcherSays(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := booted(t)
		low, high := w.ranked(1, "a", protocol.Rank{Yields: true}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
		draw := func() protocol.Stand {
			return protocol.Stand{State: protocol.Stance(rapid.IntRange(0, protocol.Stances-1).Draw(rt, "state")), Since: w.now,
				Times: rapid.Uint8Range(0, 3).Draw(rt, "times")}
		}
		for range rapid.IntRange(1, 12).Draw(rt, "words") {
			switch rapid.IntRange(0, 5).Draw(rt, "who") {
			case 0:
				w.pressed(quantity.Amount(rapid.SampledFrom([]int{60, 86, 93, 98}).Draw(rt, "used")), 20, 60, low, high)
			case 1:
				w.still(low, rapid.Bool().Draw(rt, "still"))
			case 2:
				w.pass(time.Duration(rapid.IntRange(0, 40).Draw(rt, "passes")) * time.Second)
			default:
				a, b := draw(), draw()
				w.watched(uint64(rapid.IntRange(1, 3).Draw(rt, "life")), 93, low, high, a, b)
				for token, s := range map[job.Token]protocol.Stand{low: a, high: b} {
					l := w.n.leases.Of(token)
					if l == nil || l.Phase() == leases.Stopping {
						continue
					}
					if (l.Phase() == leases.Suspended) != (s.State == protocol.IsSuspended) || s.State >= protocol.IsToYield {
						rt.Fatalf("%v is %v, and the watcher says %v", token, l.Phase(), s.State)
					}
				}
			}
		}
	})
}
