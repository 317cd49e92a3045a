package node

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

func othersHold(s job.SliceID, list ...protocol.Reservation) protocol.Message {
	return protocol.Message{Kind: protocol.Foreign, From: executor, Body: &protocol.Intrusion{Slice: s, Closures: list}}
}

func stock(found []protocol.Found, ids ...job.SliceID) protocol.Message {
	list := &protocol.Stock{Found: found}
	for _, id := range ids {
		list.Slices = append(list.Slices, device(id))
	}
	return protocol.Message{Kind: protocol.Inventory, From: executor, Body: list}
}

// TestAWindowBeginsWhereAHoldEnds, and ends where another begins; who stays longer is no surprise to anybody.
func TestAWindowBeginsWhereAHoldEnds(t *testing.T) {
	w := booted(t)
	said := othersHold("a",
		protocol.Reservation{Kind: protocol.ForForeign, End: at(time.Minute), Source: "pod x"},
		protocol.Reservation{Kind: protocol.ForMaintenance, Start: at(5 * time.Minute), End: at(6 * time.Minute), Source: "calendar"})
	w.step(said)
	w.recorded()
	gaps := w.gaps("a")
	same(t, "first gap", gaps[0], protocol.Gap{Start: at(time.Minute), End: at(5 * time.Minute), Until: protocol.ForMaintenance})
	same(t, "second gap", gaps[1], protocol.Gap{Start: at(6 * time.Minute), End: quantity.Never})
	w.step(said)
	w.never(protocol.Offer)
	ahead := w.lease(1, "a", time.Minute, 3*time.Minute)

	w.wait(time.Minute) // the Pod is still there
	w.never(protocol.Start)
	same(t, "gaps while it stays", len(w.gaps("a")), 0)
	w.wait(10 * time.Second)
	w.never(protocol.Start)
	w.step(othersHold("a"))
	same(t, "what was sold ahead begins", w.must(protocol.Start).Token, ahead)
	same(t, "gap after it", w.gaps("a")[0], protocol.Gap{Start: at(3 * time.Minute), End: quantity.Never})
}

// TestWhatIsSoldBehindAHoldThatStaysIsNotStarted: its whole time passes, and its home hears why.
func TestWhatIsSoldBehindAHoldThatStaysIsNotStarted(t *testing.T) {
	w := booted(t)
	w.step(othersHold("a", protocol.Reservation{Kind: protocol.ForForeign, End: at(time.Minute), Source: "pod x"}))
	w.lease(1, "a", time.Minute, 2*time.Minute)
	w.wait(time.Minute)
	w.wait(time.Minute)
	same(t, "outcome", w.result().Outcome, job.Stopped)
	if d := w.result().Detail; d != "not started within its window: a: taken (foreign) for pod x from 1970-01-12T13:46:40.000Z until "+
		"further notice" {
		t.Errorf("detail %q", d)
	}
}

// TestWhatWaitsForAHoldBeginsAtItsEnd: nobody has to say anything.
func TestWhatWaitsForAHoldBeginsAtItsEnd(t *testing.T) {
	for name, r := range map[string]protocol.Reservation{
		"once":    {Kind: protocol.ForMaintenance, Start: at(30 * time.Second), End: at(90 * time.Second)},
		"repeats": {Kind: protocol.ForServing, Start: at(-70 * time.Second), End: at(-10 * time.Second), Every: 100 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			w := booted(t)
			sold := w.lease(1, "a", time.Minute, 3*time.Minute)
			w.step(othersHold("a", r))
			w.wait(time.Minute)
			w.never(protocol.Start)
			wake := w.must(protocol.Wake).Body.(*protocol.Moment).At
			same(t, "looks again", wake, at(90*time.Second))
			w.wait(wake.Sub(w.now))
			same(t, "begins", w.must(protocol.Start).Token, sold)
		})
	}
}

// TestAHoldThatMayTruncates: what runs gets a new end and is told, once; what has not begun is withdrawn.
func TestAHoldThatMayTruncates(t *testing.T) {
	w := booted(t)
	running := w.running(1, "a", 0, 10*time.Minute)
	w.lease(2, "a", 11*time.Minute, 12*time.Minute)
	notice := protocol.Reservation{Kind: protocol.ForReclaim, Start: at(time.Minute), End: quantity.Never, Source: "pod y waits",
		Truncate: true}
	w.step(othersHold("a", protocol.Reservation{Kind: protocol.ForReclaim, End: quantity.Never, Source: "pod y waits"}, notice))
	w.recorded(protocol.Truncated, protocol.SubjobEnded)
	d := w.must(protocol.Deadline)
	same(t, "whose", d.Token, running)
	same(t, "end", d.Body.(*protocol.Shift).End, at(time.Minute))
	same(t, "why", d.Body.(*protocol.Shift).Text, "time taken (reclaim) by pod y waits")
	w.now = w.now.Add(10 * time.Second)
	w.step(othersHold("a", notice, protocol.Reservation{Kind: protocol.ForReclaim, End: quantity.Never, Source: "pod y still waits"}))
	w.recorded()

	// It is gone before: nothing is sold there all the same, until the Pod is placed or gone.
	w.step(exited(running, job.Yielded, 10))
	same(t, "gaps", len(w.gaps("a")), 0)
	w.step(othersHold("a"))
	same(t, "gap", w.gaps("a")[0].End, quantity.Never)
}

// TestAHoldIsHeardAgainAfterARestart: it is no fact. What it may truncate is cut when it is known what runs there.
func TestAHoldIsHeardAgainAfterARestart(t *testing.T) {
	w := booted(t)
	running := w.running(1, "a", 0, 10*time.Minute)
	w.restart()
	w.step(othersHold("a", protocol.Reservation{Kind: protocol.ForReclaim, Start: at(time.Minute), End: quantity.Never, Truncate: true}))
	w.recorded()
	w.step(stock([]protocol.Found{{Token: running, Job: "j", Slice: "a", Alive: true, Started: at(0)}}, "a", "b"))
	w.recorded(protocol.Truncated)
	same(t, "gaps", len(w.gaps("a")), 0)
	same(t, "the other's", w.gaps("b")[0].End, quantity.Never)
	w.restart()
	w.step(othersHold("a", protocol.Reservation{Kind: protocol.ForReclaim, Start: at(time.Minute), End: quantity.Never, Truncate: true}))
	w.step(stock([]protocol.Found{{Token: running, Job: "j", Slice: "a", Alive: true, Started: at(0)}}, "a", "b"))
	w.recorded()
}

// TestHoldsThatMakeNoSenseCloseTheSlice, and so do more than a slice may have.
func TestHoldsThatMakeNoSenseCloseTheSlice(t *testing.T) {
	for name, r := range map[string]protocol.Reservation{
		"it ends before it begins": {Kind: protocol.ForDrain, Start: at(2), End: at(1)},
		"it runs into itself":      {Kind: protocol.ForServing, Start: at(0), End: at(time.Hour), Every: time.Minute},
		"it repeats without end":   {Kind: protocol.ForServing, Start: at(time.Hour), End: quantity.Never, Every: time.Minute},
		"backwards":                {Kind: protocol.ForServing, Start: at(time.Hour), End: at(2 * time.Hour), Every: -1},
	} {
		t.Run(name, func(t *testing.T) {
			w := booted(t)
			w.step(othersHold("a", r))
			same(t, "gaps", len(w.gaps("a")), 0)
		})
	}
	w := booted(t)
	var list []protocol.Reservation
	for k := range mostApart + 20 {
		from := at(time.Duration(k+1) * 10 * time.Second)
		list = append(list, protocol.Reservation{Kind: protocol.ForForeign, Start: from, End: from.Add(time.Second)})
	}
	w.step(othersHold("a", list...))
	gaps := w.gaps("a")
	same(t, "gaps", len(gaps), mostApart+1)
	same(t, "the last ends", gaps[mostApart].End, at((mostApart+1)*10*time.Second))
	slices.Reverse(list[mostApart:]) // nobody says them in order
	w = booted(t)
	w.step(othersHold("a", list...))
	same(t, "the last ends", w.gaps("a")[mostApart].End, at((mostApart+1)*10*time.Second))
}

// mostApart is how many holds are kept apart on one slice.
const mostApart = 64

// TestAHoldIsThereSinceItWasSaidFirst, whatever is said beside it later.
func TestAHoldIsThereSinceItWasSaidFirst(t *testing.T) {
	w := booted(t)
	first, second := protocol.Reservation{Kind: protocol.ForForeign, End: at(time.Hour), Source: "pod x"},
		protocol.Reservation{Kind: protocol.ForDrain, End: quantity.Never, Source: "cordon"}
	w.step(othersHold("a", first))
	w.wait(time.Minute)
	w.step(othersHold("a", first, second))
	w.wait(time.Minute)
	w.step(othersHold("a", second, first))
	since := map[string]time.Duration{}
	for _, r := range w.n.inventory.Of("a").Closed() {
		since[r.Source] = r.Start.Sub(t0)
	}
	same(t, "the first", since["pod x"], 0)
	same(t, "the second", since["cordon"], time.Minute)
}

// TestWhatWaitsLooksAgainOnceTheLastHoldEnds: before that its place is not free.
func TestWhatWaitsLooksAgainOnceTheLastHoldEnds(t *testing.T) {
	hold := func(end time.Duration) protocol.Reservation {
		return protocol.Reservation{Kind: protocol.ForMaintenance, Start: at(30 * time.Second), End: at(end)}
	}
	for _, list := range [][]protocol.Reservation{{hold(90 * time.Second), hold(2 * time.Minute)},
		{hold(2 * time.Minute), hold(90 * time.Second)}} {
		w := booted(t)
		w.lease(1, "a", time.Minute, 3*time.Minute)
		w.step(othersHold("a", list...))
		w.wait(time.Minute)
		by, held := w.n.inventory.Of("a").HeldBy(w.now)
		same(t, "held", held, true)
		same(t, "until", by.End, at(2*time.Minute))
	}
}

// TestWhatIsQuarantinedStaysSoThoughItsMachineGoes: nobody has seen the end of what ran there.
func TestWhatIsQuarantinedStaysSoThoughItsMachineGoes(t *testing.T) {
	w := newWorld(t)
	stranger := job.Token{Epoch: 7, Seq: 3}
	w.inventory(protocol.Found{Token: stranger, Job: "x", Slice: "a", Alive: true})
	for range 3 {
		w.step(stock(nil, "b"))
	}
	w.step(stock(nil, "a", "b"))
	same(t, "state", w.n.Slices(w.now)[0].State, "quarantined")
	w.step(ask(1, "a", 0, time.Minute))
	w.must(protocol.Refused)
	w.step(exited(stranger, job.Stopped, 0))
	same(t, "state", w.n.Slices(w.now)[0].State, "idle")
}

// TestSlicesComeAndGo: what is new is offered. Of what is gone nothing is sold, what has not begun is withdrawn, and what runs goes on to
// its end.
func TestSlicesComeAndGo(t *testing.T) {
	w := booted(t)
	running := w.running(1, "a", 0, time.Minute)
	later := w.lease(2, "a", 2*time.Minute, 3*time.Minute)
	w.step(stock(nil, "b", "c"))
	w.recorded(protocol.SubjobEnded)
	same(t, "withdrawn", w.must(protocol.Result).Token, later)
	same(t, "the new one's gap", w.gaps("c")[0].End, quantity.Never)
	same(t, "what is gone", len(w.gaps("a")), 0)
	same(t, "the gate hears", len(w.must(protocol.Inventory).Body.(*protocol.Stock).Slices), 2)
	w.never(protocol.Stop)
	same(t, "people see", len(w.n.Slices(w.now)), 3)
	w.step(ask(3, "a", 4*time.Minute, 5*time.Minute))
	same(t, "asked", w.must(protocol.Refused).Body.(*protocol.Refusal).Text, "a: the slice is not in the inventory")

	w.step(exited(running, job.Done, 100))
	same(t, "people see", len(w.n.Slices(w.now)), 2)
	w.step(stock(nil, "b", "c"))
	w.never(protocol.Inventory)
	same(t, "nothing is kept of it", w.n.inventory.Of("a"), nil)
	w.step(stock(nil, "a", "b", "c"))
	same(t, "it is back", w.gaps("a")[0].End, quantity.Never)

	// The same name, and another size.
	other := stock(nil, "a", "b", "c")
	other.Body.(*protocol.Stock).Slices[0].Capacity[0] = 5
	w.step(other)
	same(t, "it is offered anew", w.gaps("a")[0].End, quantity.Never)
	w.step(ask(4, "a", 0, time.Minute))
	w.must(protocol.Refused)
}

// TestWhatMayBeSoldGivenHolds: whatever is said of holds and of slices, at every second the node offers exactly what neither a lease, nor
// a hold as it was said last, covers; and nothing of slices that are not there.
func TestWhatMayBeSoldGivenHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.inventory()
		type said struct {
			protocol.Reservation
			stays bool
		}
		world := map[job.SliceID][]said{}
		there := map[job.SliceID]bool{"a": true, "b": true}
		asks := uint64(0)
		slice := func(t *rapid.T) job.SliceID {
			return job.SliceID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "slice"))
		}
		seconds := func(t *rapid.T, name string, from, to int) time.Duration {
			return time.Duration(rapid.IntRange(from, to).Draw(t, name)) * time.Second
		}
		covered := func(id job.SliceID, at quantity.Instant) bool {
			for _, r := range world[id] {
				for o, k := r.Reservation, 0; k < 200; k++ {
					if o.Start <= at && (at < o.End || r.stays && r.Every == 0 && o.End <= w.now) {
						return true
					}
					if r.Every == 0 {
						break
					}
					o.Start, o.End = o.Start.Add(r.Every), o.End.Add(r.Every)
				}
			}
			for _, l := range w.n.Leases() {
				if l.Slice == id && !l.Ended && l.Start <= at && at < max(l.End, w.now+1) {
					return true
				}
			}
			for _, r := range w.n.inventory.Of(id).Sold() {
				if r.Kind == protocol.ForHold && r.Start <= at && at < r.End {
					return true
				}
			}
			return false
		}
		t.Repeat(map[string]func(*rapid.T){
			"hold": func(t *rapid.T) {
				id := slice(t)
				var list []protocol.Reservation
				world[id] = nil
				for range rapid.IntRange(0, 3).Draw(t, "holds") {
					r := protocol.Reservation{
						Kind: rapid.SampledFrom([]protocol.ReservationKind{protocol.ForForeign, protocol.ForMaintenance,
							protocol.ForReclaim}).Draw(t, "kind"),
						Start:    w.now.Add(seconds(t, "start", -5, 40)),
						Truncate: rapid.IntRange(0, 3).Draw(t, "truncate") == 0,
					}
					if r.End = r.Start.Add(seconds(t, "length", 1, 40)); rapid.IntRange(0, 3).Draw(t, "no end") == 0 {
						r.End = quantity.Never
					} else if rapid.IntRange(0, 3).Draw(t, "repeats") == 0 {
						r.Every = r.End.Sub(r.Start) + seconds(t, "pause", 1, 20)
					}
					list = append(list, r)
					world[id] = append(world[id], said{r, r.Kind == protocol.ForForeign})
				}
				w.step(othersHold(id, list...))
				for _, l := range w.n.Leases() {
					for _, r := range list {
						if r.Truncate && r.Every == 0 && l.Slice == id && !l.Ended && r.Start < l.End && l.Start < r.End &&
							l.End > w.now.Add(2*time.Second) && r.End > w.now {
							t.Fatalf("lease [%d,%d) stands in the time of %+v, which may truncate", l.Start, l.End, r)
						}
					}
				}
			},
			"stock": func(t *rapid.T) {
				var ids []job.SliceID
				for _, id := range []job.SliceID{"a", "b"} {
					if there[id] = rapid.IntRange(0, 3).Draw(t, "there") > 0; there[id] {
						ids = append(ids, id)
					}
				}
				w.step(stock(nil, ids...))
			},
			"lease": func(t *rapid.T) {
				asks++
				from := seconds(t, "from", 0, 30)
				w.step(ask(asks, slice(t), w.now.Sub(t0)+from, w.now.Sub(t0)+from+seconds(t, "length", 1, 20)))
				if g := w.sent(protocol.Granted); g != nil {
					w.step(redeem(*g))
				}
			},
			"start": func(t *rapid.T) {
				for _, l := range w.n.Leases() {
					w.step(protocol.Message{Kind: protocol.Started, From: executor, Token: l.Token, Body: &protocol.Beginning{At: w.now}})
				}
			},
			"exit": func(t *rapid.T) {
				for _, l := range w.n.Leases() {
					if l.Started {
						w.step(exited(l.Token, job.Done, 1))
					}
				}
			},
			"time": func(t *rapid.T) { w.wait(seconds(t, "wait", 0, 20)) },
			"": func(t *rapid.T) {
				for _, id := range []job.SliceID{"a", "b"} {
					s := w.n.inventory.Of(id)
					if s == nil { // it is gone, and nothing was left of it
						if there[id] {
							t.Fatalf("%s is there, and the node does not know it", id)
						}
						continue
					}
					if _, usable := s.Usable(); usable != there[id] {
						t.Fatalf("%s is usable: %v, and it is there: %v", id, usable, there[id])
					}
					if v := w.views[id]; v == nil && there[id] || v != nil && v.Usable != there[id] {
						t.Fatalf("%s is there: %v; what was shown is %+v", id, there[id], v)
					}
					gaps, _ := s.Gaps(w.now, w.n.cfg.Horizon, w.n.cfg.MinGap, nil)
					late := false // what is over its end and not confirmed gone blocks all of it
					for _, l := range w.n.Leases() {
						late = late || l.Slice == id && !l.Ended && l.End <= w.now
					}
					for second := range time.Duration(120) {
						at := w.now.Add(second * time.Second)
						offered := false
						for _, g := range gaps {
							offered = offered || g.Start <= at && at < g.End
						}
						if want := !late && !covered(id, at); offered != want {
							t.Fatalf("%s is offered at now+%ds: %v, want %v; gaps %+v, holds %+v, leases %+v", id, second, offered, want,
								gaps, world[id], w.n.Leases())
						}
					}
				}
			},
		})
	})
}

// TestAHoldWhoseEndMovesIsTheSame: it began when it was said first.
func TestAHoldWhoseEndMovesIsTheSame(t *testing.T) {
	w := booted(t)
	hold := protocol.Reservation{Kind: protocol.ForForeign, End: at(time.Minute), Source: "pod x"}
	w.step(othersHold("a", hold))
	w.wait(10 * time.Second)
	hold.End = at(2 * time.Minute)
	w.step(othersHold("a", hold))
	same(t, "begin", w.n.inventory.Of("a").Closed()[0].Start, at(0))
	hold.Source = "pod y"
	w.step(othersHold("a", hold))
	same(t, "begin of another", w.n.inventory.Of("a").Closed()[0].Start, at(10*time.Second))
}
