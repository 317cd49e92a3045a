package zone_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// newMarket is a world whose zone negotiates.
func newMarket(t fataler, c auction.Config, capacities ...int64) *world {
	w := newWorld(t, capacities...)
	w.config.Market = &c
	w.bidders = map[job.ID]func(*protocol.Message) []protocol.Message{}
	w.z = w.make()
	return w
}

func TestJobsOfEveryKindFinishInANegotiation(t *testing.T) {
	for _, c := range []auction.Config{{}, {PerTime: true}, {Exclusive: true}, {Joint: true}, {Repack: auction.Never},
		{Repack: auction.Withdraw}, {Trusting: true}, {Variants: 1, Rounds: 1}} {
		w := newMarket(t, c, 512, 1024)
		outer := steps(t, "outer", 200, 10, 300)
		w.submit(items(t, "a", 300, 100, 3), steps(t, "b", 150, 10, 800), rigid(t, "c", time.Minute, 800, 1),
			rigid(t, "pair", 30*time.Second, 400, 2))
		w.attend(outer, honest(outer))
		w.until(2 * time.Hour)
		finished(t, w, "a", "b", "c", "pair", "outer")
		if n := w.z.Negotiation(); n.Awards == 0 || n.Calls == 0 || n.Answers == 0 {
			t.Errorf("%+v: nothing was negotiated: %+v", c, n)
		}
	}
}

func TestASilentAgentCostsThreeClosings(t *testing.T) {
	w := newMarket(t, auction.Config{}, 512)
	w.attend(steps(t, "silent", 200, 10, 300), func(*protocol.Message) []protocol.Message { return nil })
	w.submit(items(t, "a", 30, 100, 1), items(t, "b", 30, 100, 1), items(t, "c", 30, 100, 1), items(t, "d", 30, 100, 1),
		items(t, "e", 30, 100, 1))
	w.until(10 * time.Minute)
	finished(t, w, "a", "b", "c", "d", "e")
	delay := time.Duration(0)
	for _, n := range []job.ID{"a", "b", "c", "d", "e"} {
		j, _ := w.z.Job(w.now, n)
		delay = max(delay, j.Ended.Sub(1e9))
	}
	if most := 5*37500*time.Millisecond + 3*200*time.Millisecond + 50*time.Millisecond; delay > most {
		t.Errorf("five jobs of 37.5 s one after another ended after %v; with three closings of 200 ms that makes %v", delay, most)
	}
	if e, _ := w.z.Explain(w.now, "silent"); !strings.Contains(fmt.Sprint(e.Reasons), "did not answer before the round closed") {
		t.Errorf("the reason is not said: %+v", e.Reasons)
	}
}

func TestAJobWithoutAnAgentSaysSo(t *testing.T) {
	w := newMarket(t, auction.Config{}, 512)
	s := steps(t, "alone", 200, 10, 300)
	s.External = true
	w.submit(s)
	w.until(30 * time.Second)
	if e, _ := w.z.Explain(w.now, "alone"); !strings.Contains(e.Job.Reason, "no agent of it is connected") {
		t.Errorf("%s", e.Job.Reason)
	}
}

func TestTheNewestAgentOfAJobCounts(t *testing.T) {
	w := newMarket(t, auction.Config{}, 512)
	s := steps(t, "a", 100, 10, 300)
	var told []protocol.NoticeKind
	good := honest(s)
	w.attend(s, func(m *protocol.Message) []protocol.Message {
		if m.Session != 8 {
			return nil
		}
		for _, n := range noticesIn(m) {
			told = append(told, n.Kind)
		}
		answers := good(m)
		for _, a := range answers { // the older one, whose answers are not heard
			a.Session, a.Body = 7, &protocol.Proposal{Round: a.Body.(*protocol.Proposal).Round}
			w.answer(a)
		}
		return answers
	})
	w.step(protocol.Message{Kind: protocol.Attend, Job: "a", Session: 8, Body: &protocol.Attendance{Present: true}})
	// it is gone: nothing follows from that
	w.step(protocol.Message{Kind: protocol.Attend, Job: "a", Session: 7, Body: &protocol.Attendance{}})
	w.until(10 * time.Minute)
	finished(t, w, "a")
	if !slices.Contains(told, protocol.Awarded) || !slices.Contains(told, protocol.Lost) || !slices.Contains(told, protocol.Concluded) {
		t.Errorf("the agent was told %v", told)
	}
}

// TestWhatAnAgentMayNotSell: each of these is refused with the reason, and nothing is sold.
func TestWhatAnAgentMayNotSell(t *testing.T) {
	good := protocol.Variant{ID: 1, Range: job.Range{From: 0, To: 50}, Run: 50 * time.Second, Wall: 52 * time.Second, Score: 500_000}
	for _, c := range []struct {
		why    string
		change func(v *protocol.Variant)
	}{
		{"is no work of the job", func(v *protocol.Variant) { v.Range.To = 300 }},
		{"is no work of the job", func(v *protocol.Variant) { v.Range.From = -10 }},
		{"is no work of the job", func(v *protocol.Variant) { v.Range = job.Range{From: 9, To: 3} }},
		{"the chain goes on at 0", func(v *protocol.Variant) { v.Range = job.Range{From: 10, To: 50} }},
		{"not on the grid", func(v *protocol.Variant) { v.Range.To = 47 }},
		{"least useful run", func(v *protocol.Variant) { v.Run = time.Second }},
		{"it plans to run", func(v *protocol.Variant) { v.Wall = v.Run - 1 }},
		{"it plans to run", func(v *protocol.Variant) { v.Run, v.Wall = math.MinInt64, math.MaxInt64 }},
		{"it ends", func(v *protocol.Variant) { v.Wall = time.Hour }},
		{"does not begin within", func(v *protocol.Variant) { v.Start = v.Start.Add(time.Hour) }},
		{"does not begin within", func(v *protocol.Variant) { v.Start = 5 }},
		{"to be safe", func(v *protocol.Variant) { v.Range.To = 200; v.Run, v.Wall = 200*time.Second, 201*time.Second }},
		{"to be safe", func(v *protocol.Variant) { v.Demand[trp.Memory] = 1 << 60 }},
		{"its score is", func(v *protocol.Variant) { v.Score = 1_000_001 }},
		{"its score is", func(v *protocol.Variant) { v.Score = math.MinInt64 }},
		{"no option", func(v *protocol.Variant) { v.Option = "fast" }},
		{"no such window", func(v *protocol.Variant) { v.Window = math.MaxUint64 }},
	} {
		w := newMarket(t, auction.Config{}, 512)
		s := steps(t, "a", 200, 10, 300)
		s.Profile.Phases = []trp.Phase{{UpTo: 100, Mean: 300 << 20}, {UpTo: 200, Mean: 900 << 20}}
		s.Safe, _ = trp.Compile(s.Profile, s.Total, s.Theta)
		var notices []protocol.Notice
		w.attend(s, func(m *protocol.Message) []protocol.Message {
			if notices = append(notices, noticesIn(m)...); m.Kind != protocol.Announce {
				return nil
			}
			v := good
			v.Window, v.Start = callIn(m).Windows[0].Window, callIn(m).Windows[0].Start
			c.change(&v)
			return []protocol.Message{{Kind: protocol.Answer, Job: "a", Session: m.Session, Body: &protocol.Proposal{Round: callIn(m).Round,
				Variants: []protocol.Variant{v}}}}
		})
		w.until(10 * time.Second)
		if len(notices) == 0 || notices[0].Kind != protocol.Denied || !strings.Contains(notices[0].Text, c.why) {
			t.Errorf("want a denial with %q, got %+v", c.why, notices)
		}
		if w.seq != 0 {
			t.Errorf("%s: something was asked of the node all the same", c.why)
		}
	}
}

// TestTheSameWorkIsNotSoldTwiceInAWindow covers two variants of the same work apart in time (adr 0013).
func TestTheSameWorkIsNotSoldTwiceInAWindow(t *testing.T) {
	w := newMarket(t, auction.Config{Repack: auction.Never}, 512)
	s := items(t, "a", 100, 300, 4)
	var notices []protocol.Notice
	w.attend(s, func(m *protocol.Message) []protocol.Message {
		if notices = append(notices, noticesIn(m)...); m.Kind != protocol.Announce {
			return nil
		}
		var out []protocol.Variant
		for i := range 3 {
			at := callIn(m).Windows[0].Start.Add(time.Duration(i) * 60 * time.Second)
			out = append(out, protocol.Variant{ID: uint32(i), Window: callIn(m).Windows[0].Window, Range: callIn(m).Free[0], Start: at,
				Run: 50 * time.Second, Wall: 50 * time.Second, Score: 1_000_000})
		}
		return []protocol.Message{{Kind: protocol.Answer, Job: "a", Session: m.Session, Body: &protocol.Proposal{Round: callIn(m).Round,
			Variants: out}}}
	})
	w.until(10 * time.Minute)
	finished(t, w, "a")
	if len(notices) < 3 || notices[0].Kind != protocol.Awarded || notices[1].Kind != protocol.Denied ||
		!strings.Contains(notices[1].Text, "sold twice") || notices[2].Kind != protocol.Denied {
		t.Errorf("%+v", notices)
	}
}

// TestTheOrderOfAnswersDoesNotCount: the same round with answers and variants in any order sells the same.
func TestTheOrderOfAnswersDoesNotCount(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		n := rapid.IntRange(2, 6).Draw(rt, "agents")
		config := auction.Config{
			PerTime: rapid.Bool().Draw(rt, "per time"), Exclusive: rapid.Bool().Draw(rt, "exclusive"),
			Joint:  rapid.Bool().Draw(rt, "joint"),
			Repack: rapid.SampledFrom([]auction.Repack{auction.Rolling, auction.Never}).Draw(rt, "repack"),
		}
		if !config.Exclusive && !config.Joint {
			config.Payment = rapid.SampledFrom([]auction.Payment{auction.Free, auction.FirstPrice, auction.VCG}).Draw(rt, "payment")
		}
		play := func(turn int) string {
			draws := seed
			draw := func(n int) int {
				draws = draws*6364136223846793005 + 1442695040888963407
				return int(draws>>33) % n
			}
			w := newMarket(rt, config, 512, 512, 1024)
			var held []protocol.Message
			specs := make([]*job.Spec, n)
			for i := range n {
				s := items(t, fmt.Sprint("j", i), int64(20+draw(100)), int64(100+draw(800)), 1+draw(3))
				s.Priority = int32(draw(3) * 10)
				specs[i] = s
				answer := honest(s)
				w.attend(s, func(m *protocol.Message) []protocol.Message {
					held = append(held, answer(m)...)
					return nil
				})
			}
			for range 20 {
				w.tick()
				for i := range held { // all are there before the first is heard
					a := held[(i+turn)%len(held)]
					if turn%2 == 1 {
						p := *a.Body.(*protocol.Proposal)
						p.Variants = slices.Clone(p.Variants)
						slices.Reverse(p.Variants)
						a.Body = &p
					}
					w.answer(a)
				}
				held = nil
			}
			var log []string
			for _, f := range w.facts {
				said := []any{f.Kind, f.Job, f.Token, rangeOf(&f)}
				switch b := f.Body.(type) {
				case *protocol.Sale:
					said = append(said, b.Start, b.End, b.Bid)
				case *protocol.Extent:
					said = append(said, b.End)
				case *protocol.Calibration:
					said = append(said, b)
				}
				log = append(log, fmt.Sprint(said...))
			}
			return strings.Join(log, "\n")
		}
		first := play(0)
		for turn := 1; turn < 4; turn++ {
			if again := play(turn); again != first {
				rt.Fatalf("turned by %d:\n%s\nfirst\n%s", turn, again, first)
			}
		}
	})
}

// TestANegotiationHoldsUnderFaults: worlds of built-in and external jobs, honest and hostile, with lost and doubled messages,
// drains, caps, cancellations and restarts in mid-round. The facts fold to the same state after every restart; a claim never
// overlaps another of the same work (invariants of Apply) nor leaves its slice's capacity, and honest jobs end.
func TestANegotiationHoldsUnderFaults(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		draw := drawer(rt)
		w := newMarket(rt, auction.Config{
			Variants: 1 + draw(6), PerTime: draw(2) == 0, Exclusive: draw(3) == 0, Joint: draw(2) == 0, Rounds: 1 + draw(3),
			Repack: auction.Repack(draw(3)), Starve: time.Duration(1+draw(600)) * time.Second, Trusting: draw(4) == 0,
			Audience: 2 + draw(20),
		})
		for i := range 1 + rapid.IntRange(0, 9).Draw(rt, "slices") {
			w.slices = append(w.slices, &simSlice{node: job.NodeID(fmt.Sprint("n", i/3)), view: protocol.Slice{
				ID: job.SliceID(fmt.Sprintf("s%d", i)), Profile: []string{"small", "large"}[draw(2)],
				Capacity: trp.Vector{quantity.Amount((512 + draw(3)*512) << 20)}, Speed: int64(500 + draw(2)*500),
			}})
		}
		w.config.Rigid = rapid.SampledFrom([]backfill.Discipline{{}, {Overtake: true}, {Reserve: 1}}).Draw(rt, "rigid")
		w.config.Horizon = time.Duration(60+draw(600)) * time.Second
		w.z, w.draw = w.make(), draw
		w.rough(rt)
		w.run = func(m *protocol.Message) (time.Duration, job.Result) { return w.end(m) }
		w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "capped", Weight: 2, Cap: 1 + draw(4)}})
		w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "short", Weight: 3,
			MaxWindow: time.Duration(20+draw(300)) * time.Second}})
		jobs, crash := rapid.IntRange(1, 25).Draw(rt, "jobs"), rapid.SampledFrom([]int{0, 0, 40}).Draw(rt, "restart every")
		for i := 0; i < 300 && (i < 4*jobs || len(w.closed) < len(w.adopted)); i++ {
			if n := len(w.adopted); n < jobs && draw(3) > 0 {
				if s := w.drawJob(rt, draw, n); s.Divisible() && draw(2) == 0 {
					w.attend(s, hostile(s, draw))
				} else {
					w.submit(s)
				}
			}
			w.disturb(draw)
			w.tick()
			w.sane()
			if crash > 0 && i%crash == crash-1 {
				w.restart()
				for i := range len(w.adopted) {
					if name := job.ID(fmt.Sprint("j", i)); w.adopted[name].External && draw(4) > 0 {
						w.queue = append(w.queue, protocol.Message{Kind: protocol.Attend, Job: name, Session: 9,
							Body: &protocol.Attendance{Present: true}, To: protocol.Address{Role: protocol.Zone}})
					}
				}
			}
		}
	})
}

// sane checks that no two leases overlap on a slice and each is within its capacity.
func (w *world) sane() {
	for _, s := range w.slices {
		for i, a := range s.busy {
			for _, b := range s.busy[:i] {
				if a.Start < b.End && b.Start < a.End && a.Kind != protocol.ForRigid && b.Kind != protocol.ForRigid {
					w.t.Fatalf("%s: %+v and %+v overlap", s.view.ID, a, b)
				}
			}
		}
		for _, r := range s.runs {
			if !r.m.Body.(*protocol.Work).Demand.Fits(s.view.Capacity) {
				w.t.Fatalf("%s: %v of %s is over its capacity", s.view.ID, r.m.Body.(*protocol.Work).Demand, r.m.Job)
			}
			least := w.adopted[r.m.Job].Safe.LeastOver(r.m.Body.(*protocol.Work).Range.From, r.m.Body.(*protocol.Work).Range.To,
				trp.Unscaled)
			for _, t := range w.taught[r.m.Job] { // it was sold by what was known then
				least = min(least, t.LeastOver(r.m.Body.(*protocol.Work).Range.From, r.m.Body.(*protocol.Work).Range.To, trp.Unscaled))
			}
			if least > s.view.Capacity[trp.Memory] {
				w.t.Fatalf("%s: %v of %s needs %d to be safe", s.view.ID, r.m.Body.(*protocol.Work).Range, r.m.Job, least)
			}
		}
	}
}

// TestARigidJobWithoutWalltimeIsServed: it runs until it ends, on a slice where nothing else is known to come.
func TestARigidJobWithoutWalltimeIsServed(t *testing.T) {
	w := newMarket(t, auction.Config{}, 512)
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		return 40 * time.Second, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
	}
	w.config.Rigid = backfill.Discipline{Overtake: true}
	w.z = w.make()
	w.submit(rigid(t, "endless", 0, 300, 1))
	w.until(5 * time.Minute)
	finished(t, w, "endless")
}

// TestNobodyStarves (adr 0013): however little a job is worth and however many better ones keep coming, once it has waited for
// T_starve it is served in the first window that it can use after those whose turn is before; also where not everybody is
// asked, and where jobs signal interest instead of bidding.
func TestNobodyStarves(t *testing.T) {
	limit := starvation.Limit{After: 5 * time.Minute, Slowdown: 1, Share: 100}
	for _, c := range []struct {
		market *auction.Config
		limit  starvation.Limit
	}{
		{&auction.Config{}, limit}, {&auction.Config{Audience: 4}, limit}, {&auction.Config{Exclusive: true}, limit},
		{&auction.Config{Joint: true}, limit}, {nil, limit},
		{&auction.Config{Starve: -1}, limit}, {nil, starvation.Limit{After: -1}},
	} {
		w := newWorld(t, 512)
		w.config.Market, w.config.Starvation, w.config.Policy = c.market, c.limit, shortest.Policy{}
		w.z = w.make()
		w.config.Horizon = 10 * time.Minute
		poor := steps(t, "poor", 400, 200, 300) // of long pieces, none of which gets far
		poor.Priority = -100
		w.submit(items(t, "first", 20, 100, 1))
		w.tick()
		w.submit(poor)
		served := time.Duration(0)
		for i := 0; w.now < quantity.Instant(1800e9); i++ {
			if j, _ := w.z.Job(w.now, "poor"); served == 0 && j.Started != 0 {
				served = j.Started.Sub(1e9)
			}
			for len(w.adopted)-len(w.closed) < 12 { // eleven short ones always wait
				w.submit(items(t, fmt.Sprintf("rich%04d", len(w.adopted)), 20, 100, 1))
			}
			w.tick()
		}
		if c.limit.After < 0 || c.market != nil && c.market.Starve < 0 {
			if served != 0 {
				t.Errorf("without the rule it was served after %v: the test tests nothing", served)
			}
			continue
		}
		// It is late after its own length, at a slowdown of 1.
		if most := 430 * time.Second; served == 0 || served > most {
			t.Errorf("%+v %+v: served after %v, want at most %v", c.market, c.limit, served, most)
		}
	}
}

// TestAnExternalJobIsNotCutWithoutItsAgent under sja: it waits and says why.
func TestAnExternalJobIsNotCutWithoutItsAgent(t *testing.T) {
	w := newWorld(t, 512)
	s := steps(t, "a", 100, 10, 300)
	s.External = true
	w.submit(s)
	w.until(time.Minute)
	if j, _ := w.z.Job(w.now, "a"); len(j.History) > 0 || !strings.Contains(j.Reason, "no agent of it is connected") {
		t.Errorf("%s, %d subjobs", j.Reason, len(j.History))
	}
}
