package node

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/giving"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/reclaim"
	"sluice.dev/sluice/internal/core/status"
)

// wishedFor is what the executor says of the machine that slices a and b are of, and of who waits there.
func wishedFor(m reclaim.Machine, wishes ...reclaim.Wish) protocol.Message {
	return protocol.Message{Kind: protocol.Wished, From: executor, Body: &protocol.Wishes{Machines: []reclaim.Machine{m}, Wishes: wishes}}
}

// ofTwo is that machine; others have the first so many slices that are not ours.
func ofTwo(ours ...job.SliceID) reclaim.Machine {
	m := reclaim.Machine{Name: "m", Resources: []reclaim.Resource{{Name: "gpu", N: 2, Slices: []job.SliceID{"a", "b"},
		Others: make([]quantity.Instant, 2)}}}
	for _, id := range []job.SliceID{"a", "b"} {
		m.Slices = append(m.Slices, reclaim.Slice{ID: id, Notice: 30 * time.Second})
	}
	for _, id := range ours {
		m.Tenants = append(m.Tenants, reclaim.Tenant{Slice: id, Asks: []reclaim.Ask{{Resource: "gpu", N: 1}}, End: quantity.Never})
	}
	return m
}

func waits(id string, n int64) reclaim.Wish {
	return reclaim.Wish{ID: reclaim.ID(id), Who: "pod " + id + ", which waits for it", Equiv: reclaim.Equiv{Owner: id}, Since: t0,
		Asks: []reclaim.Ask{{Resource: "gpu", N: n}}}
}

// after steps the clock, as the timer that was asked for does.
func (w *world) after(d time.Duration) {
	w.now = w.now.Add(d)
	w.step(protocol.Message{Kind: protocol.Tick})
}

// shown are a slice's gaps as they were offered last.
func (w *world) offered(id job.SliceID) []protocol.Gap { return w.views[id].Gaps }

// TestWhatIsGivenBackIsCutWhereLeastIsLost: the node knows since when each runs, and when its last progress was heard of.
func TestWhatIsGivenBackIsCutWhereLeastIsLost(t *testing.T) {
	for name, c := range map[string]struct {
		reports map[job.SliceID]time.Duration // when it told of progress
		ends    map[job.SliceID]time.Duration
		want    job.SliceID
		lost    time.Duration
	}{
		"nothing is told: the later one": {nil, nil, "b", 4*time.Minute + giving.Gathers},
		"the earlier has just stored what it did": {map[job.SliceID]time.Duration{"a": 4 * time.Minute}, nil, "a", time.Minute +
			giving.Gathers},
		"both have: the least time left": {map[job.SliceID]time.Duration{"a": 2 * time.Minute, "b": 2 * time.Minute},
			map[job.SliceID]time.Duration{"a": 30 * time.Minute}, "b", 3*time.Minute + giving.Gathers},
	} {
		t.Run(name, func(t *testing.T) {
			w := booted(t)
			ends := map[job.SliceID]time.Duration{"a": 10 * time.Minute, "b": 10 * time.Minute}
			for id, d := range c.ends {
				ends[id] = d
			}
			tokens := map[job.SliceID]job.Token{"a": w.running(1, "a", 0, ends["a"])}
			w.now = at(time.Minute)
			tokens["b"] = w.running(2, "b", time.Minute, ends["b"])
			for _, d := range []time.Duration{2 * time.Minute, 4 * time.Minute} {
				w.now = at(d)
				for _, id := range []job.SliceID{"a", "b"} {
					if c.reports[id] == d {
						w.step(protocol.Message{Kind: protocol.Report, From: executor, Token: tokens[id],
							Body: &protocol.Observation{Progress: 5}})
					}
				}
			}
			w.now = at(5 * time.Minute)
			w.step(wishedFor(ofTwo("a", "b"), waits("p", 1)))
			w.recorded() // nothing before all that belongs together is heard
			w.after(giving.Gathers)
			w.recorded(protocol.Truncated)
			d := w.must(protocol.Deadline)
			same(t, "whose", d.Token, tokens[c.want])
			same(t, "end", d.Body.(*protocol.Shift).End, w.now.Add(30*time.Second))
			same(t, "why", d.Body.(*protocol.Shift).Text, "time taken (reclaim) by pod p, which waits for it")
			kept := w.n.giving.Keeper().Places()
			same(t, "places", len(kept), 1)
			same(t, "lost", kept[0].Cost.Lost, c.lost)
			same(t, "why", w.n.giving.Keeper().Why(w.now, "p").Verdict, reclaim.Kept)
		})
	}
}

// TestAPlaceIsKeptUntilItsWishIsServed: the slice is not sold meanwhile, and is free again then.
func TestAPlaceIsKeptUntilItsWishIsServed(t *testing.T) {
	w := booted(t)
	a := w.running(1, "a", 0, 10*time.Minute)
	w.running(2, "b", 0, 10*time.Minute)
	w.step(wishedFor(ofTwo("a", "b"), waits("p", 1)))
	w.after(giving.Gathers)
	same(t, "whose", w.must(protocol.Deadline).Token, a)
	w.step(exited(a, job.Yielded, 10))
	w.step(wishedFor(ofTwo("b")))
	w.after(time.Second)
	same(t, "gaps while it waits", len(w.offered("a")), 0)

	// It has its device: somebody else's, as the inventory says in its own words. Nothing is kept any more.
	w.step(othersHold("a", protocol.Reservation{Kind: protocol.ForForeign, End: quantity.Never, Source: "pod p"}))
	w.step(protocol.Message{Kind: protocol.Wished, From: executor,
		Body: &protocol.Wishes{Dropped: []protocol.Dropped{{ID: "p", Served: true}}}})
	w.after(time.Second)
	same(t, "places", len(w.n.giving.Keeper().Places()), 0)
	same(t, "gaps beside it", len(w.offered("a")), 0)
	w.step(othersHold("a"))
	same(t, "gap", w.offered("a")[0].End, quantity.Never)
}

// TestWhatASchedulerFreesIsNotSold: it ends a subjob by itself for one that waits. That is told nothing, and its slice is kept; the wait
// that is over then is known.
func TestWhatASchedulerFreesIsNotSold(t *testing.T) {
	w := booted(t)
	a := w.running(1, "a", 0, 10*time.Minute)
	w.running(2, "b", 0, 10*time.Minute)
	m, p := ofTwo("a", "b"), waits("p", 1)
	m.Tenants[0].Leaving, p.Nominated, m.Slices[0].Pool = true, "m", "mig"
	w.step(wishedFor(m, p))
	heard := w.now
	w.after(giving.Gathers)
	w.recorded() // neither is cut
	w.step(exited(a, job.Yielded, 10))
	w.step(wishedFor(ofTwo("b")))
	w.after(time.Second)
	same(t, "gaps while it waits", len(w.offered("a")), 0)
	over := w.n.HostWaits(0)
	same(t, "waits", len(over), 1)
	same(t, "wait", over[0], status.HostWait{Number: 1, Node: over[0].Node, Wish: "p", Who: "pod p", Job: over[0].Job, Pool: "mig",
		From: heard, Until: w.now})
	same(t, "whose", over[0].Job, w.n.leases.Of(a).Terms().Job)
	w.step(protocol.Message{Kind: protocol.Wished, From: executor,
		Body: &protocol.Wishes{Dropped: []protocol.Dropped{{ID: "p", Served: true}}}})
	w.after(time.Second)
	same(t, "gap", w.offered("a")[0].End, quantity.Never)
	same(t, "more waits", len(w.n.HostWaits(1)), 0)
}

// TestWishesAreHeardAgainAfterARestart: they are no facts. What was cut stays cut, and who waits still is given the same.
func TestWishesAreHeardAgainAfterARestart(t *testing.T) {
	w := booted(t)
	a := w.running(1, "a", 0, 10*time.Minute)
	b := w.running(2, "b", 0, 10*time.Minute)
	said := wishedFor(ofTwo("a", "b"), waits("p", 1))
	w.step(said)
	w.after(giving.Gathers)
	w.recorded(protocol.Truncated)
	cut := w.last[0].Body.(*protocol.Truncation).End
	w.restart()
	w.now = w.now.Add(10 * time.Second)
	w.step(said)
	w.after(giving.Gathers)
	w.recorded() // nobody knows yet what runs
	found := []protocol.Found{{Token: a, Job: "j", Slice: "a", Alive: true, Started: at(0)}, {Token: b, Job: "j", Slice: "b", Alive: true,
		Started: at(0)}}
	w.step(stock(found, "a", "b"))
	w.after(2 * time.Second)
	kept := w.n.giving.Keeper().Places()
	same(t, "places", len(kept), 1)
	same(t, "what is cut", fmt.Sprint(kept[0].Stops), "[a]")
	for _, f := range w.facts {
		if c, ok := f.Body.(*protocol.Truncation); ok && (f.Token != a || c.End > cut) {
			t.Errorf("%v is cut to end after %v", f.Token, c.End.Sub(t0))
		}
	}
	same(t, "the other's lease", w.n.leases.Of(b).Terms().End, at(10*time.Minute))
}

// TestWhatOthersHoldAndWhatIsKeptStandTogether: neither word takes the other back.
func TestWhatOthersHoldAndWhatIsKeptStandTogether(t *testing.T) {
	w := booted(t)
	w.running(1, "a", 0, 10*time.Minute)
	w.step(othersHold("b", protocol.Reservation{Kind: protocol.ForMaintenance, Start: at(time.Hour), End: quantity.Never,
		Source: "somebody"}))
	w.step(wishedFor(ofTwo("a"), waits("p", 2)))
	w.after(giving.Gathers)
	w.recorded(protocol.Truncated)
	same(t, "gaps", len(w.offered("b")), 0)
	w.step(othersHold("b"))
	same(t, "gaps", len(w.offered("b")), 0)
	w.step(protocol.Message{Kind: protocol.Wished, From: executor, Body: &protocol.Wishes{Dropped: []protocol.Dropped{{ID: "p"}}}})
	w.after(time.Second)
	same(t, "gap", w.offered("b")[0].End, quantity.Never)
}

// TestWhatWasDecidedForAWishIsTold: the subjob that is cut, the one that is spared, and the wish, each with its reason; of another life of
// the job nothing. After a restart it is told again as it is decided again.
func TestWhatWasDecidedForAWishIsTold(t *testing.T) {
	w := booted(t)
	a := w.running(1, "a", 0, 10*time.Minute)
	w.now = at(time.Minute)
	b := w.running(2, "b", time.Minute, 10*time.Minute)
	w.now = at(5 * time.Minute)
	huge := waits("huge", 3)
	huge.Equiv.Shape = "3"
	w.step(wishedFor(ofTwo("a", "b"), waits("p", 1), huge))
	same(t, "before it is decided", w.n.Reclaims(w.now).Wishes[1].State, "pending")
	w.after(giving.Gathers)
	w.after(time.Second)
	told := w.n.Reclaims(w.now)
	text := ""
	for _, s := range told.Steps {
		of := map[job.Token]string{a: "a", b: "b"}[s.Token]
		text += fmt.Sprintf("%s: %s of %s for %s on %s: %s\n", s.Step, of, s.Job, s.Who, s.Slice, s.Why)
	}
	same(t, "steps", text, "truncated: b of j for pod p on b: nothing else that makes room for it loses less work; in its stead "+
		"stopping what runs on a (m) would lose 5m0s of work and 5m0s of sold time\n"+
		"spared: a of j for pod p on a: stopping it would lose 5m0s of work and 5m0s of sold time, and stopping what runs on b (m) loses "+
		"4m0s of work and 5m0s of sold time\n")
	text = ""
	for _, x := range told.Wishes {
		text += fmt.Sprintf("%s (%s) of %s: %s: %s; %v, %d to stop at %v\n", x.Who, x.ID, x.Node, x.State, x.Why, x.Slices, len(x.Subjobs),
			max(0, x.At.Sub(t0)))
	}
	same(t, "wishes", text, "pod huge (huge) of n: no-room: stopping all that may be stopped would not make room for it; it may run on 1 "+
		"machine of 1; [], 0 to stop at 0s\n"+
		"pod p (p) of n: kept: a place is kept on m: what runs on b stops, which loses 4m0s of work and 5m0s of sold time; nothing else "+
		"that makes room for it loses less work; in its stead stopping what runs on a (m) would lose 5m0s of work and 5m0s of sold "+
		"time; [b], 1 to stop at 5m30.1s\n")
	w.restart()
	same(t, "steps after a restart", len(w.n.Reclaims(w.now).Steps), 0)
}
