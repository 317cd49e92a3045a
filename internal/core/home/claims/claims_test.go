package claims

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/home/record"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// counter is a desk with one job of items, whose slices one node has.
type counter struct {
	*Claimer
	job *record.Job
	now quantity.Instant
	out protocol.Out
}

func newCounter() *counter {
	book := record.New(record.Config{Retry: time.Second, Refill: 1000, PurseTime: time.Hour}, quiet{}, quiet{})
	c := &counter{Claimer: New(Config{Retry: time.Second, AskTTL: 10 * time.Second, Backoff: time.Second}, book, quiet{}, quiet{}),
		now: 1e12}
	spec := &job.Spec{Name: "a", Queue: "q", Kind: job.Items, Total: 100, Grid: 1, Parallelism: 9, PerUnit: time.Second}
	book.Apply(&protocol.Fact{Kind: protocol.HomeTaken, Job: "a", Epoch: 1, Generation: 1, At: 1, Body: &protocol.Taking{Spec: spec}})
	c.job = book.Job("a")
	return c
}

// asks for a range at a price.
func (c *counter) asks(r job.Range, price int64) *Ask {
	at := protocol.Placement{Slice: "s", Range: r, Start: c.now, End: c.now.Add(time.Minute)}
	a := &Ask{Job: c.job, Sale: protocol.Sale{Placement: at, Bid: &protocol.Bid{Price: price}}}
	c.Ask(c.now, a, 0, &c.out)
	return a
}

// TestAsksCountAgainstTheQueue: random asks that are granted, refused or lapse. What the queue has asked for and pledged is the sum over
// the open asks, no unit is sold twice, and no queue pays more than it has.
func TestAsksCountAgainstTheQueue(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		c := newCounter()
		q := c.job.Queue()
		seq, last := uint64(0), uint64(0)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			c.now = c.now.Add(time.Second)
			list := c.Asks()
			switch what := rapid.IntRange(0, 4).Draw(rt, "what"); {
			case what <= 1 || len(list) == 0:
				from := rapid.Int64Range(0, 95).Draw(rt, "from")
				r := job.Range{From: from, To: from + rapid.Int64Range(1, 5).Draw(rt, "units")}
				a := c.asks(r, rapid.Int64Range(0, 400).Draw(rt, "price"))
				if a.ID() <= last {
					rt.Fatalf("ask %d comes after %d", a.ID(), last)
				}
				last = a.ID()
			case what == 2: // lapsed
				if id := c.Lapsed(c.Expires()); id != list[0].ID() || c.TakeAsk(id) == nil || c.TakeAsk(id) != nil {
					rt.Fatalf("ask %d lapses first, want %d, and is taken once", id, list[0].ID())
				}
			default:
				a := c.TakeAsk(list[rapid.IntRange(0, len(list)-1).Draw(rt, "which")].ID())
				free := c.job.Progress().Free(a.Range)
				before := c.book.Purses.Refilled(c.now, &q.Queue).Credits
				seq++
				in := &protocol.Message{Job: "a", Token: job.Token{Epoch: 1, Seq: seq}}
				if sold := c.Granted(c.now, a, in, &protocol.Grant{Start: a.Start, End: a.End}, &c.out); sold != free {
					rt.Fatalf("%v is sold: %v, free: %v", a.Range, sold, free)
				}
				if after := q.Calibration().Credits; free && a.Bid.Price > 0 && (after < 0 || before-after != a.Bid.Price) {
					rt.Fatalf("the queue had %d, paid %d and has %d", before, a.Bid.Price, after)
				}
			}
			asking, pledged := 0, int64(0)
			for _, a := range c.Asks() {
				asking, pledged = asking+1, pledged+a.Bid.Price
			}
			if q.Holding()-q.Held() != asking || q.Pledged() != pledged || c.job.Progress().Asking() != asking ||
				q.Held() != len(c.job.Claims()) {
				rt.Fatalf("the queue asks for %d and pledges %d, want %d and %d", q.Holding()-q.Held(), q.Pledged(), asking, pledged)
			}
		}
	})
}

// TestUnusableGrant: the job is over or about to end, the grant is too short, or its token is known. Nothing is sold.
func TestUnusableGrant(t *testing.T) {
	token := job.Token{Epoch: 1, Seq: 7}
	for name, spoil := range map[string]func(c *counter, in *protocol.Message, g *protocol.Grant){
		"another job's":   func(_ *counter, in *protocol.Message, _ *protocol.Grant) { in.Job = "b" },
		"it is too short": func(_ *counter, _ *protocol.Message, g *protocol.Grant) { g.End-- },
		"the job is to end": func(c *counter, _ *protocol.Message, _ *protocol.Grant) {
			c.job.MakeEnding().Plan(c.now, job.Verdict{State: job.Cancelled})
		},
		"the job is over": func(c *counter, _ *protocol.Message, _ *protocol.Grant) {
			c.book.Apply(&protocol.Fact{Kind: protocol.Ended, Job: "a", At: c.now,
				Body: &protocol.Final{Verdict: job.Verdict{State: job.Cancelled}}})
		},
		"the job is given up": func(c *counter, _ *protocol.Message, _ *protocol.Grant) {
			c.book.Apply(&protocol.Fact{Kind: protocol.HomeLeaving, Job: "a", Generation: 1, Body: &protocol.Reason{Text: "drained"}})
		},
		"its token has a claim": func(c *counter, _ *protocol.Message, _ *protocol.Grant) {
			r := job.Range{From: 50, To: 60}
			c.book.Apply(&protocol.Fact{Kind: protocol.Claimed, Job: "a", Token: token,
				Body: &protocol.Sale{Placement: protocol.Placement{Slice: "s", Range: r, Start: 1, End: 2}}})
		},
	} {
		c := newCounter()
		a := c.TakeAsk(c.asks(job.Range{To: 5}, 0).ID())
		in, g := &protocol.Message{Job: "a", Token: token}, &protocol.Grant{Start: a.Start, End: a.End}
		spoil(c, in, g)
		claims := len(c.job.Claims())
		if c.out.Facts = nil; c.Granted(c.now, a, in, g, &c.out) || len(c.out.Facts) > 0 || len(c.job.Claims()) != claims {
			t.Errorf("%s: it is sold all the same: %+v", name, c.out.Facts)
		}
	}
}

// TestAPlaceIsClaimedOnce: what a ticket has found is sold under its token, and never again when that claim is over.
func TestAPlaceIsClaimedOnce(t *testing.T) {
	c, token := newCounter(), job.Token{Epoch: 1, Seq: 7}
	place := func() *Ask {
		at := protocol.Placement{Slice: "s", Range: job.Range{To: 5}, Start: c.now, End: c.now.Add(time.Minute)}
		return &Ask{Job: c.job, Sale: protocol.Sale{Node: "n", Placement: at}}
	}
	if !c.Claim(c.now, place(), token, &c.out) || len(c.job.Claims()) != 1 || c.job.Claims()[0].Node != "n" {
		t.Fatalf("a place is not claimed: %+v", c.job.Claims())
	}
	c.book.Apply(&protocol.Fact{Kind: protocol.Released, Job: "a", Token: token, At: c.now, Body: &protocol.ClaimEnd{}})
	if c.Claim(c.now, place(), token, &c.out) || len(c.job.Claims()) != 0 {
		t.Error("it is claimed again though its lease is over")
	}
}

// quiet is whoever embeds a desk, and hears of nothing; one node has all slices.
type quiet struct{ record.Watcher }

func (quiet) Make(*job.Spec) *record.Job                           { return &record.Job{} }
func (quiet) Opened(*record.Job)                                   {}
func (quiet) Closed(*record.Job)                                   {}
func (quiet) Changed(*record.Job)                                  {}
func (quiet) Touched(*record.Job)                                  {}
func (quiet) Sold(*record.Job, *protocol.Claim)                    {}
func (quiet) Freed(*record.Job, *protocol.Claim, quantity.Instant) {}
func (quiet) Slices() int                                          { return 1 }
func (quiet) Node(job.SliceID) job.NodeID                          { return "n" }
func (quiet) Address(job.SliceID) string                           { return "" }
