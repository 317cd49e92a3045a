package zone_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// ledger counts credits from nothing but the facts: what came in, what was paid and what was given back.
type ledger struct {
	t      fataler
	seen   int
	queue  map[job.ID]string
	has    map[string]int64
	price  map[job.Token]int64
	income int64
	paid   int64
}

func newLedger(t fataler) *ledger {
	return &ledger{t: t, queue: map[job.ID]string{}, has: map[string]int64{}, price: map[job.Token]int64{}}
}

// read takes in the facts that are new, and holds the zone's own balances against its own.
func (l *ledger) read(w *world) {
	for _, f := range w.facts[l.seen:] {
		switch b := f.Body.(type) {
		case *protocol.Taking:
			l.queue[f.Job] = b.Spec.Queue
		case *protocol.Calibration:
			more := b.Credits - l.has[b.Queue]
			if more < 0 {
				l.t.Fatalf("queue %s lost %d credits without a price", b.Queue, -more)
			}
			l.income += more
			l.has[b.Queue] += more
		case *protocol.Sale:
			if b.Bid == nil {
				break
			}
			l.paid += b.Bid.Price
			l.price[f.Token] = b.Bid.Price
			if l.has[l.queue[f.Job]] -= b.Bid.Price; b.Bid.Price < 0 || l.has[l.queue[f.Job]] < 0 {
				l.t.Fatalf("%s paid %d and its queue has %d left", f.Job, b.Bid.Price, l.has[l.queue[f.Job]])
			}
		case *protocol.ClaimEnd:
			if b.Result == nil || b.Result.Start == 0 {
				l.paid -= l.price[f.Token]
				l.has[l.queue[f.Job]] += l.price[f.Token]
			}
		}
	}
	l.seen = len(w.facts)
	for _, f := range capture.All(w.z) {
		if s, ok := f.Body.(*protocol.Calibration); ok && s.Credits != l.has[s.Queue] {
			l.t.Fatalf("queue %s has %d credits, by the facts %d", s.Queue, s.Credits, l.has[s.Queue])
		}
	}
	var sum int64
	for _, n := range l.has {
		sum += n
	}
	if sum != l.income-l.paid {
		l.t.Fatalf("%d credits are left of %d less %d", sum, l.income, l.paid)
	}
}

// TestCreditsAreConserved: whatever jobs, agents, nodes and crashes do, queues have what came in less what they paid, never
// less than nothing, and no more comes in than the slices are worth. The same holds of a zone that folds the facts anew.
func TestCreditsAreConserved(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := drawer(rt)
		c := auction.Config{
			Payment: rapid.SampledFrom([]auction.Payment{auction.FirstPrice, auction.VCG}).Draw(rt, "payment"), PerTime: draw(2) == 0,
			Repack: auction.Repack(draw(3)), Refill: rapid.SampledFrom([]int64{0, 1, 1000, 100_000}).Draw(rt, "refill"),
			Starve: time.Duration(60+draw(3000)) * time.Second,
		}
		if c.Payment == auction.FirstPrice {
			c.Joint, c.Exclusive = draw(2) == 0, draw(3) == 0
		}
		w := newMarket(rt, c)
		for i := range 1 + draw(5) {
			w.slices = append(w.slices, &simSlice{node: job.NodeID(fmt.Sprint("n", i/2)), view: protocol.Slice{
				ID: job.SliceID(fmt.Sprintf("s%d", i)), Profile: "small", Capacity: trp.Vector{quantity.Amount((512 + draw(3)*512) << 20)},
				Speed: 1000,
			}})
		}
		w.draw, w.double = draw, 5*draw(2)
		w.loss = 5 * draw(2)
		w.run = func(m *protocol.Message) (time.Duration, job.Result) { return w.end(m) }
		begun, l := w.now, newLedger(rt)
		for i := 0; i < 200; i++ {
			if n := len(w.adopted); n < 15 && draw(3) > 0 {
				if s := w.drawJob(rt, draw, n); s.Divisible() && draw(2) == 0 {
					w.attend(s, hostile(s, draw))
				} else {
					w.submit(s)
				}
			}
			w.disturb(draw)
			w.tick()
			l.read(w)
			if draw(40) == 0 {
				w.restart()
				l.read(w)
			}
		}
		full := c.WithDefaults().Refill * int64(len(w.slices))
		// Each queue begins with at most an hour's worth; after that all share one refill, but that what a queue is given for a
		// time when it had no jobs is counted as the queues are now.
		if most := 4*full + 4*quantity.MulDiv(full, int64(w.now.Sub(begun)), int64(time.Hour)) + 4*int64(len(w.facts)); l.income > most {
			rt.Fatalf("%d credits came in, the slices were worth %d", l.income, most)
		}
	})
}

// TestPricesAreSecondPrices: of two jobs that want the same window, the one that wins pays what the other would have.
func TestPricesAreSecondPrices(t *testing.T) {
	pay := func(p auction.Payment, other bool) (price, weight, lost int64) {
		w := newMarket(t, auction.Config{Payment: p, PerTime: true, Variants: 1}, 512)
		submit := func(name, queue string, score int64) {
			s := steps(t, name, 200, 200, 300)
			s.Queue = queue
			bid := honest(s)
			w.attend(s, func(m *protocol.Message) []protocol.Message {
				out := bid(m)
				for i := range out {
					for j := range out[i].Body.(*protocol.Proposal).Variants {
						out[i].Body.(*protocol.Proposal).Variants[j].Score = score
					}
				}
				for _, n := range noticesIn(m) {
					if n.Kind == protocol.Lost {
						lost = n.Score
					}
				}
				return out
			})
		}
		submit("high", "a", 900_000)
		if other {
			submit("low", "b", 300_000)
		}
		w.until(2 * time.Second)
		for _, f := range w.claims() {
			if f.Job == "high" {
				ms := f.End.Sub(f.Start).Milliseconds()
				return f.Bid.Price, f.Bid.Weight / 1_000_000, lost * ms / 1_000_000
			}
		}
		t.Fatal("nothing was sold")
		return 0, 0, 0
	}
	if price, _, _ := pay(auction.VCG, false); price != 0 {
		t.Errorf("alone it pays %d", price)
	}
	if price, weight, lost := pay(auction.VCG, true); price < lost-1 || price > lost+1 || price >= weight {
		t.Errorf("it pays %d of its %d; the other's bid was worth %d", price, weight, lost)
	}
	if price, weight, _ := pay(auction.FirstPrice, false); price != weight || price == 0 {
		t.Errorf("it pays %d of its %d", price, weight)
	}
	if price, _, _ := pay(auction.Free, true); price != 0 {
		t.Errorf("it pays %d where all is free", price)
	}
}

// TestWithoutCreditsWorkGoesOn: a queue that can pay nothing still gets the time that nobody else wants, and loses what others
// can pay for.
func TestWithoutCreditsWorkGoesOn(t *testing.T) {
	w := newMarket(t, auction.Config{Payment: auction.FirstPrice, PerTime: true, Refill: 1000}, 512)
	poor := steps(t, "poor", 3000, 10, 300)
	poor.Queue = "poor"
	w.submit(poor)
	w.until(10 * time.Minute)
	if q := w.z.Queues(w.now); len(q) != 1 || q[0].Credits > 1000/6+1 {
		t.Fatalf("it has credits left: %+v", q)
	}
	paid := len(w.facts)
	rich := steps(t, "rich", 30, 10, 300)
	rich.Queue = "rich"
	w.submit(rich)
	w.until(10 * time.Minute)
	for _, f := range w.facts[paid:] {
		if f.Kind == protocol.Claimed {
			if f.Job != "rich" {
				t.Errorf("%s was served first", f.Job)
			}
			break
		}
	}
	w.until(3 * time.Hour)
	finished(t, w, "poor", "rich")
}

// TestPricesAreByTime: where bids are weighed by their score alone, who takes a window for longer pays for longer all the same.
func TestPricesAreByTime(t *testing.T) {
	w := newMarket(t, auction.Config{Payment: auction.FirstPrice}, 512)
	w.submit(steps(t, "short", 60, 60, 300))
	w.until(5 * time.Minute)
	w.submit(steps(t, "long", 300, 300, 300))
	w.until(20 * time.Minute)
	finished(t, w, "short", "long")
	prices := map[job.ID]int64{}
	for _, f := range w.claims() {
		prices[f.Job] += f.Bid.Price
		if want := f.Bid.Weight * f.End.Sub(f.Start).Milliseconds() / 1_000_000; f.Bid.Price < want-1 || f.Bid.Price > want+1 {
			t.Errorf("%s pays %d for %v at a weight of %d, want %d", f.Job, f.Bid.Price, f.End.Sub(f.Start), f.Bid.Weight, want)
		}
	}
	if prices["long"] < 3*prices["short"] {
		t.Errorf("five minutes cost %d, one %d", prices["long"], prices["short"])
	}
}
