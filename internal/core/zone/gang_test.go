package zone_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/policy/throughput"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestAGangIsNotSoldByTheSlice: a job of several slices answers no window, whatever its queue: the plan places it whole.
func TestAGangIsNotSoldByTheSlice(t *testing.T) {
	for _, queue := range []string{"default", "capped"} {
		w := newMarket(t, auction.Config{}, 512)
		w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "capped", Weight: 1, Cap: 4}})
		s := rigid(t, "pair", 30*time.Second, 400, 2)
		s.Queue = queue
		w.submit(s)
		w.until(2 * time.Minute)
		for _, f := range w.claims() {
			t.Errorf("queue %s: %s is sold on %s and %v, and needs two slices", queue, f.Job, f.Slice, f.Also)
		}
	}
}

// TestGangsStandInTheOrder: under a policy with an index a gang goes before work that is worth less for each slice, and behind what is
// worth more, whoever came first; and it keeps the place that it has been given while shorter work comes, which is done before. Without an
// index the oldest gang keeps a place.
func TestGangsStandInTheOrder(t *testing.T) {
	inOrder := func(w *world, names ...job.ID) {
		t.Helper()
		for i := 1; i < len(names); i++ {
			if a, b := w.started(names[i-1]), w.started(names[i]); a >= b {
				t.Errorf("%s starts at %v, %s at %v; want the order %v", names[i-1], a, names[i], b, names)
			}
		}
	}
	// busy is a zone of two slices, each of which is held for a minute, with these waiting.
	busy := func(p policy.Policy, jasda bool, waiting ...*job.Spec) *world {
		w := newWorld(t, 512, 512)
		if w.config.Policy, w.config.Rigid = p, byDefault(t); jasda {
			w.config.Market = &auction.Config{Payment: auction.Free}
		}
		w.z = w.make()
		w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "capped", Weight: 1, Cap: 4}})
		w.submit(rigid(t, "first", time.Minute, 400, 1), rigid(t, "second", 70*time.Second, 400, 1))
		w.until(10 * time.Second)
		for _, s := range waiting {
			w.submit(s)
			w.until(time.Second)
		}
		return w
	}
	for _, jasda := range []bool{false, true} {
		w := busy(shortest.Policy{}, jasda, rigid(t, "short", time.Minute, 400, 1), rigid(t, "long", 10*time.Minute, 400, 1),
			rigid(t, "pair", 2*time.Minute, 400, 2))
		w.until(30 * time.Minute)
		inOrder(w, "short", "pair", "long")
		w = busy(shortest.Policy{}, jasda, rigid(t, "a", 15*time.Minute, 400, 1), rigid(t, "b", 15*time.Minute, 400, 1),
			rigid(t, "c", 15*time.Minute, 400, 1), rigid(t, "pair", 10*time.Minute, 400, 2))
		w.until(2 * time.Hour)
		inOrder(w, "a", "pair", "c") // for each of its slices it is worth what a job of 20 minutes is, and the last would leave one idle
		inOrder(w, "b", "pair")
		capped := rigid(t, "short", time.Minute, 400, 1) // is asked each time
		capped.Queue = "capped"
		w = busy(shortest.Policy{}, jasda, capped, rigid(t, "pair", 2*time.Minute, 400, 2))
		w.until(30 * time.Minute)
		inOrder(w, "short", "pair")
		w = busy(shortest.Policy{}, jasda, rigid(t, "wide", 3*time.Minute, 400, 2), rigid(t, "pair", 2*time.Minute, 400, 2))
		w.until(30 * time.Minute)
		inOrder(w, "pair", "wide")
		w = busy(fair.Policy{}, jasda, rigid(t, "wide", 3*time.Minute, 400, 2), rigid(t, "pair", 2*time.Minute, 400, 2))
		w.until(30 * time.Minute)
		inOrder(w, "wide", "pair")
		w = busy(throughput.Policy{}, jasda, rigid(t, "wide", 3*time.Hour, 400, 2), rigid(t, "pair", time.Minute, 400, 2))
		w.until(8 * time.Hour)
		inOrder(w, "pair", "wide")
	}
}

// TestAGangKeepsThePlaceThatItHasBeenGiven, though shorter work comes for as long as one looks: that is done before, as far as it fits.
func TestAGangKeepsThePlaceThatItHasBeenGiven(t *testing.T) {
	w := newWorld(t, 512, 512)
	w.config.Policy, w.config.Rigid = shortest.Policy{}, byDefault(t)
	w.z = w.make()
	w.submit(rigid(t, "first", time.Minute, 400, 1), rigid(t, "second", 2*time.Minute, 400, 1))
	w.until(10 * time.Second)
	w.submit(rigid(t, "pair", time.Minute, 400, 2))
	w.until(2 * time.Second)
	for i := range 40 {
		w.submit(rigid(t, "short"+string(rune('a'+i/26))+string(rune('a'+i%26)), 20*time.Second, 400, 1))
		w.until(5 * time.Second)
	}
	w.until(20 * time.Minute)
	if at := w.started("pair"); at > 2*time.Minute+10*time.Second {
		t.Errorf("the pair starts at %v, and its place was free after two minutes", at)
	}
	if at := w.started("shortaa"); at > 90*time.Second {
		t.Errorf("a job of 20 seconds starts at %v, and there was room before the pair", at)
	}
}

// TestSoManyGangsKeepAPlace and no more: beside those in front the others wait, and are given places in their turn.
func TestSoManyGangsKeepAPlace(t *testing.T) {
	const mostHolders = 4 // of package backfill
	w := newWorld(t, 512, 512)
	w.config.Policy, w.config.Rigid = shortest.Policy{}, byDefault(t)
	w.z = w.make()
	w.submit(rigid(t, "first", time.Minute, 400, 1), rigid(t, "second", time.Minute, 400, 1))
	w.until(10 * time.Second)
	for i := range 9 {
		w.submit(rigid(t, "pair"+string(rune('a'+i)), time.Duration(9-i)*time.Minute, 400, 2))
	}
	w.until(10 * time.Second)
	held := map[job.ID]bool{}
	for _, s := range w.slices {
		for _, r := range s.busy {
			if r.Kind == protocol.ForRigid {
				held[r.Job] = true
			}
		}
	}
	if len(held) != mostHolders || !held["pairi"] || held["paira"] {
		t.Errorf("a place is kept for %v, want %d with the shortest among them", held, mostHolders)
	}
	w.until(2 * time.Hour)
	for i := range 8 {
		if a, b := w.started(job.ID("pair"+string(rune('b'+i)))), w.started(job.ID("pair"+string(rune('a'+i)))); a >= b {
			t.Errorf("of pair %d the longer starts at %v, the shorter at %v", i, b, a)
		}
	}
}

// TestNoGangIsGivenAPlaceBeforeTheLate: short gangs come without end, and each would have a place before there is a window for a long job.
// When that is late, and there is credit, they wait.
func TestNoGangIsGivenAPlaceBeforeTheLate(t *testing.T) {
	w := newWorld(t, 512, 512)
	w.config.Policy, w.config.Rigid = shortest.Policy{}, byDefault(t)
	w.config.Starvation = starvation.Limit{After: 2 * time.Minute, Slowdown: 1, Share: 500, Places: 1}
	w.z = w.make()
	long := rigid(t, "long", 3*time.Minute, 400, 1)
	for w.now < quantity.Instant(time.Hour) && len(w.closed) < 120 {
		for len(w.adopted)-len(w.closed) < 4 {
			w.submit(rigid(t, fmt.Sprintf("pair%03d", len(w.adopted)), 20*time.Second, 400, 2))
		}
		if len(w.adopted) == 10 && w.adopted[long.Name] == nil {
			w.submit(long)
		}
		w.tick()
	}
	if at := w.started("long"); at <= 0 || at > 20*time.Minute {
		t.Errorf("the long job starts at %v, and is late after some five minutes", at)
	}
}
