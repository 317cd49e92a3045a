package bidder_test

import (
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/bidder"
)

const (
	gib = quantity.Amount(1 << 30)
	now = quantity.Instant(1000 * time.Second)
)

// chain is a job of 600 steps of a second in 4 GiB; its last third needs 8.
func chain(t *testing.T) *job.Spec {
	t.Helper()
	s := &job.Spec{
		Name: "chain", Kind: job.Steps, Total: 600, PerUnit: time.Second, Grid: 10, Parallelism: 1, OverheadMax: 100,
		Worth:   job.DefaultWorth,
		Restore: 2 * time.Second, Checkpoint: time.Second, TauMin: 20 * time.Second, Deadline: quantity.Never, Theta: 10_000,
		Profile: trp.Profile{Form: trp.Envelope, Curve: []trp.Point{{UpTo: 400, Amount: 4 * gib}, {UpTo: 600, Amount: 8 * gib}}},
	}
	var err error
	if s.Safe, err = trp.Compile(s.Profile, s.Total, s.Theta); err != nil {
		t.Fatal(err)
	}
	return s
}

// call offers a window of five minutes on a small slice and one of a minute on a large one.
func call(round uint64, from int64) *protocol.Message {
	return &protocol.Message{Kind: protocol.Announce, Session: 7, Body: &protocol.Call{
		Round: round, Closes: now.Add(200 * time.Millisecond), Most: 4, Free: job.Ranges{{From: from, To: 600}}, Left: 600 - from,
		First: from == 0,
		Windows: []protocol.Advert{
			{Window: 1, Slice: "s", Speed: 1000, Capacity: trp.Vector{5 * gib}, Start: now, End: now.Add(5 * time.Minute)},
			{Window: 2, Slice: "l", Speed: 1000, Capacity: trp.Vector{10 * gib}, Start: now, End: now.Add(time.Minute)},
		},
	}}
}

func hear(a *bidder.Agent, m *protocol.Message) []protocol.Variant {
	answers, _ := a.Hear(now, m)
	if len(answers) == 0 {
		return nil
	}
	return answers[0].Body.(*protocol.Proposal).Variants
}

// TestHonest: the answer is what the job's own side of the negotiation proposes, in one message, after the time to think.
func TestHonest(t *testing.T) {
	spec := chain(t)
	m := call(3, 0)
	answers, think := bidder.New(spec, bidder.Honest{}, 5*time.Millisecond).Hear(now, m)
	if think != 5*time.Millisecond || len(answers) != 1 || answers[0].Kind != protocol.Answer ||
		answers[0].Body.(*protocol.Proposal).Round != 3 || answers[0].Session != 0 {
		t.Fatalf("after %v: %+v", think, answers)
	}
	var want []protocol.Variant
	for i := range m.Body.(*protocol.Call).Windows {
		v, w := atomizer.FromCall(spec, m.Body.(*protocol.Call), &m.Body.(*protocol.Call).Windows[i])
		want = atomizer.Propose(&v, w, 4, now, want)
	}
	if got := answers[0].Body.(*protocol.Proposal).Variants; len(got) < 3 || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// TestStrategies: what each changes of the honest answer, and that it changes nothing else.
func TestStrategies(t *testing.T) {
	spec := chain(t)
	honest := hear(bidder.New(spec, bidder.Honest{}, 0), call(1, 0))
	for name, change := range map[string]func(v *protocol.Variant){
		"honest":      func(*protocol.Variant) {},
		"inflate":     func(v *protocol.Variant) { v.Score = score.One },
		"shade":       func(v *protocol.Variant) { v.Score = min(score.One, (v.Score*3+1)/2) },
		"understate":  func(v *protocol.Variant) { v.Run, v.Wall = v.Run/2, v.Wall-v.Run/2 },
		"tiny-memory": func(v *protocol.Variant) { v.Demand = trp.Vector{1} },
		"collude":     func(v *protocol.Variant) { v.Score = score.One },
		"snipe":       func(*protocol.Variant) {},
		"slow":        func(*protocol.Variant) {},
	} {
		kind, ok := bidder.Find(name)
		if !ok {
			t.Errorf("there is no %s", name)
			continue
		}
		want := append([]protocol.Variant(nil), honest...)
		for i := range want {
			change(&want[i])
		}
		if got := hear(bidder.New(spec, kind.New(kind.By), 0), call(1, 0)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v\nwant %+v", name, got, want)
		}
	}
	for _, c := range []struct {
		strategy bidder.Strategy
		think    time.Duration
	}{{bidder.Snipe{}, 194 * time.Millisecond}, {bidder.Slow{}, 400 * time.Millisecond}, {bidder.Inflate{}, 5 * time.Millisecond}} {
		if _, think := bidder.New(spec, c.strategy, 5*time.Millisecond).Hear(now, call(1, 0)); think != c.think {
			t.Errorf("%T thinks %v, want %v", c.strategy, think, c.think)
		}
	}
	if answers, _ := bidder.New(spec, bidder.Silent{}, 0).Hear(now, call(1, 0)); len(answers) > 0 {
		t.Errorf("silent says %+v", answers)
	}
	for i, k := range bidder.Kinds() {
		if k.Summary == "" || bidder.Names()[i] != k.Name || k.New(1000) == nil {
			t.Errorf("%+v", k)
		}
	}
	if _, ok := bidder.Find("honst"); ok {
		t.Error("there is a strategy honst")
	}
}

// TestHoard: one variant for each window, all of its time, the least of the work that would be cut there.
func TestHoard(t *testing.T) {
	spec := chain(t)
	honest := hear(bidder.New(spec, bidder.Honest{}, 0), call(1, 0))
	got := hear(bidder.New(spec, bidder.Hoard{}, 0), call(1, 0))
	if len(got) != 2 {
		t.Fatalf("got %+v", got)
	}
	for i, w := range call(1, 0).Body.(*protocol.Call).Windows {
		v := got[i]
		if v.Window != w.Window || v.Start != w.Start || v.Start.Add(v.Wall) != w.End || v.Run <= 0 || v.Run > v.Wall {
			t.Errorf("%+v does not fill %+v", v, w)
		}
		for _, h := range honest {
			if h.Window == w.Window && (h.Range.Len() < v.Range.Len() || h.Score > v.Score) {
				t.Errorf("%+v is not the least at the best score: %+v", v, h)
			}
		}
	}
}

// TestCollude: of the agents of one kind, the first that could use a round bids, and the next round is anybody's again.
func TestCollude(t *testing.T) {
	ring := &bidder.Collude{}
	other := *chain(t)
	other.Name = "other"
	a, b := bidder.New(chain(t), ring, 0), bidder.New(&other, ring, 0)
	for _, c := range []struct {
		round uint64
		who   *bidder.Agent
		bids  bool
	}{{1, a, true}, {1, b, false}, {1, a, true}, {2, b, true}, {2, a, false}} {
		answers, _ := c.who.Hear(now, call(c.round, 0))
		if len(answers) != 1 || (len(answers[0].Body.(*protocol.Proposal).Variants) > 0) != c.bids {
			t.Errorf("%+v: %+v", c, answers)
		}
	}
}

// TestHostile: the flood is the same each time, and of what it says of the round it was asked in most is against the rules.
func TestHostile(t *testing.T) {
	spec := chain(t)
	first, _ := bidder.New(spec, bidder.Hostile{}, 0).Hear(now, call(1, 0))
	again, _ := bidder.New(spec, bidder.Hostile{}, 0).Hear(now, call(1, 0))
	if !reflect.DeepEqual(first, again) {
		t.Error("two floods differ")
	}
	if other, _ := bidder.New(spec, bidder.Hostile{}, 0).Hear(now, call(2, 0)); reflect.DeepEqual(
		first[0].Body.(*protocol.Proposal).Variants, other[0].Body.(*protocol.Proposal).Variants) {
		t.Error("two rounds are answered alike")
	}
	sessions, rounds, most, bad := 0, 0, 0, 0
	for _, m := range first {
		if m.Session != 0 && m.Session != 7 {
			sessions++
		}
		if m.Body.(*protocol.Proposal).Round != 1 {
			rounds++
		}
		most = max(most, len(m.Body.(*protocol.Proposal).Variants))
	}
	for _, v := range first[0].Body.(*protocol.Proposal).Variants {
		if v.Range.Empty() || v.Range.From < 0 || v.Range.To > 600 || v.Run <= 0 || v.Wall < v.Run || v.Score < 0 || v.Score > score.One ||
			v.Window > 2 {
			bad++
		}
	}
	if sessions == 0 || rounds == 0 || most < 1000 || bad < most*9/10 {
		t.Errorf("%d of another session, %d of another round, at most %d variants, %d of them bad", sessions, rounds, most, bad)
	}
}

// settle wins the first variant of an answer and ends it so.
func settle(a *bidder.Agent, m *protocol.Message, end protocol.Notice) protocol.Variant {
	v := hear(a, m)[0]
	a.Hear(now, &protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: m.Body.(*protocol.Call).Round,
		Notices: []protocol.Notice{{Kind: protocol.Awarded, Window: v.Window, Variant: v.ID}}}})
	end.Kind, end.Window = protocol.Concluded, v.Window
	a.Hear(now, &protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: m.Body.(*protocol.Call).Round,
		Notices: []protocol.Notice{end}}})
	return v
}

// TestLearning: an agent plans with what its subjobs have taken.
func TestLearning(t *testing.T) {
	spec := chain(t)
	a := bidder.New(spec, bidder.Honest{}, 0)
	// half a second a step
	v := settle(a, call(1, 0), protocol.Notice{Outcome: job.Yielded, Range: job.Range{To: 100}, Ran: 51 * time.Second})
	if v.Run != 1250*time.Millisecond*time.Duration(v.Range.Len()) {
		t.Errorf("the first plan has no margin of a quarter: %+v", v)
	}
	v = hear(a, call(2, 100))[0]
	if per := v.Run / time.Duration(v.Range.Len()); per != 525*time.Millisecond {
		t.Errorf("a step is planned to take %v, want half a second and a twentieth", per)
	}
	late := bidder.New(spec, bidder.Honest{}, 0)
	settle(late, call(1, 0), protocol.Notice{Outcome: job.DeadlineKilled, Ran: 5 * time.Minute})
	if v := hear(late, call(2, 0))[0]; v.Run != 1875*time.Millisecond*time.Duration(v.Range.Len()) {
		t.Errorf("after a missed deadline: %+v", v)
	}
	killed := bidder.New(spec, bidder.Honest{}, 0)
	settle(killed, call(1, 0), protocol.Notice{Outcome: job.MemoryKilled, Ran: time.Minute, Peak: trp.Vector{5 * gib}})
	for _, v := range hear(killed, call(2, 0)) {
		if v.Window == 1 {
			t.Errorf("it was killed on that slice, and bids there again: %+v", v)
		}
	}
	if len(hear(killed, call(3, 0))) == 0 {
		t.Error("it has given up the large slice too")
	}
}

// TestCaution: an agent all of whose variants are denied asks for less of the window, and for all of it again when it could
// do nothing with so little.
func TestCaution(t *testing.T) {
	spec := chain(t)
	spec.TauMin = time.Minute
	a := bidder.New(spec, bidder.Honest{}, 0)
	deny := func(round uint64) (longest time.Duration) {
		told := &protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: round}}
		for _, v := range hear(a, call(round, 0)) {
			longest = max(longest, v.Wall)
			told.Body.(*protocol.News).Notices = append(told.Body.(*protocol.News).Notices,
				protocol.Notice{Kind: protocol.Denied, Window: v.Window, Variant: v.ID})
		}
		a.Hear(now, told)
		return longest
	}
	whole := deny(1)
	last := whole
	for round := uint64(2); ; round++ {
		got := deny(round)
		if got == 0 {
			break
		}
		if got > last || round > 20 {
			t.Fatalf("round %d: %v after %v", round, got, last)
		}
		last = got
	}
	if got := deny(99); got != whole {
		t.Errorf("after it could do nothing it asks for %v, want %v as at first", got, whole)
	}
}

// TestAgentsBearAnything: nothing that a zone could say breaks an agent, whatever its strategy.
func TestAgentsBearAnything(t *testing.T) {
	spec := chain(t)
	rapid.Check(t, func(rt *rapid.T) {
		kind := rapid.SampledFrom(bidder.Kinds()).Draw(rt, "kind")
		a := bidder.New(spec, kind.New(kind.By), time.Millisecond)
		units := rapid.Int64Range(0, 600)
		for range rapid.IntRange(1, 12).Draw(rt, "messages") {
			round := rapid.Uint64Range(0, 4).Draw(rt, "round")
			if rapid.Bool().Draw(rt, "announces") {
				m := call(round, 0)
				c := m.Body.(*protocol.Call)
				c.Free = nil
				for at := units.Draw(rt, "free"); at < 600; at += 1 + units.Draw(rt, "gap") {
					to := min(600, at+1+units.Draw(rt, "length"))
					c.Free = append(c.Free, job.Range{From: at, To: to})
					at = to
				}
				c.Left, c.Most, c.First = int64(c.Free.Len()), rapid.IntRange(0, 64).Draw(rt, "most"), rapid.Bool().Draw(rt, "first")
				c.Windows = c.Windows[:rapid.IntRange(0, 2).Draw(rt, "windows")]
				for i := range c.Windows {
					c.Windows[i].Speed = rapid.SampledFrom([]int64{0, 1, 700, 10_000}).Draw(rt, "speed")
					c.Windows[i].End = now.Add(rapid.SampledFrom([]time.Duration{-1, 0, 1, time.Second, time.Hour}).Draw(rt, "end"))
				}
				if _, think := a.Hear(now, m); think < 0 {
					rt.Fatalf("it thinks %v", think)
				}
				continue
			}
			m := &protocol.Message{Kind: protocol.Told, Body: &protocol.News{Round: round}}
			for range rapid.IntRange(0, 5).Draw(rt, "notices") {
				from := units.Draw(rt, "from")
				m.Body.(*protocol.News).Notices = append(m.Body.(*protocol.News).Notices, protocol.Notice{
					Kind: protocol.NoticeKind(rapid.IntRange(0, 6).Draw(rt, "notice")), Window: rapid.Uint64Range(0, 3).Draw(rt, "window"),
					Variant: rapid.Uint32Range(0, 9).Draw(rt, "variant"), Range: job.Range{From: from, To: max(from, units.Draw(rt, "to"))},
					Outcome: job.Outcome(rapid.IntRange(0, 10).Draw(rt, "outcome")),
					Ran:     time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(rt, "ran")),
					Peak:    trp.Vector{quantity.Amount(rapid.Int64Range(0, 20).Draw(rt, "peak")) * gib},
				})
			}
			a.Hear(now, m)
		}
	})
}
