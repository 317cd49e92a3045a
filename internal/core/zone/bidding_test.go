package zone_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// claims lists what was sold, in order.
func (w *world) claims() (all []claimed) {
	for _, f := range w.facts {
		if s, ok := f.Body.(*protocol.Sale); ok {
			all = append(all, claimed{s, f.Job, f.At})
		}
	}
	return all
}

// claimed is what was sold of a job, and when it was asked for.
type claimed struct {
	*protocol.Sale
	Job job.ID
	At  quantity.Instant
}

// TestPriorityCountsInABid: of two jobs that are alike but for their priority the more urgent one wins, whichever has the name
// that breaks ties; and a hundred points double what it bids.
func TestPriorityCountsInABid(t *testing.T) {
	for _, urgent := range []job.ID{"a", "b"} {
		w := newMarket(t, auction.Config{Payment: auction.Free})
		for _, name := range []job.ID{"a", "b"} {
			s := steps(t, string(name), 200, 10, 300)
			if name == urgent {
				s.Priority = 100
			}
			w.submit(s)
		}
		w.slices = newWorld(t, 512).slices
		w.until(15 * time.Minute)
		finished(t, w, "a", "b")
		sold := w.claims()
		if sold[0].Job != urgent {
			t.Errorf("%s is the more urgent one, %s was served first", urgent, sold[0].Job)
		}
	}
	weight := func(priority int32) int64 {
		w := newMarket(t, auction.Config{Payment: auction.Free}, 512)
		s := steps(t, "a", 200, 10, 300)
		s.Priority = priority
		w.submit(s)
		w.until(time.Minute)
		return w.claims()[0].Bid.Weight
	}
	for priority, permille := range map[int32]int64{100: 2000, 50: 1500, 200: 4000, -100: 500, 0: 1000} {
		if got, want := weight(priority), weight(0)*permille/1000; got < want-1 || got > want+1 {
			t.Errorf("priority %d bids %d, want %d", priority, got, want)
		}
	}
}

// TestWhatNeverRanIsNoService: a job that is sold a place and loses it before it begins has waited on, from when it had begun to
// wait.
func TestWhatNeverRanIsNoService(t *testing.T) {
	w := newMarket(t, auction.Config{}, 512)
	w.submit(items(t, "first", 300, 100, 1))
	w.tick()
	w.submit(items(t, "a", 60, 100, 1))
	n := 0
	w.lose = func(m *protocol.Message) bool { // its grants lapse, and the node refuses to redeem them
		if m.Kind == protocol.Redeem && m.Job == "a" {
			n++
		}
		return m.Kind == protocol.Redeem && m.Job == "a" && n <= 3
	}
	w.until(30 * time.Minute)
	finished(t, w, "first", "a")
	var since []time.Duration
	for _, f := range w.claims() {
		if f.Job == "a" {
			since = append(since, f.Bid.Since.Sub(1e9))
		}
	}
	if len(since) < 2 || since[1] != since[0] {
		t.Errorf("its wait is counted from %v: it had not been served in between", since)
	}
}

// TestCreditsAreBidOnce: a queue that has offered all its credits for one window has none for the next, though nobody has
// answered yet.
func TestCreditsAreBidOnce(t *testing.T) {
	w := newMarket(t, auction.Config{Payment: auction.FirstPrice, PerTime: true, Refill: 10_000, Variants: 1})
	one, two := items(t, "a", 600, 100, 2), items(t, "b", 600, 100, 1)
	one.Queue, two.Queue = "one", "two"
	one.Priority = 300 // with credits it wins every window
	w.submit(one, two)
	w.slices = newWorld(t, 512, 512).slices
	w.until(2 * time.Second)
	won := map[job.ID]int{}
	for _, f := range w.claims() {
		won[f.Job]++
	}
	if won["a"] != 1 || won["b"] != 1 {
		t.Errorf("windows won: %v; want one each: the first window costs the queue of a all that it has", won)
	}
}
