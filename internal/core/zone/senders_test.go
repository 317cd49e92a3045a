package zone_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
)

// caught runs a world until a node says something of a kind for the nth time, and keeps that from the zone.
func caught(t *testing.T, w *world, kind protocol.Kind, nth int) protocol.Message {
	t.Helper()
	var got *protocol.Message
	hear := w.lose
	w.lose = func(m *protocol.Message) bool {
		lost := hear != nil && hear(m)
		if m.To.Role != protocol.Zone || m.Kind != kind || got != nil {
			return lost || got != nil && m.To.Role == protocol.Zone && m.Kind == kind
		}
		if nth--; nth == 0 {
			is := *m
			got = &is
		}
		return nth == 0
	}
	for i := 0; got == nil; i++ {
		if w.tick(); i > 5000 {
			t.Fatalf("kind %d was said too seldom: the test tests nothing", kind)
		}
	}
	for w.deliver() { // what else is under way
	}
	return *got
}

// ignored insists that the zone drops a message: no fact, no word to anybody, and the same state.
func ignored(t *testing.T, w *world, what string, m protocol.Message) {
	t.Helper()
	before, out := w.z.Digest(), protocol.Out{}
	w.z.Step(w.now, m, &out)
	if len(out.Facts) > 0 || len(out.Effects) > 0 || w.z.Digest() != before {
		t.Errorf("%s: facts %+v, said %+v", what, out.Facts, out.Effects)
	}
	if wrong := zone.Audit(w.z, w.now); len(wrong) > 0 {
		t.Errorf("%s: the zone keeps what is not so: %q", what, wrong)
	}
}

// TestANodeSpeaksForItselfAlone: each kind of message that nodes say is taken in from the node that it is due of, and from nobody else.
func TestANodeSpeaksForItselfAlone(t *testing.T) {
	did := func(k protocol.FactKind) func(*world, *protocol.Message) bool {
		return func(w *world, _ *protocol.Message) bool {
			return slices.ContainsFunc(w.out.Facts, func(f protocol.Fact) bool { return f.Kind == k })
		}
	}
	said := func(k protocol.Kind) func(*world, *protocol.Message) bool {
		return func(w *world, _ *protocol.Message) bool { return len(of(k, w.out.Effects)) > 0 }
	}
	plain := func(t *testing.T) *world {
		w := newWorld(t, 1024)
		w.submit(items(t, "a", 40, 100, 1))
		return w
	}
	troupe := func(t *testing.T) *world {
		w, _ := newTroupe(t)
		w.submit(trio(t))
		return w
	}
	turnedDown := func(w *world, m *protocol.Message) bool {
		n, _ := zone.Count(w.z, m.Job)
		return n[explain.TurnedDown] > 0
	}
	running := func(w *world, m *protocol.Message) bool {
		_, at, _ := zone.Heard(w.z, m.Job, m.Token)
		return at != 0
	}
	for _, c := range []struct {
		name  string
		world func(t *testing.T) *world
		kind  protocol.Kind
		nth   int
		// turn makes of what was caught what is said; nil: it is that.
		turn func(*protocol.Message)
		// works says whether the zone has taken it in.
		works func(*world, *protocol.Message) bool
	}{
		{"offer", plain, protocol.Offer, 2, nil, func(w *world, m *protocol.Message) bool {
			v := m.Body.(*protocol.SliceView)
			return zone.Viewed(w.z, v.Slice.ID) == v.Version
		}},
		{"grant", plain, protocol.Granted, 1, nil, did(protocol.Claimed)},
		{"refusal", plain, protocol.Granted, 1, func(m *protocol.Message) {
			g := m.Body.(*protocol.Grant)
			m.Kind, m.Token, m.Body = protocol.Refused, job.Token{}, &protocol.Refusal{Ask: g.Ask, Slice: g.Slice, Text: "no"}
		}, turnedDown},
		{"refused reservation", func(t *testing.T) *world {
			w := newWorld(t, 1024)
			w.lose = func(m *protocol.Message) bool {
				if b, ok := m.Body.(*protocol.Booking); ok && m.Kind == protocol.Reserve && w.now > 2e9 { // once it is waited for
					w.reply(protocol.Message{Kind: protocol.Refused, From: m.To, Job: m.Job,
						Body: &protocol.Refusal{Ask: b.Ask, Slice: b.Slice}})
				}
				return m.Kind == protocol.Reserve
			}
			w.submit(rigid(t, "first", 5*time.Minute, 400, 1))
			w.tick()
			w.submit(rigid(t, "second", 5*time.Minute, 400, 1))
			return w
		}, protocol.Refused, 1, nil, turnedDown},
		{"lease", func(t *testing.T) *world {
			w := plain(t)
			w.lose = func(m *protocol.Message) bool { return m.Kind == protocol.Running }
			return w
		}, protocol.Leased, 1, nil, func(w *world, m *protocol.Message) bool {
			known, _, _ := zone.Heard(w.z, m.Job, m.Token)
			return known
		}},
		{"refused redemption", plain, protocol.Leased, 1, func(m *protocol.Message) {
			m.Kind, m.Body = protocol.RedeemRefused, &protocol.Refusal{Text: "lapsed"}
		}, did(protocol.Released)},
		{"start", plain, protocol.Running, 1, nil, running},
		{"report", plain, protocol.Running, 1, func(m *protocol.Message) {
			m.Kind, m.Body = protocol.Report, &protocol.Observation{Progress: 7, At: m.Body.(*protocol.Beginning).At}
		}, running},
		{"storing", plain, protocol.Running, 1, func(m *protocol.Message) {
			m.Kind, m.Body = protocol.Report, &protocol.Observation{Storing: true, At: m.Body.(*protocol.Beginning).At}
		}, running},
		{"result", plain, protocol.Result, 1, nil, did(protocol.Committed)},
		{"publication", plain, protocol.Published, 1, nil, did(protocol.OutputPublished)},
		{"extension", func(t *testing.T) *world {
			w := newWorld(t, 1024)
			s := steps(t, "a", 3000, 10, 300)
			s.Continue = true
			w.submit(s)
			return w
		}, protocol.Extended, 1, nil, func(w *world, m *protocol.Message) bool {
			_, _, waits := zone.Heard(w.z, m.Job, m.Token)
			return waits == 0
		}},
		{"refused extension", func(t *testing.T) *world {
			w := newWorld(t, 1024)
			s := steps(t, "a", 3000, 10, 300)
			s.Continue = true
			w.submit(s)
			return w
		}, protocol.Extended, 1, func(m *protocol.Message) {
			m.Kind, m.Body = protocol.Refused, &protocol.Refusal{Ask: m.Body.(*protocol.Extension).Ask}
		}, did(protocol.ClaimExtended)},
		{"a member's hold", troupe, protocol.Granted, 1, nil, said(protocol.Ask)},
		{"the last member's hold", troupe, protocol.Granted, 3, nil, did(protocol.Claimed)},
		{"a member's lease refused", troupe, protocol.Leased, 2, func(m *protocol.Message) {
			m.Kind, m.Body = protocol.RedeemRefused, &protocol.Refusal{Text: "lapsed"}
		}, said(protocol.Stop)},
		{"the last member's result", troupe, protocol.Result, 3, nil, did(protocol.Committed)},
		{"a member's publication", troupe, protocol.Published, 2, nil, did(protocol.OutputPublished)},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.world(t)
			m := caught(t, w, c.kind, c.nth)
			if c.turn != nil {
				c.turn(&m)
			}
			for _, other := range []protocol.Address{
				node("b"), node("n0"), node("n1"), node("n2"), {Role: protocol.Zone, ID: m.From.ID},
				{Role: protocol.Bidder, ID: m.From.ID}, {},
			} {
				if other == m.From {
					continue
				}
				forged := m
				forged.From = other
				ignored(t, w, fmt.Sprintf("said by %+v", other), forged)
				if v, ok := m.Body.(*protocol.SliceView); ok { // and as if the slice were its own
					as := *v
					as.Node, forged.Body = job.NodeID(other.ID), &as
					ignored(t, w, fmt.Sprintf("taken by %+v", other), forged)
				}
			}
			if m.Kind == protocol.Granted || m.Kind == protocol.Refused {
				forged := m
				forged.Job = "nobody"
				ignored(t, w, "for another job", forged)
			}
			if w.out.Reset(); c.works(w, &m) {
				t.Error("it was taken in from somebody else")
			}
			w.step(m)
			if !c.works(w, &m) {
				t.Errorf("the node that it is due of is not heard: %+v, %+v", w.out.Facts, w.out.Effects)
			}
		})
	}
}

// TestTicketsAreAnsweredByTheNodesThatTheySearch: a place, a round and a prize come from a node of the zone, of its own slice.
func TestTicketsAreAnsweredByTheNodesThatTheySearch(t *testing.T) {
	x := newTouring(t)
	x.adopt(items(t, "a", 100, 100, 2))
	session := x.wait(protocol.Visiting).Session
	theirs := x.prize("m", session, 7, job.Range{To: 40})
	theirs.Body.(*protocol.Prize).Slice = slice("n")
	named := x.prize("m", session, 7, job.Range{To: 40})
	named.Body.(*protocol.Prize).Node = "n"
	forged := []protocol.Message{theirs, named}
	for _, m := range []protocol.Message{
		x.prize("m", session, 7, job.Range{To: 40}), x.call("m", session, 1),
		{Kind: protocol.Told, Job: "a", Session: session, Body: &protocol.News{Round: 1}},
		{Kind: protocol.Parting, Job: "a", Session: session},
		{Kind: protocol.Room, Body: &flow.Summary{Version: 9, Usable: true, Free: flow.Fragments{9}}},
		{Kind: protocol.Probed, Job: "a", Body: &protocol.Response{Room: flow.Summary{Version: 9, Usable: true, Free: flow.Fragments{9}}}},
	} {
		for _, by := range []protocol.Address{node("b"), {Role: protocol.Zone, ID: "m"}, {}} {
			m.From = by
			forged = append(forged, m)
		}
	}
	for _, m := range forged {
		var out protocol.Out
		if x.z.Step(x.now, m, &out); len(out.Facts)+len(out.Effects) > 0 {
			t.Errorf("%d by %+v: facts %+v, said %+v", m.Kind, m.From, out.Facts, out.Effects)
		}
	}
	for i := range 20 { // nothing of it is noticed later
		x.now = x.now.Add(10 * time.Millisecond)
		if got := x.step(protocol.Message{Kind: protocol.Tick}); len(of(protocol.Probe, got)) > 0 {
			t.Errorf("tick %d: a ticket asks for room that nobody has: %+v", i, got)
		}
	}
	if got := x.step(x.prize("m", session, 7, job.Range{To: 40})); len(of(protocol.Redeem, got)) != 1 {
		t.Errorf("its own prize is not claimed: %+v", got)
	}
}

// liar is a node that is called b, on a machine that anybody may have the say on.
type liar struct {
	*rapid.T
	w *world
	// heard are messages to it, and to others: it is told all that is said.
	heard []protocol.Message
	seq   uint64
}

// token is one of its own, or one that it has heard of.
func (l *liar) token() job.Token {
	if len(l.heard) > 0 && rapid.Bool().Draw(l.T, "heard token") {
		return l.heard[rapid.IntRange(0, len(l.heard)-1).Draw(l.T, "whose")].Token
	}
	return job.Token{Epoch: 1, Seq: uint64(rapid.IntRange(0, 40).Draw(l.T, "token"))}
}

// number is that of an ask: one that was asked, or just any.
func (l *liar) number() uint64 {
	var all []uint64
	for _, m := range l.heard {
		switch b := m.Body.(type) {
		case *protocol.Asking:
			all = append(all, b.Ask)
		case *protocol.Booking:
			all = append(all, b.Ask)
		case *protocol.Extension:
			all = append(all, b.Ask)
		}
	}
	if len(all) > 0 && rapid.Bool().Draw(l.T, "heard number") {
		return rapid.SampledFrom(all).Draw(l.T, "number")
	}
	return uint64(rapid.IntRange(0, 4).Draw(l.T, "number"))
}

// asked is the last thing that was asked of it, if nothing was said to another node since.
func (l *liar) asked() *protocol.Message {
	if k := len(l.heard) - 1; k >= 0 && l.heard[k].To == node("b") && l.heard[k].Kind == protocol.Ask {
		return &l.heard[k]
	}
	return nil
}

func (l *liar) instant() quantity.Instant {
	now := l.w.now
	return rapid.SampledFrom([]quantity.Instant{0, 1, now, now.Add(time.Minute), now.Add(-time.Minute), quantity.Never, -1 << 62,
		quantity.Never - 1}).Draw(l.T, "instant")
}

func (l *liar) result() *job.Result {
	return &job.Result{Outcome: job.Outcome(rapid.IntRange(0, 12).Draw(l.T, "outcome")), Progress: rapid.Int64().Draw(l.T, "progress"),
		Checkpoint: rapid.Bool().Draw(l.T, "checkpoint"), Start: l.instant(), End: l.instant(),
		Signal: rapid.IntRange(-1, 9).Draw(l.T, "signal"), Detail: "lies",
		Peak: trp.Vector{quantity.Amount(rapid.Int64().Draw(l.T, "peak"))}, Prepare: time.Duration(rapid.Int64().Draw(l.T, "prepare")),
		Waited: time.Duration(rapid.Int64().Draw(l.T, "waited")), FirstProgress: l.instant()}
}

// view is of somebody's slice, or of its own.
func (l *liar) view(slice job.SliceID) *protocol.SliceView {
	v := &protocol.SliceView{Slice: protocol.Slice{ID: slice, Speed: rapid.Int64Range(-1, 2000).Draw(l.T, "speed"),
		Capacity: trp.Vector{quantity.Amount(rapid.SampledFrom([]int64{-1, 0, 1, 512 << 20, 1 << 60}).Draw(l.T, "capacity"))}},
		Node:    rapid.SampledFrom([]job.NodeID{"b", "b", "n0", "n1"}).Draw(l.T, "node"),
		Version: uint64(rapid.IntRange(0, 99).Draw(l.T, "version")),
		Usable:  rapid.Bool().Draw(l.T, "usable")}
	for range rapid.IntRange(0, 3).Draw(l.T, "gaps") {
		g := protocol.Gap{Start: l.instant(), End: l.instant()}
		if g.End == quantity.Never-1 { // a window may be as long as a gap that has an end, and a lease as long as its window
			g.End = quantity.Never
		}
		v.Gaps = append(v.Gaps, g)
	}
	for range rapid.IntRange(0, 2).Draw(l.T, "reservations") {
		v.Reserved = append(v.Reserved, protocol.Reservation{ID: uint64(rapid.IntRange(0, 3).Draw(l.T, "id")), Start: l.instant(),
			End: l.instant(), Kind: protocol.ReservationKind(rapid.IntRange(0, 10).Draw(l.T, "kind")), Job: l.job(), Slice: slice})
	}
	return v
}

func (l *liar) job() job.ID {
	return rapid.SampledFrom([]job.ID{"a", "s", "trio", "none", ""}).Draw(l.T, "job")
}

// lie is some message of the kinds that nodes say, and of some that they have no business to say.
func (l *liar) lie(slices ...job.SliceID) protocol.Message {
	slice := rapid.SampledFrom(slices).Draw(l.T, "slice")
	m := protocol.Message{From: node("b"), To: protocol.Address{Role: protocol.Zone, ID: "z"}, Job: l.job(), Token: l.token(), Epoch: 1,
		Generation: job.Generation(rapid.IntRange(0, 2).Draw(l.T, "life"))}
	progress := rapid.Int64().Draw(l.T, "reached")
	say := rapid.SampledFrom([]protocol.Message{
		{Kind: protocol.Offer, Body: l.view(slice)},
		{Kind: protocol.Granted, Body: &protocol.Grant{Ask: l.number(), Slice: slice, Start: l.instant(), End: l.instant()}},
		{Kind: protocol.Refused, Body: &protocol.Refusal{Ask: l.number(), Slice: slice, Text: "lies"}},
		{Kind: protocol.Leased, Body: &protocol.Holding{Slice: slice}},
		{Kind: protocol.RedeemRefused, Body: &protocol.Refusal{Slice: slice, Text: "lies"}},
		{Kind: protocol.Running, Body: &protocol.Beginning{At: l.instant()}},
		{Kind: protocol.Report, Body: &protocol.Observation{Slice: slice, Progress: progress, At: l.instant()}},
		{Kind: protocol.Report, Body: &protocol.Observation{Slice: slice, Storing: true, At: l.instant()}},
		{Kind: protocol.Report, Body: &protocol.Observation{Slice: slice, Remains: true, At: l.instant()}},
		{Kind: protocol.Result, Body: &protocol.Conclusion{Slice: slice, Result: l.result()}},
		{Kind: protocol.Result, Body: &protocol.Conclusion{}},
		{Kind: protocol.Extended, Body: &protocol.Extension{Ask: l.number(), End: l.instant()}},
		{Kind: protocol.Published},
		{Kind: protocol.Winning, Body: &protocol.Prize{Place: protocol.Place{Node: "b"}}},
		{Kind: protocol.Cancel, Body: &protocol.Cancellation{Text: "lies"}},
		{Kind: protocol.Forget},
		{Kind: protocol.PauseJob, Body: &protocol.Pause{Paused: true}},
		{Kind: protocol.Tick},
	}).Draw(l.T, "message")
	m.Kind, m.Body = say.Kind, say.Body
	return m
}

// troubled is a world of three honest nodes with work of each kind, under mechanism sja or jasda.
func troubled(t *testing.T, bids bool) *world {
	w := newWorld(t, 512, 512, 512)
	if bids {
		w = newMarket(t, auction.Config{}, 512, 512, 512)
	}
	w.oneNodeEach()
	long := steps(t, "s", 400, 10, 300)
	long.Continue = true
	w.submit(items(t, "a", 300, 100, 2), long, trio(t))
	return w
}

// TestALiarGainsNothing: a node without slices hears all that is said, and says whatever it likes, with the numbers, tokens and slices of
// others. What the zone does is to the letter what it does without that node.
func TestALiarGainsNothing(t *testing.T) {
	for _, bids := range []bool{false, true} {
		honest := troubled(t, bids)
		honest.until(30 * time.Minute)
		finished(t, honest, "a", "s", "trio")
		rapid.Check(t, func(rt *rapid.T) {
			w := troubled(t, bids)
			l := &liar{T: rt, w: w}
			w.lose = func(m *protocol.Message) bool {
				if m.To.Role == protocol.Node {
					l.heard = append(l.heard, *m)
				}
				return false
			}
			for w.now < honest.now && len(w.closed) < len(w.adopted) {
				w.tick()
				for range rapid.IntRange(0, 3).Draw(rt, "lies") {
					l.ignored(l.lie("s0", "s1", "s2"))
				}
			}
			if !slices.Equal(w.log, honest.log) {
				rt.Fatalf("the facts are\n%v\nwant\n%v", w.log, honest.log)
			}
		})
	}
}

// ignored insists that a lie changes nothing, and that nobody else hears of it.
func (l *liar) ignored(m protocol.Message) {
	out, digest := protocol.Out{}, l.w.z.Digest()
	l.w.z.Step(l.w.now, m, &out)
	others := slices.DeleteFunc(out.Effects, func(x protocol.Message) bool { return x.To == node("b") })
	if len(out.Facts)+len(others) > 0 || l.w.z.Digest() != digest {
		l.Fatalf("%+v: facts %+v, said %+v", m, out.Facts, others)
	}
}

// TestALiarWithSlices is sold work, and lies about it and about its slices. The others' work goes on, each job is over in the end, and no
// promise of the zone's own is broken.
func TestALiarWithSlices(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := troubled(t, rapid.Bool().Draw(rt, "bids"))
		w.t = rt
		for _, s := range w.adopted {
			s.MaxFailures = 1 << 20 // its own forged failures are not what this is about
		}
		w.config.MaxKills = 1 << 20
		l := &liar{T: rt, w: w}
		w.lose = func(m *protocol.Message) bool {
			if m.To.Role == protocol.Node {
				l.heard = append(l.heard, *m)
			}
			return m.To == node("b")
		}
		say := func(m protocol.Message) {
			w.out.Reset()
			w.z.Step(w.now, m, &w.out)
			if wrong := zone.Audit(w.z, w.now); len(wrong) > 0 {
				rt.Fatalf("after %+v the zone keeps what is not so: %q", m, wrong)
			}
			for _, x := range w.out.Effects {
				if x.Kind != protocol.Wake && (x.To.Role == protocol.Node && x.To != node("b")) && x.Kind == protocol.ResultAck {
					rt.Fatalf("after %+v another's result is settled: %+v", m, x)
				}
			}
			w.out.Effects = slices.DeleteFunc(w.out.Effects, func(x protocol.Message) bool { // what b hears of its lies is not the world's
				return x.Kind == protocol.ResultAck && x.To == node("b")
			})
			w.take()
		}
		lies := rapid.IntRange(0, 120).Draw(rt, "steps")
		for range lies {
			w.tick()
			m := l.lie("s0", "b0", "b1", "b1")
			if asked := l.asked(); asked != nil && rapid.Bool().Draw(rt, "grants") {
				a := asked.Body.(*protocol.Asking) // it does what it is asked, under a token of its own
				l.seq++
				m = protocol.Message{Kind: protocol.Granted, From: node("b"), Job: asked.Job,
					Token: job.Token{Epoch: 1, Seq: 1<<40 + l.seq},
					Body:  &protocol.Grant{Ask: a.Ask, Slice: a.Slice, Start: a.Start, End: l.instant()}}
			}
			if m.Kind == protocol.Granted && m.Token.Seq < 1<<40 {
				m.Token.Seq += 1 << 40 // the head lets it speak of no others (fabric/stream)
			}
			say(m)
		}
		for _, id := range []job.SliceID{"b0", "b1"} { // then it falls silent, with nothing on offer
			say(protocol.Message{Kind: protocol.Offer, From: node("b"), Epoch: 2,
				Body: &protocol.SliceView{Node: "b", Slice: protocol.Slice{ID: id}}})
		}
		w.until(24 * time.Hour)
		for id := range w.adopted {
			if _, over := w.closed[id]; !over {
				e, _ := w.z.Explain(w.now, id)
				rt.Errorf("job %s is not over a day later: %+v", id, e)
			}
		}
	})
}

// TestTheSlicesOfOneNodeAreBounded, where others than the zone's own nodes may be there.
func TestTheSlicesOfOneNodeAreBounded(t *testing.T) {
	w := newWorld(t)
	w.config.Own = []job.NodeID{"n"}
	w.z = w.make()
	for _, by := range []string{"n", "b", "c"} {
		before := len(w.z.Windows(w.now))
		for i := range protocol.MostSlices + 10 {
			var out protocol.Out
			w.z.Step(w.now, protocol.Message{Kind: protocol.Offer, From: node(by), Epoch: 1, Body: &protocol.SliceView{
				Node:    job.NodeID(by),
				Slice:   protocol.Slice{ID: job.SliceID(fmt.Sprint(by, "/", i)), Capacity: trp.Vector{1 << 30}, Speed: 1000},
				Version: 1, Usable: true, Gaps: []protocol.Gap{{Start: 0, End: quantity.Never}},
			}}, &out)
		}
		want := protocol.MostSlices
		if by == "n" {
			want += 10
		}
		if got := len(w.z.Windows(w.now)) - before; got != want {
			t.Errorf("node %s has %d slices here, want %d", by, got, want)
		}
	}
}

// TestTheClassesOfOneNodeAreBounded: it describes its one slice ever anew. What others have, and what it had, it may show still.
func TestTheClassesOfOneNodeAreBounded(t *testing.T) {
	w := newWorld(t)
	w.config.Own = []job.NodeID{"n"}
	w.z = w.make()
	version := uint64(0)
	shows := func(by string, mib int64) bool {
		version++
		var out protocol.Out
		w.z.Step(w.now, protocol.Message{Kind: protocol.Offer, From: node(by), Epoch: 1, Body: &protocol.SliceView{
			Node: job.NodeID(by), Version: version, Usable: true,
			Slice: protocol.Slice{ID: job.SliceID(by + "/a"), Capacity: trp.Vector{quantity.Amount(mib)}, Speed: 1000},
		}}, &out)
		return zone.Viewed(w.z, job.SliceID(by+"/a")) == version
	}
	for i := range int64(1000) {
		if shows("b", 1000+i) != (i < 256) {
			t.Fatalf("its class %d is taken in: %v", i, i >= 256)
		}
	}
	for i := range int64(1000) {
		if !shows("n", 5000+i) {
			t.Fatalf("class %d of the zone's own node is not taken in", i)
		}
	}
	if !shows("b", 1000) || !shows("b", 5999) {
		t.Error("a class that is known is not taken in")
	}
}
