package zone_test

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone"
)

// touring is a zone of two nodes that have markets, of which nothing is free; its mail is read by hand.
type touring struct {
	*testing.T
	z    *zone.Zone
	now  quantity.Instant
	mail []protocol.Message
	// asked for another zone were these tickets.
	asked []protocol.Message
	// facts of all steps.
	facts []protocol.Fact
}

func newTouring(t *testing.T) *touring {
	cfg, err := search.Config{Flow: flow.Config{Classes: flow.Classes{1 << 30}},
		Zones: []search.Zone{{ID: "z", Nodes: []job.NodeID{"m", "n"}}}}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	z, err := zone.New(zone.Config{ID: "z", Policy: shortest.Policy{}, Market: &auction.Config{}, Search: cfg})
	if err != nil {
		t.Fatal(err)
	}
	x := &touring{T: t, z: z, now: 1e9}
	var out protocol.Out
	z.Recover(x.now, &out)
	for i, n := range []string{"m", "n"} { // taken, for good
		x.step(protocol.Message{Kind: protocol.Offer, From: node(n), Epoch: 1, Body: &protocol.SliceView{
			Slice: slice(n), Node: job.NodeID(n), Version: uint64(i + 1), Usable: true, Room: &flow.Summary{Version: 1, Usable: true},
		}})
	}
	return x
}

func node(id string) protocol.Address { return protocol.Address{Role: protocol.Node, ID: id} }

func slice(node string) protocol.Slice {
	return protocol.Slice{ID: job.SliceID(node + "/a"), Speed: 1000, Capacity: trp.Vector{trp.Memory: 1 << 30}}
}

func (x *touring) step(m protocol.Message) []protocol.Message {
	var out protocol.Out
	x.z.Step(x.now, m, &out)
	x.facts = append(x.facts, out.Facts...)
	x.mail = append(x.mail, out.Effects...)
	for _, m := range of(protocol.Probe, out.Effects) { // nothing is free anywhere
		q := m.Body.(*protocol.Inquiry)
		x.step(protocol.Message{Kind: protocol.Probed, From: m.To, Job: m.Job, Body: &protocol.Response{
			Ticket: q.Ticket, Home: q.Home, Episode: q.Episode, Hop: q.Hop, Room: flow.Summary{Usable: true},
		}})
	}
	for _, m := range of(protocol.Redraw, out.Effects) { // nor is there another zone
		x.asked = append(x.asked, m)
		x.step(protocol.Message{Kind: protocol.Search, From: m.To, Job: m.Job, Body: m.Body})
	}
	return out.Effects
}

// wait has time go by, until the zone says something of a kind.
func (x *touring) wait(k protocol.Kind) *protocol.Message {
	x.Helper()
	for range 200 {
		for i := range x.mail {
			if x.mail[i].Kind == k {
				m := x.mail[i]
				x.mail = nil
				return &m
			}
		}
		x.now = x.now.Add(50 * time.Millisecond)
		x.step(protocol.Message{Kind: protocol.Tick})
	}
	x.Fatalf("nothing of kind %d was said within 10 s", k)
	return nil
}

// adopt brings a job home. Its ticket finds nothing and is parked.
func (x *touring) adopt(s *job.Spec) {
	x.step(protocol.Message{Kind: protocol.Adopt, From: protocol.Address{Role: protocol.Gate}, Job: s.Name, Epoch: 1, Generation: 1,
		Body: &protocol.Adoption{Since: 1, At: x.now, Spec: s, Queue: &protocol.Queue{Name: s.Queue, Weight: 3}}})
}

func of(k protocol.Kind, all []protocol.Message) (found []protocol.Message) {
	for i := range all {
		if all[i].Kind == k {
			found = append(found, all[i])
		}
	}
	return found
}

// call is a round at a node, with its slice for ten minutes.
func (x *touring) call(at string, session, round uint64) protocol.Message {
	s := slice(at)
	return protocol.Message{Kind: protocol.Announce, From: node(at), Job: "a", Session: session, Body: &protocol.Call{
		Round: round, Closes: x.now.Add(time.Second), Most: 4,
		Windows: []protocol.Advert{{Window: 1, Slice: s.ID, Speed: s.Speed, Capacity: s.Capacity, Start: x.now,
			End: x.now.Add(10 * time.Minute)}},
	}}
}

// prize is a piece of it that was won, of so many units from some unit on.
func (x *touring) prize(at string, session uint64, seq uint64, r job.Range) protocol.Message {
	return protocol.Message{Kind: protocol.Winning, From: node(at), Job: "a", Session: session, Body: &protocol.Prize{
		Place: protocol.Place{Token: job.Token{Epoch: 1, Seq: seq}, Node: job.NodeID(at), Slice: slice(at), Start: x.now,
			End: x.now.Add(5 * time.Minute), Expiry: x.now.Add(time.Second)},
		Plan: protocol.Plan{Run: time.Minute, Wall: time.Minute, Round: 1, Window: 1}, Range: r, Demand: trp.Vector{trp.Memory: 1 << 29},
		Speed: 1000, Bid: &protocol.Bid{},
	}}
}

// TestAJobThatFindsNoRoomNegotiatesAtNodes: it says what it is, answers a call, and claims what it wins.
func TestAJobThatFindsNoRoomNegotiatesAtNodes(t *testing.T) {
	x := newTouring(t)
	x.adopt(items(t, "a", 100, 100, 2))
	first := x.wait(protocol.Visiting)
	v := first.Body.(*protocol.Visit)
	if first.Job != "a" || first.Session == 0 || v.Weight != 3 || v.Spec.Total != 100 || v.Running != 0 || v.Submitted == 0 {
		t.Errorf("said was %+v, %+v", first, v)
	}
	answer := of(protocol.Answer, x.step(x.call("m", first.Session, 1)))
	if len(answer) != 1 || answer[0].To != node("m") || answer[0].Body.(*protocol.Proposal).Round != 1 ||
		len(answer[0].Body.(*protocol.Proposal).Variants) == 0 {
		t.Fatalf("answered was %+v", answer)
	}
	got := x.step(x.prize("m", first.Session, 7, job.Range{To: 40}))
	claimed := false
	for _, f := range x.facts {
		s, ok := f.Body.(*protocol.Sale)
		claimed = claimed || ok && s.Node == "m" && s.Slice == "m/a" && s.Range == (job.Range{To: 40}) &&
			f.Token.Seq == 7 && s.Plan.Round == 1 && s.Bid != nil
	}
	redeem := of(protocol.Redeem, got)
	if !claimed || len(redeem) != 1 || redeem[0].To != node("m") || redeem[0].Body.(*protocol.Work).Range != (job.Range{To: 40}) {
		t.Fatalf("claimed %v, said was %+v", claimed, got)
	}
	again := of(protocol.Visiting, x.mail)
	if len(again) == 0 || again[len(again)-1].Body.(*protocol.Visit).Running != 1 ||
		!again[len(again)-1].Body.(*protocol.Visit).Claimed.Contains(job.Range{To: 40}) {
		t.Errorf("the nodes were not told how it stands now: %+v", again)
	}
}

// TestNothingIsClaimedTwice: a prize that comes twice is claimed once and stays; one of work that is sold elsewhere is let go.
func TestNothingIsClaimedTwice(t *testing.T) {
	x := newTouring(t)
	x.adopt(items(t, "a", 100, 100, 2))
	session := x.wait(protocol.Visiting).Session
	p := x.prize("m", session, 7, job.Range{To: 40})
	x.step(p)
	if again := x.step(p); len(of(protocol.LetGo, again)) != 0 {
		t.Errorf("a prize that came twice was let go: %+v", again)
	}
	if got := of(protocol.LetGo, x.step(x.prize("n", session, 9, job.Range{From: 39, To: 60}))); len(got) != 1 || got[0].To != node("n") ||
		got[0].Token.Seq != 9 {
		t.Errorf("some of it is sold, and said was %+v", got)
	}
	if got := of(protocol.LetGo, x.step(x.prize("n", session, 10, job.Range{From: 40, To: 60}))); len(got) != 0 {
		t.Errorf("it may run two at once, and let go was %+v", got)
	}
	if got := of(protocol.LetGo, x.step(x.prize("n", session, 11, job.Range{From: 60, To: 80}))); len(got) != 1 {
		t.Errorf("a third at once was not let go: %+v", got)
	}
	claims := 0
	for _, f := range x.facts {
		if f.Kind == protocol.Claimed {
			claims++
		}
	}
	if claims != 2 {
		t.Errorf("%d claims were made, want 2", claims)
	}
}

// TestAnAbsurdPrizeIsLetGo: of work that the job has none of, of time that is none, or that somebody would be paid for.
func TestAnAbsurdPrizeIsLetGo(t *testing.T) {
	for name, absurd := range map[string]func(*protocol.Prize){
		"beyond the job": func(p *protocol.Prize) { p.Range.To = 101 },
		"before it":      func(p *protocol.Prize) { p.Range.From = -1 },
		"no work":        func(p *protocol.Prize) { p.Range.To = 0 },
		"no time":        func(p *protocol.Prize) { p.End = p.Start },
		"time that is over": func(p *protocol.Prize) {
			p.Start, p.End = p.Start.Add(-time.Hour), p.Start
		},
		"no speed":  func(p *protocol.Prize) { p.Speed = 0 },
		"a present": func(p *protocol.Prize) { p.Bid.Price = -1 },
	} {
		x := newTouring(t)
		x.adopt(items(t, "a", 100, 100, 2))
		m := x.prize("m", x.wait(protocol.Visiting).Session, 7, job.Range{To: 40})
		absurd(m.Body.(*protocol.Prize))
		if got := of(protocol.LetGo, x.step(m)); len(got) != 1 || got[0].To != node("m") || got[0].Token.Seq != 7 {
			t.Errorf("%s: let go was %+v", name, got)
		}
		for _, f := range x.facts {
			if f.Kind == protocol.Claimed {
				t.Errorf("%s: claimed was %+v", name, f)
			}
		}
	}
}

// TestNodesAreToldWhatAJobAvoids: where a node does not say whether it has the lease, its slice is left to others for a while.
func TestNodesAreToldWhatAJobAvoids(t *testing.T) {
	x := newTouring(t)
	x.adopt(items(t, "a", 100, 100, 2))
	x.step(x.prize("m", x.wait(protocol.Visiting).Session, 7, job.Range{To: 40}))
	x.mail = nil
	for range 20 {
		if avoids := x.wait(protocol.Visiting).Body.(*protocol.Visit).Avoids; len(avoids) > 0 {
			if avoids[0] != "m/a" || len(avoids) > 1 {
				t.Errorf("it avoids %v, and node m alone is silent", avoids)
			}
			return
		}
	}
	t.Error("node m says nothing, and its slice is not avoided")
}

// TestWhoIsNoNodeIsNotAnswered: a call comes from a node.
func TestWhoIsNoNodeIsNotAnswered(t *testing.T) {
	x := newTouring(t)
	x.adopt(items(t, "a", 100, 100, 2))
	m := x.call("m", x.wait(protocol.Visiting).Session, 1)
	m.From.Role = protocol.Zone
	if got := of(protocol.Answer, x.step(m)); len(got) > 0 {
		t.Errorf("answered was %+v", got)
	}
}

// TestAPausedJobLeaves: it wants nothing, and says so to a call that was on its way; when it goes on it comes again, in a later session.
func TestAPausedJobLeaves(t *testing.T) {
	x := newTouring(t)
	x.adopt(items(t, "a", 100, 100, 2))
	session := x.wait(protocol.Visiting).Session
	got := x.step(protocol.Message{Kind: protocol.PauseJob, From: protocol.Address{Role: protocol.Gate}, Job: "a", Epoch: 1, Generation: 1,
		Body: &protocol.Pause{Paused: true}})
	if parts := of(protocol.Parting, got); len(parts) == 0 || parts[0].Session != session {
		t.Fatalf("it is paused, and said was %+v", got)
	}
	if let := of(protocol.LetGo, x.step(x.prize("m", session, 7, job.Range{To: 40}))); len(let) != 1 {
		t.Error("it is paused, and claims what it has won")
	}
	x.mail = nil
	x.step(protocol.Message{Kind: protocol.PauseJob, From: protocol.Address{Role: protocol.Gate}, Job: "a", Epoch: 1, Generation: 1,
		Body: &protocol.Pause{}})
	if again := x.wait(protocol.Visiting); again.Session <= session {
		t.Errorf("session %d after %d", again.Session, session)
	}
}

// TestAShortTaskDoesNotNegotiate: who gives up soon takes what is free at once, or nothing.
func TestAShortTaskDoesNotNegotiate(t *testing.T) {
	for _, patience := range []time.Duration{5 * time.Second, time.Minute} { // the latter is parked in between
		x := newTouring(t)
		s := rigid(t, "a", time.Minute, 100, 1)
		s.Patience = patience
		x.adopt(s)
		for range 130 {
			x.now = x.now.Add(500 * time.Millisecond)
			x.step(protocol.Message{Kind: protocol.Tick})
		}
		if n := len(of(protocol.Visiting, x.mail)); n > 0 || len(of(protocol.Closed, x.mail)) == 0 {
			t.Errorf("patience %v: it visited nodes in %d messages", patience, n)
		}
	}
}

// TestAPrizeIsLateWhenItsLeaseIsOver: the word of it comes again when nothing of the work was done, so that it is for sale; the token is
// spent.
func TestAPrizeIsLateWhenItsLeaseIsOver(t *testing.T) {
	x := newTouring(t)
	x.adopt(items(t, "a", 100, 100, 2))
	session := x.wait(protocol.Visiting).Session
	p := x.prize("m", session, 7, job.Range{To: 40})
	x.step(p)
	token := p.Body.(*protocol.Prize).Token
	x.step(protocol.Message{Kind: protocol.Result, From: node("m"), Job: "a", Epoch: 1, Generation: 1, Token: token,
		Body: &protocol.Conclusion{
			Range: job.Range{To: 40}, Result: &job.Result{Outcome: job.Stopped, Start: x.now, End: x.now},
		}})
	if got := of(protocol.LetGo, x.step(p)); len(got) != 1 || got[0].Token != token {
		t.Errorf("let go was %+v", got)
	}
	claims, released := 0, 0
	for _, f := range x.facts {
		switch f.Kind {
		case protocol.Claimed:
			claims++
		case protocol.Released:
			released++
		}
	}
	if claims != 1 || released != 1 {
		t.Errorf("%d claims under one token, %d of them released", claims, released)
	}
}

// TestAResultSaysThatANodeHasTakenAPlace: where it comes before Leased, the ticket has not lost its grant.
func TestAResultSaysThatANodeHasTakenAPlace(t *testing.T) {
	for _, k := range []protocol.Kind{protocol.Leased, protocol.Running, protocol.Result, protocol.RedeemRefused} {
		x := newTouring(t)
		x.adopt(items(t, "a", 100, 100, 1))
		x.wait(protocol.Visiting) // its ticket is parked
		var e *protocol.Errand
		for i := range x.asked {
			e = x.asked[i].Body.(*protocol.Errand)
		}
		if e == nil {
			t.Fatal("no ticket has gone anywhere")
		}
		found := &protocol.Finding{Errand: *e, Place: protocol.Place{Token: job.Token{Epoch: 1, Seq: 7}, Node: "m", Slice: slice("m"),
			Start: x.now, End: x.now.Add(5 * time.Minute), Expiry: x.now.Add(time.Second)}}
		found.Errand.Phase = flow.Landed
		x.step(protocol.Message{Kind: protocol.Landing, From: protocol.Address{Role: protocol.Zone, ID: "z"}, Job: "a", Body: found})
		var c *protocol.Fact
		for i := range x.facts {
			if x.facts[i].Kind == protocol.Claimed {
				c = &x.facts[i]
			}
		}
		if c == nil {
			t.Fatalf("the place was not claimed: %+v", x.mail)
		}
		said := protocol.Message{Kind: k, From: node("m"), Job: "a", Epoch: 1, Generation: 1, Token: c.Token, Body: &protocol.Holding{}}
		switch k {
		case protocol.Running:
			said.Body = &protocol.Beginning{Slice: "m/a", At: x.now}
		case protocol.Result:
			said.Body = &protocol.Conclusion{Range: c.Body.(*protocol.Sale).Range, Result: &job.Result{Outcome: job.Stopped, Start: x.now,
				End: x.now}}
		case protocol.RedeemRefused:
			said.Body = &protocol.Refusal{Slice: "m/a", Text: "it lapsed"}
		}
		x.step(said)
		explained, _ := x.z.Explain(x.now, "a")
		lost := false
		for _, r := range explained.Reasons {
			lost = lost || strings.Contains(r.Text, "came to nothing")
		}
		if lost != (k == protocol.RedeemRefused) {
			t.Errorf("after %d: a grant was lost: %v; %+v", k, lost, explained.Reasons)
		}
	}
}
