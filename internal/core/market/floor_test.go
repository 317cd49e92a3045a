package market

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/core/policy/deadline"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/policy/throughput"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
)

// frugal asks first who has had least, whatever the queue.
type frugal struct{}

func (frugal) Name() string { return "frugal" }
func (frugal) Compare(a, b *policy.Candidate) int {
	return cmp.Or(cmp.Compare(a.Attained, b.Attained), policy.ByAge(a, b))
}
func (frugal) Key(c *policy.Candidate) [2]int64 {
	return [2]int64{c.Attained, policy.Age(c.Priority, c.Submitted)}
}
func (frugal) Motion() policy.Motion { return policy.Still }

// fakeWorld is a floor with jobs and slices, and nothing else: no zone, no node, no claim.
type fakeWorld struct {
	f      *Floor
	sale   *markettest.Seller
	jobs   []*index.Job
	slices []*window.Slice
	out    protocol.Out
}

func newFakeWorld(cfg FloorConfig, plain bool) *fakeWorld {
	w := &fakeWorld{sale: &markettest.Seller{}}
	w.f = newFloor(cfg, w.sale, plain)
	w.sale.Floor = w.f
	return w
}

func (w *fakeWorld) submit(d markettest.Job) {
	d.Seller = w.sale
	j := &index.Job{Demand: &d}
	w.jobs = append(w.jobs, j)
	w.f.Activate(j)
	w.f.Changed(j)
}

func (w *fakeWorld) offer(name string, gib, speed int64, gaps ...protocol.Gap) {
	s := &window.Slice{Supply: &markettest.Slice{ID: job.SliceID(name), On: "n", Gaps: gaps}}
	w.slices = append(w.slices, s)
	w.f.Place(s, &protocol.Slice{ID: job.SliceID(name), Capacity: trp.Vector{quantity.Amount(gib << 30)}, Speed: speed})
	w.f.InvalidateSlice(s)
}

func (w *fakeWorld) step(now quantity.Instant) quantity.Instant {
	w.sale.Now = now
	for _, s := range w.f.Turning(now) {
		w.f.InvalidateSlice(s)
	}
	waiting := 0
	for _, j := range w.jobs {
		if j.Active() && j.Busy() == 0 {
			waiting++
		}
	}
	return w.f.Sell(now, waiting, &w.out)
}

// TestTheFloorDecidesAsThePlainOneDoes: whatever happens to jobs and slices, a floor that looks only at what has changed sells what
// one sells that looks at everything. After every step all that
// it keeps, but for what is marked, is what it would find if it looked: so nothing is ever read that is stale.
func TestTheFloorDecidesAsThePlainOneDoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := FloorConfig{
			Policy: rapid.SampledFrom(append(all.Policies(), frugal{})).Draw(t, "policy"), Horizon: 10 * time.Minute,
			MinWindow: time.Second, Retry: time.Second,
		}
		cfg.Starvation = starvation.Limit{
			After:    time.Duration(rapid.IntRange(1, 300).Draw(t, "after")) * time.Second,
			Slowdown: rapid.Int64Range(1, 4).Draw(t, "slowdown"),
			Share:    rapid.Int64Range(1, 1000).Draw(t, "share of the late"),
		}
		if rapid.Bool().Draw(t, "bids") {
			c := drawConfig(t)
			cfg.Market = &c
			// Where queues come first the plain one would have to know the order in which they were first heard of.
			cfg.Policy = rapid.SampledFrom([]policy.Policy{fifo.Policy{}, deadline.Policy{}, frugal{}, shortest.Policy{},
				throughput.Policy{}}).Draw(t, "who is asked")
		}
		worlds := []*fakeWorld{newFakeWorld(cfg, false), newFakeWorld(cfg, true), newFakeWorld(cfg, false)}
		if x, bids := worlds[2].f.mechanism.(*auction.Auction); bids {
			x.AskAll()
		}
		both := func(do func(w *fakeWorld)) {
			for _, w := range worlds {
				do(w)
			}
		}
		now := quantity.Instant(1e12)
		for i := range rapid.IntRange(1, 9).Draw(t, "slices") {
			gib, speed := rapid.Int64Range(4, 7).Draw(t, "gib"), rapid.SampledFrom([]int64{500, 1000}).Draw(t, "speed")
			both(func(w *fakeWorld) {
				w.offer(fmt.Sprint("s", i), gib, speed, protocol.Gap{Start: now, End: quantity.Never})
			})
		}
		submit := func() {
			s := markettest.Spec(t, rapid.IntRange(0, 999).Draw(t, "spec"))
			s.Name, s.Queue = job.ID(fmt.Sprint("j", len(worlds[0].jobs))), rapid.SampledFrom([]string{"q", "qq"}).Draw(t, "queue")
			s.Total, s.Priority = rapid.Int64Range(10, 300).Draw(t, "total"), int32(rapid.IntRange(-2, 2).Draw(t, "priority")*50)
			if rapid.Bool().Draw(t, "deadline") {
				s.Deadline = now.Add(time.Duration(rapid.IntRange(1, 300).Draw(t, "within")) * time.Minute)
			}
			if rapid.IntRange(0, 4).Draw(t, "option") == 0 {
				s.Options = []job.Option{{Name: "other", Speed: rapid.Int64Range(500, 1500).Draw(t, "faster"),
					Memory: rapid.Int64Range(500, 1500).Draw(t, "less")}}
			}
			if rapid.Bool().Draw(t, "items") {
				s.Kind, s.Parallelism, s.Restore, s.Checkpoint = job.Items, rapid.IntRange(1, 3).Draw(t, "parallelism"), 0, 0
			}
			if rapid.IntRange(0, 4).Draw(t, "rigid") == 0 {
				s.Kind, s.Walltime = job.Rigid, time.Duration(rapid.IntRange(0, 5).Draw(t, "walltime"))*time.Minute
			}
			s.Profile.Phases = []trp.Phase{{UpTo: s.Total, Mean: quantity.Amount(rapid.Int64Range(3, 8).Draw(t, "mean") << 30)}}
			s.Safe, _ = trp.Compile(s.Profile, s.Total, s.Theta)
			d := markettest.Job{Of: s, Came: now.Add(-time.Duration(rapid.IntRange(0, 3).Draw(t, "age")) * time.Second),
				Moves:   rapid.IntRange(0, 4).Draw(t, "volatile") == 0,
				Longest: time.Duration(rapid.IntRange(0, 2).Draw(t, "longest")) * 3 * time.Minute}
			d.Learned.Trust = protocol.Trust{Error: rapid.Int64Range(0, 900_000).Draw(t, "error"),
				History: rapid.Int64Range(0, 1_000_000).Draw(t, "history"), Seen: rapid.Int64Range(0, 2).Draw(t, "seen")}
			both(func(w *fakeWorld) { w.submit(d) })
		}
		crowd := rapid.IntRange(0, 10).Draw(t, "crowd")
		if rapid.IntRange(0, 9).Draw(t, "large") == 0 {
			crowd += 40 // those that are volatile have no rank
		}
		for range crowd {
			submit()
		}
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			switch kind := rapid.IntRange(0, 9).Draw(t, "what"); {
			case kind < 4:
				submit()
			case kind < 7 && len(worlds[0].sale.Runs) > 0:
				i := rapid.IntRange(0, len(worlds[0].sale.Runs)-1).Draw(t, "ends")
				both(func(w *fakeWorld) {
					w.sale.Runs[i]()
					w.sale.Runs = slices.Delete(w.sale.Runs, i, i+1)
				})
			case kind == 7 && len(worlds[0].jobs) > 0:
				i, pause := rapid.IntRange(0, len(worlds[0].jobs)-1).Draw(t, "whom"), rapid.Bool().Draw(t, "pause")
				both(func(w *fakeWorld) {
					w.jobs[i].Demand.(*markettest.Job).Paused = pause
					w.f.Changed(w.jobs[i])
				})
			case kind == 8:
				i := rapid.IntRange(0, len(worlds[0].slices)-1).Draw(t, "slice")
				from := now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "from")) * time.Second)
				gap := protocol.Gap{Start: from, End: from.Add(time.Duration(rapid.IntRange(1, 400).Draw(t, "length")) * time.Second),
					Until: protocol.ForDrain}
				both(func(w *fakeWorld) {
					w.slices[i].Supply.(*markettest.Slice).Gaps = []protocol.Gap{gap}
					w.f.InvalidateSlice(w.slices[i])
				})
			case kind == 9 && rapid.Bool().Draw(t, "new slice"):
				gib, speed := rapid.Int64Range(4, 9).Draw(t, "gib"), rapid.SampledFrom([]int64{500, 1000}).Draw(t, "speed")
				both(func(w *fakeWorld) {
					w.offer(fmt.Sprint("s", len(w.slices)), gib, speed, protocol.Gap{Start: now, End: quantity.Never})
				})
			case kind == 9 && len(worlds[0].jobs) > 0:
				i, k := rapid.IntRange(0, len(worlds[0].jobs)-1).Draw(t, "whom"), rapid.IntRange(0, len(worlds[0].slices)-1).Draw(t,
					"where")
				both(func(w *fakeWorld) {
					w.jobs[i].Demand.(*markettest.Job).Avoided = w.slices[k]
					w.f.Changed(w.jobs[i])
				})
			}
			wake := worlds[0].step(now)
			worlds[1].step(now)
			worlds[2].step(now)
			if wrong := worlds[0].f.Audit(now); len(wrong) > 0 {
				t.Fatalf("at %d the floor keeps what is not so: %q", now/1e6, wrong)
			}
			if !slices.Equal(worlds[0].sale.Sold, worlds[1].sale.Sold) {
				t.Fatalf("at %d the floor has sold\n%q\nthe plain one\n%q", now/1e6, worlds[0].sale.Sold, worlds[1].sale.Sold)
			}
			for i, j := range worlds[0].jobs {
				if a, b := j.Losses().List(), worlds[1].jobs[i].Losses().List(); !slices.Equal(a, b) {
					t.Fatalf("at %d %s has lost\n%+v\nby the plain floor\n%+v", now/1e6, j.Name(), a, b)
				}
			}
			sameCounts(t, now, worlds[0], worlds[2])
			now = now.Add(time.Duration(rapid.IntRange(0, 200).Draw(t, "later")) * time.Second)
			if wake != quantity.Never && rapid.Bool().Draw(t, "on time") {
				now = max(now, wake)
			}
		}
	})
}

// sameCounts holds what a floor that skips rounds without a taker says of them against what one says that has them all.
func sameCounts(t *rapid.T, now quantity.Instant, skips, asks *fakeWorld) {
	if a, b := skips.f.mechanism.Rounds(), asks.f.mechanism.Rounds(); a != b {
		t.Fatalf("at %d round %d is next, where all are asked %d", now/1e6, a, b)
	}
	if a, b := skips.f.stats, asks.f.stats; a != b {
		t.Fatalf("at %d the floor has done\n%+v\nwhere all are asked\n%+v", now/1e6, a, b)
	}
	for i, j := range skips.jobs {
		if a, b := j.Counts().All(), asks.jobs[i].Counts().All(); !reflect.DeepEqual(a, b) {
			t.Fatalf("at %d %s counts\n%+v\nwhere all are asked\n%+v", now/1e6, j.Name(), a, b)
		}
	}
}

// drawConfig is a market of any kind.
func drawConfig(t *rapid.T) Config {
	c := Config{
		Audience: rapid.IntRange(2, 12).Draw(t, "audience"), Variants: rapid.IntRange(1, 8).Draw(t, "variants"),
		PerTime: rapid.Bool().Draw(t, "per time"), Exclusive: rapid.IntRange(0, 4).Draw(t, "exclusive") == 0,
		Joint:    rapid.IntRange(0, 4).Draw(t, "joint") == 0,
		Repack:   auction.Repack(rapid.IntRange(0, 2).Draw(t, "repack")),
		Freeze:   time.Duration(rapid.IntRange(0, 3).Draw(t, "freeze")) * 40 * time.Second,
		Starve:   rapid.SampledFrom([]time.Duration{-1, time.Minute, 0}).Draw(t, "starve"),
		Trusting: rapid.IntRange(0, 4).Draw(t, "trusting") == 0,
		Payment:  auction.Payment(rapid.IntRange(0, 2).Draw(t, "payment")),
	}
	if c.Payment == auction.VCG {
		c.Exclusive, c.Joint = false, false
	}
	if rapid.Bool().Draw(t, "weights") {
		left := int64(score.One)
		part := func(name string) int64 {
			n := rapid.Int64Range(0, left).Draw(t, name)
			left -= n
			return n
		}
		s := score.System{Time: part("time"), Memory: part("memory"), Residue: part("residue"), Headroom: part("headroom"),
			Age: part("age"), Share: part("share")}
		s.Brevity = part("brevity")
		s.Urgency = part("urgency")
		s.Index = left
		c.Weights = score.Weights{Lambda: rapid.Int64Range(0, score.One).Draw(t, "lambda"), System: s}
	}
	return c.WithDefaults()
}

// TestAFloorStandsAlone: it sells what it is given to whoever is there, with no zone around it.
func TestAFloorStandsAlone(t *testing.T) {
	w := newFakeWorld(FloorConfig{Policy: all.Policies()[0], Horizon: 10 * time.Minute, MinWindow: time.Second, Retry: time.Second}, false)
	now := quantity.Instant(1e12)
	w.offer("s", 10, 1000, protocol.Gap{Start: now.Add(time.Minute), End: now.Add(5 * time.Minute)})
	s := markettest.Spec(t, 1)
	w.submit(markettest.Job{Of: s, Came: now})
	if wake := w.step(now); wake != now.Add(time.Minute) || len(w.sale.Sold) > 0 {
		t.Fatalf("before its window begins %q was sold, and the floor looks again at %v", w.sale.Sold, wake.Sub(now))
	}
	w.step(now.Add(time.Minute))
	if len(w.sale.Sold) != 1 {
		t.Fatalf("in one window %q was sold", w.sale.Sold)
	}
}
