package zone_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/protocol"
)

// drained keeps the first slice from being sold for a while, so that all who come meanwhile are asked at once.
func (w *world) drained(length time.Duration) {
	w.slices[0].busy = []protocol.Reservation{{ID: 9, Kind: protocol.ForDrain, Start: w.now, End: w.now.Add(length)}}
	w.settle()
	w.step(protocol.Message{Kind: protocol.Tick})
}

// TestALoserIsToldByHowMuch: of three jobs that are alike but for their priority the first of the one window gets it; the others are
// told its bid, which is the one in its claim, their own, which are half and a quarter of it, and when they may be served.
func TestALoserIsToldByHowMuch(t *testing.T) {
	w := newMarket(t, auction.Config{Payment: auction.Free, Starve: -1}, 512)
	w.drained(10 * time.Second)
	for _, c := range []struct {
		name     string
		priority int32
	}{{"third", 0}, {"second", 100}, {"first", 200}} {
		s := steps(t, c.name, 200, 10, 300)
		s.Priority, s.Queue = c.priority, "of-"+c.name
		w.submit(s)
	}
	for len(w.claims()) == 0 {
		w.tick()
	}
	won := w.claims()[0]
	if won.Job != "first" {
		t.Fatalf("%s won", won.Job)
	}
	for name, part := range map[job.ID]int64{"second": 2, "third": 4} {
		e, _ := w.z.Explain(w.now, name)
		if len(e.Losses) != 1 {
			t.Fatalf("%s: losses %+v", name, e.Losses)
		}
		l := e.Losses[0]
		if l.Winner != "first" || l.WinnerQueue != "of-first" || l.Winners != 1 || l.WinnerWeight != won.Bid.Weight ||
			l.WinnersWeight != won.Bid.Weight || l.Late ||
			l.Slice != "s0" || l.Count < 1 || l.Score != l.WinnerScore || l.Score <= 0 {
			t.Errorf("%s lost to a bid of %+v: %+v", name, won.Bid, l)
		}
		if d := l.Weight*part - won.Bid.Weight; d < -part || d > part || l.By() != won.Bid.Weight-l.Weight {
			t.Errorf("%s bid %d, want a %d-th of %d; lost by %d", name, l.Weight, part, won.Bid.Weight, l.By())
		}
		for _, want := range []string{"first of queue of-first", "lost by ", "likely to start within "} {
			if !strings.Contains(e.Prospect, want) {
				t.Errorf("%s: %q says nothing of %q", name, e.Prospect, want)
			}
		}
		if e.Rank.Place != 0 {
			t.Errorf("%s: a market of bids has no order: %+v", name, e.Rank)
		}
	}
	if e, _ := w.z.Explain(w.now, "first"); len(e.Losses) != 0 || e.Prospect != "" {
		t.Errorf("the winner: %q %+v", e.Prospect, e.Losses)
	}
	for waits := true; waits; {
		w.tick()
		j, _ := w.z.Job(w.now, "second")
		waits = j.Started == 0
	}
	if e, _ := w.z.Explain(w.now, "second"); len(e.Losses) != 0 {
		t.Errorf("it has been served since: %+v", e.Losses)
	}
}

// TestWhoIsLateIsNamed: a job whose bid weighs more than that of a late one is told that this is why.
func TestWhoIsLateIsNamed(t *testing.T) {
	w := newMarket(t, auction.Config{Payment: auction.Free}, 512)
	w.config.Starvation = starvation.Limit{After: time.Minute, Slowdown: 1}
	w.z = w.make()
	w.slices[0].busy = []protocol.Reservation{{ID: 99, Kind: protocol.ForServing, Start: w.now, End: w.now.Add(230 * time.Second)}}
	w.settle()
	poor := steps(t, "poor", 200, 10, 300)
	poor.Priority = -300
	w.submit(poor)
	w.until(220 * time.Second)
	rich := steps(t, "rich", 200, 10, 300)
	rich.Priority = 300
	w.submit(rich)
	for len(w.claims()) == 0 {
		w.tick()
	}
	e, _ := w.z.Explain(w.now, "rich")
	if len(e.Losses) != 1 || e.Losses[0].Winner != "poor" || !e.Losses[0].Late || e.Losses[0].By() >= 0 ||
		!strings.Contains(e.Prospect, "has waited too long") {
		t.Errorf("%q %+v", e.Prospect, e.Losses)
	}
}

// TestLossesAreBounded: whatever kinds of slices there are, a job keeps a few, and a thousand rounds are a count.
func TestLossesAreBounded(t *testing.T) {
	var capacities []int64
	for i := range 20 {
		capacities = append(capacities, 512+int64(i), 512+int64(i))
	}
	w := newMarket(t, auction.Config{Payment: auction.Free, Starve: -1}, capacities...)
	for i := range 20 {
		s := items(t, "strong"+string(rune('a'+i)), 20_000, 100, 20)
		s.Priority = 400
		w.submit(s)
	}
	weak := items(t, "weak", 100, 100, 1)
	weak.Priority = -500
	w.submit(weak)
	w.until(20 * time.Minute)
	e, _ := w.z.Explain(w.now, "weak")
	n := int64(0)
	for i, l := range e.Losses {
		n += l.Count
		if i > 0 && l.Last > e.Losses[i-1].Last {
			t.Errorf("the latest come first: %+v", e.Losses)
		}
	}
	if len(e.Losses) < 2 || len(e.Losses) > 8 || n <= int64(len(e.Losses)) {
		t.Errorf("%d losses in %d kinds of slices: %q", n, len(e.Losses), e.Prospect)
	}
}

// TestAWaitingJobIsToldItsRank: under SJA it is the place in the policy's order among those that can use such a slice, and who got
// the last window that it could have used.
func TestAWaitingJobIsToldItsRank(t *testing.T) {
	w := newWorld(t, 1024)
	w.drained(time.Minute)
	for _, name := range []string{"d", "b", "c", "a"} { // not the order of names
		w.submit(items(t, name, 200, 100, 1))
		w.until(time.Second)
	}
	w.submit(items(t, "large", 5, 4000, 1)) // waits for other slices
	for len(w.claims()) == 0 {
		w.tick()
	}
	if w.claims()[0].Job != "d" {
		t.Fatalf("%s was the first", w.claims()[0].Job)
	}
	for i, name := range []job.ID{"b", "c", "a"} {
		e, _ := w.z.Explain(w.now, name)
		r := e.Rank
		if r.Place != i+1 || r.Of != 3 || r.Policy != "fifo" || r.Slice != "s0" || r.Latest.Winner != "d" ||
			r.Latest.WinnerQueue != "default" || r.Latest.Slice != "s0" ||
			r.Latest.At > w.now || r.Latest.Length <= 0 {
			t.Errorf("%s: %+v", name, r)
		}
		for _, want := range []string{"by policy fifo", "went to d of queue default", "likely to start within "} {
			if !strings.Contains(e.Prospect, want) {
				t.Errorf("%s: %q says nothing of %q", name, e.Prospect, want)
			}
		}
		if len(e.Losses) != 0 {
			t.Errorf("%s: nobody bids here: %+v", name, e.Losses)
		}
	}
	if e, _ := w.z.Explain(w.now, "large"); e.Rank.Place != 0 || strings.Contains(e.Prospect, "went to") {
		t.Errorf("no slice is large enough for it: %q %+v", e.Prospect, e.Rank)
	}
	w.submit(items(t, "late", 200, 100, 1))
	w.step(protocol.Message{Kind: protocol.Tick})
	if e, _ := w.z.Explain(w.now, "late"); e.Rank.Place != 4 || e.Rank.Latest.Winner != "" {
		t.Errorf("it came when the window had gone: %+v", e.Rank)
	}
}

// TestADryRunSaysTheRange: where others wait, a job that is not submitted is told the range that it would be told if it were.
func TestADryRunSaysTheRange(t *testing.T) {
	w := newWorld(t, 1024)
	w.submit(items(t, "a", 200, 100, 1), items(t, "b", 200, 100, 1), items(t, "c", 200, 100, 1))
	w.until(time.Second)
	s := items(t, "d", 200, 100, 1)
	e := w.z.DryRun(w.now, s)
	if !strings.Contains(e.Summary, "it is likely to start within ") || e.Job.StartLate <= e.Job.StartEarly {
		t.Errorf("%q, %v to %v", e.Summary, e.Job.StartEarly, e.Job.StartLate)
	}
	w.submit(s)
	w.step(protocol.Message{Kind: protocol.Tick})
	if j, _ := w.z.Job(w.now, "d"); j.StartEarly != e.Job.StartEarly || j.StartLate != e.Job.StartLate {
		t.Errorf("said %v to %v before and %v to %v after it was submitted", e.Job.StartEarly, e.Job.StartLate, j.StartEarly, j.StartLate)
	}
}
