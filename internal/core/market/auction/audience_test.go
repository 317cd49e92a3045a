package auction

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/agents"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/policy/throughput"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
)

// TestTheBestBidIsHeard: where bids go by the policy's index no job that is not asked would bid more for a millisecond of its run than the
// best of those that are, whatever the weights, purses and waits, and however few the audience holds. The oracle asks everybody.
func TestTheBestBidIsHeard(t *testing.T) {
	beyond := 0
	world := func(t *rapid.T) {
		now := quantity.Instant(1e15)
		c := Config{
			Audience: rapid.IntRange(2, 6).Draw(t, "audience"), Payment: Payment(rapid.IntRange(0, 1).Draw(t, "payment")),
			Starve: rapid.SampledFrom([]time.Duration{-1, time.Hour}).Draw(t, "starve"), PerTime: rapid.Bool().Draw(t, "per time"),
		}
		p := rapid.SampledFrom([]policy.Policy{shortest.Policy{}, throughput.Policy{}}).Draw(t, "policy")
		if rapid.Bool().Draw(t, "weights") || p.Name() != "shortest" {
			s := score.System{Index: rapid.Int64Range(1, score.One).Draw(t, "index")}
			s.Brevity = rapid.Int64Range(0, score.One-s.Index).Draw(t, "brevity")
			s.Share = score.One - s.Index - s.Brevity
			c.Weights = score.Weights{Lambda: rapid.Int64Range(0, score.One-1).Draw(t, "lambda"), System: s}
		}
		w := newWorld(p, c)
		end := rapid.SampledFrom([]quantity.Instant{quantity.Never, now.Add(20 * time.Minute)}).Draw(t, "end")
		w.offer("s", 10, 1000, protocol.Gap{Start: now, End: end})
		for i := range rapid.IntRange(1, 25).Draw(t, "jobs") {
			s := markettest.Spec(t, i)
			s.Name = job.ID(fmt.Sprintf("j%02d", i))
			s.Queue = rapid.SampledFrom([]string{"q", "other", "a third"}).Draw(t, "queue")
			s.Total, s.Priority = 10*rapid.Int64Range(1, 900).Draw(t, "tens"), rapid.Int32Range(-100, 100).Draw(t, "priority")
			s.Restore = time.Duration(rapid.IntRange(0, 20).Draw(t, "restore")) * time.Second
			w.submit(markettest.Job{Of: s, Came: now.Add(-time.Duration(rapid.IntRange(0, 200).Draw(t, "waits")) * time.Minute),
				Had: rapid.Int64Range(0, 1e9).Draw(t, "attained")})
		}
		w.parts.Index.Refresh(now)
		w.step(now.Add(-1)) // makes the window, which has not begun
		s := w.slices[0]
		if len(s.Windows()) == 0 {
			t.Fatal("no window")
		}
		o := agents.Offer{Slice: s, ID: s.Windows()[0].ID(), Full: true}
		w.x.quoter.begin()
		w.x.gather(now, 0, &o, &s.Windows()[0])
		asked, heard := map[*index.Job]bool{}, int64(0)
		for i := range w.x.sieve.heard {
			q := w.x.sieve.heard[i].quote
			asked[q.job], heard = true, max(heard, w.x.quoter.rateOf(now, q, &o))
		}
		if len(asked) > c.Audience && c.Starve < 0 {
			beyond++
		}
		for _, j := range w.jobs {
			if q := w.x.quoter.quote(now, j, &o, &s.Windows()[0]); !asked[j] && len(q.terms) > 0 {
				w.x.quoter.read(now, q)
				if unheard := w.x.quoter.rateOf(now, q, &o); unheard > heard {
					t.Fatalf("%s was not asked and would bid %d, the best of %d that were bids %d", j.Name(), unheard, len(asked), heard)
				}
			}
		}
	}
	for round := 0; round == 0 || beyond == 0 && round < 4; round++ { // a hundred worlds may not have all
		rapid.Check(t, world)
	}
	if beyond == 0 {
		t.Error("nobody was ever asked beyond the audience")
	}
}

// TestAnAgentsIndexIsBelievedByItsRecord: an agent's work seems short by what it says of it; what counts is what its jobs have shown, as
// long as declarations are not taken at their word. Honest work brings it back.
func TestAnAgentsIndexIsBelievedByItsRecord(t *testing.T) {
	indexOf := func(c Config, external bool, record protocol.Trust) int64 {
		w := newWorld(shortest.Policy{}, c)
		d := &markettest.Job{Of: &job.Spec{Kind: job.Steps, Total: 100, PerUnit: time.Second, Parallelism: 1, External: external}}
		d.Learned.Trust = record
		class, _ := w.parts.Board.ClassOf(&protocol.Slice{Speed: 1000})
		return w.x.quoter.trusted(&index.Job{Demand: d}, class)
	}
	honest := protocol.Trust{Seen: 5, History: 800_000, Pace: 1000}
	liar, slow, late := honest, honest, honest
	liar.Error, late.Pace, slow.Pace = 600_000, 1999, 2000
	full := indexOf(Config{}, true, honest)
	if got := indexOf(Config{}, true, liar); got >= full/2 || got == 0 {
		t.Errorf("an index of %d for a liar, %d for an honest agent", got, full)
	}
	if got := indexOf(Config{}, true, slow); got >= indexOf(Config{}, true, late) || got > full/2+1 {
		t.Errorf("an index of %d for work that takes twice as long as planned, %d for what is on time", got, full)
	}
	for i, settings := 0, (Config{}).Under(shortest.Policy{}); i < 40; i++ {
		s := settings.Trust()
		s.Observe(&liar, trust.Observation{Declared: 800_000, Observed: 800_000, Risk: 1000, Planned: time.Second, Ran: time.Second})
	}
	if got := indexOf(Config{}, true, liar); got < full*95/100 {
		t.Errorf("after 40 honest subjobs an index of %d, of %d", got, full)
	}
	liar.Error = 600_000
	if got := indexOf(Config{Trusting: true}, true, liar); got != full {
		t.Errorf("an index of %d where all is believed, want %d", got, full)
	}
	if got := indexOf(Config{}, false, liar); got != full {
		t.Errorf("an index of %d for work whose times are learned, want %d", got, full)
	}
}
