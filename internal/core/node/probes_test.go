package node

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// probed is a node that tickets ask for places, with slices of these capacities, a, b, c and so on.
type probed struct {
	*testing.T
	n   *Node
	now quantity.Instant
	out protocol.Out
}

func newProbed(t *testing.T, capacities ...quantity.Amount) *probed {
	cfg, err := search.Config{Flow: flow.Config{Classes: flow.Levels(capacities)},
		Zones: []search.Zone{{ID: "z", Nodes: []job.NodeID{"n"}}}}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	p := &probed{T: t, n: New(Config{ID: "n", Zone: "z", Search: cfg}), now: t0}
	p.n.Recover(p.now, &p.out)
	stock := &protocol.Stock{}
	for i, c := range capacities {
		d := device(job.SliceID(rune('a' + i)))
		d.Capacity = trp.Vector{c}
		stock.Slices = append(stock.Slices, d)
	}
	p.step(protocol.Message{Kind: protocol.Inventory, From: executor, Body: stock})
	return p
}

func (p *probed) step(m protocol.Message) []protocol.Message {
	p.out = protocol.Out{}
	p.n.Step(p.now, m, &p.out)
	return p.out.Effects
}

func (p *probed) wait(d time.Duration) []protocol.Message {
	p.now = p.now.Add(d)
	return p.step(protocol.Message{Kind: protocol.Tick})
}

// ask has a ticket's probe lie at the node.
func (p *probed) ask(id flow.TicketID, class flow.Class, priority int16, least time.Duration) {
	p.askFor(id, class, priority, least, false)
}

// askFor says with it whether others wait in the zone.
func (p *probed) askFor(id flow.TicketID, class flow.Class, priority int16, least time.Duration, short bool) {
	p.step(protocol.Message{Kind: protocol.Probe, From: zone, Job: "j", Generation: 1, Body: &protocol.Inquiry{
		Probe: flow.Probe{Ticket: id, Class: class, Priority: priority, Born: p.now, Demand: p.n.cfg.Search.Flow.Classes[class]}, Hop: 1,
		Least: least, Most: 2 * least, Short: short,
	}})
}

// answers of the node's last step by ticket: the slice that is held, empty if the probe was refused.
func (p *probed) answers() map[flow.TicketID]job.SliceID {
	out := map[flow.TicketID]job.SliceID{}
	for _, m := range p.out.Effects {
		if r, ok := m.Body.(*protocol.Response); ok {
			out[r.Ticket] = ""
			if r.Place != nil {
				out[r.Ticket] = r.Place.Slice.ID
			}
		}
	}
	return out
}

func (p *probed) place(id flow.TicketID) *protocol.Place {
	for _, m := range p.out.Effects {
		if r, ok := m.Body.(*protocol.Response); ok && r.Ticket == id && r.Place != nil {
			return r.Place
		}
	}
	p.Fatalf("ticket %d has no place", id)
	return nil
}

func TestProbesOfOneInstantAreDecidedTogether(t *testing.T) {
	p := newProbed(t, 200, 100)
	p.ask(1, 0, 0, time.Minute)
	p.ask(2, 0, 5, time.Minute)
	p.ask(3, 1, 1, time.Minute)
	if got := p.answers(); len(got) > 0 {
		t.Fatalf("answered before the instant is over: %v", got)
	}
	p.step(protocol.Message{Kind: protocol.Tick})
	// 2 goes first and takes the small slice, then 3.
	if got := p.answers(); len(got) != 3 || got[2] != "b" || got[3] != "a" || got[1] != "" {
		t.Fatalf("places %v, want 2 on b, 3 on a and none for 1", got)
	}
}

func TestAProbeThatIsDoubledGetsTheSameGrant(t *testing.T) {
	p := newProbed(t, 100, 100)
	p.ask(1, 0, 0, time.Minute)
	p.wait(0)
	first := *p.place(1)
	p.ask(1, 0, 0, time.Minute)
	p.wait(time.Millisecond)
	if again := *p.place(1); again.Token != first.Token {
		t.Fatalf("token %v, then %v", first.Token, again.Token)
	}
	if d := first.End.Sub(first.Start); d != 2*time.Minute+200*time.Millisecond {
		t.Errorf("it holds %v: want what the job could use, and what its home may take", d)
	}
	p.wait(200 * time.Millisecond)
	if free := p.n.tickets.Room(p.now).Free; free[0] != 2 {
		t.Errorf("free %v after the hold has lapsed", free)
	}
}

// TestAHoldThatIsOverIsNotGivenAgain: the same question later, once its hold was let go or has lapsed, has another answer.
func TestAHoldThatIsOverIsNotGivenAgain(t *testing.T) {
	p := newProbed(t, 100)
	p.ask(1, 0, 0, time.Minute)
	p.wait(0)
	before := p.place(1).Token
	for _, over := range []func(){
		func() { p.wait(p.n.cfg.GrantTTL) },
		func() { p.step(protocol.Message{Kind: protocol.LetGo, From: zone, Job: "j", Token: before}) },
	} {
		over()
		p.ask(1, 0, 0, time.Minute)
		p.wait(0)
		if again := p.place(1).Token; again == before {
			t.Errorf("token %v again, and nothing is held under it", again)
		} else {
			before = again
		}
	}
}

// TestAnAbsurdProbeGetsNoPlace: nor does one of an earlier life of a job than runs here.
func TestAnAbsurdProbeGetsNoPlace(t *testing.T) {
	p := newProbed(t, 100, 100)
	p.ask(1, 0, 0, time.Minute)
	p.wait(0)
	at := p.place(1)
	p.step(protocol.Message{Kind: protocol.Redeem, From: zone, Job: "j", Generation: 2, Token: at.Token,
		Body: &protocol.Work{Placement: protocol.Placement{Slice: at.Slice.ID, Range: job.Range{To: 1}, Start: at.Start,
			End: at.Start.Add(time.Minute), Demand: trp.Vector{100}}, Spec: spec}})
	sound := protocol.Message{Kind: protocol.Probe, From: zone, Job: "j", Generation: 2}
	for name, absurd := range map[string]func(*protocol.Message, *protocol.Inquiry){
		"an earlier life": func(m *protocol.Message, _ *protocol.Inquiry) { m.Generation = 1 },
		"no name":         func(m *protocol.Message, _ *protocol.Inquiry) { m.Job = "../j" },
		"no time":         func(_ *protocol.Message, q *protocol.Inquiry) { q.Least = 0 },
		"most below least": func(_ *protocol.Message, q *protocol.Inquiry) {
			q.Most = q.Least - 1
		},
		"too large": func(_ *protocol.Message, q *protocol.Inquiry) { q.Demand = 101 },
		"no class":  func(_ *protocol.Message, q *protocol.Inquiry) { q.Class = flow.MaxClasses - 1 },
	} {
		m, q := sound, &protocol.Inquiry{Probe: flow.Probe{Ticket: 2, Demand: 100, Born: p.now}, Hop: 1, Least: time.Second,
			Most: time.Minute}
		m.Body = q
		absurd(&m, q)
		p.step(m)
		if p.wait(0); p.answers()[2] != "" {
			t.Errorf("%s: it holds %s", name, p.answers()[2])
		}
	}
}

// rooms are what the node said of itself in the answers of its last step.
func (p *probed) rooms() (all []flow.Summary) {
	for _, m := range p.out.Effects {
		if r, ok := m.Body.(*protocol.Response); ok {
			all = append(all, r.Room)
		}
	}
	return all
}

// TestWhatANodeSaysLaterCounts: its words are numbered upwards, and those of a boot above all of the boot before; one that is unhealthy is
// not usable.
func TestWhatANodeSaysLaterCounts(t *testing.T) {
	p := newProbed(t, 100)
	p.ask(1, 0, 0, time.Minute)
	p.ask(2, 0, 0, time.Minute)
	p.wait(0)
	said := p.rooms()
	if len(said) != 2 || said[0].Version >= said[1].Version || !said[1].Usable || said[1].Free[0] != 0 {
		t.Fatalf("said was %+v", said)
	}
	p.step(protocol.Message{Kind: protocol.Unhealthy, From: executor, Body: &protocol.Condition{Unhealthy: true, Text: "no space left"}})
	p.ask(3, 0, 0, time.Minute)
	if p.wait(0); len(p.rooms()) != 1 || p.rooms()[0].Usable || p.rooms()[0].Version <= said[1].Version {
		t.Errorf("it is unhealthy, and says %+v", p.rooms())
	}
	before := p.rooms()[0].Version
	p.n = New(p.n.cfg)
	p.n.Apply(protocol.Fact{Kind: protocol.Booted, Epoch: 1})
	p.n.Recover(p.now, &p.out)
	p.ask(4, 0, 0, time.Minute)
	if p.wait(0); len(p.rooms()) != 1 || p.rooms()[0].Version <= before {
		t.Errorf("said was %+v after a boot, and version %d before it", p.rooms(), before)
	}
}

// TestAnotherQuestionIsAnotherGrant: of a ticket that has lost a grant since, or of a home that has started again.
func TestAnotherQuestionIsAnotherGrant(t *testing.T) {
	for name, other := range map[string]func(*protocol.Inquiry){
		"churn": func(q *protocol.Inquiry) { q.Churn++ }, "epoch": func(q *protocol.Inquiry) { q.Epoch++ },
		"home": func(q *protocol.Inquiry) { q.Home++ },
	} {
		p := newProbed(t, 100, 100)
		p.ask(1, 0, 0, time.Minute)
		p.wait(0)
		before := p.place(1).Token
		q := &protocol.Inquiry{Probe: flow.Probe{Ticket: 1, Demand: 100, Born: p.now}, Hop: 1, Least: time.Second, Most: time.Minute}
		other(q)
		p.step(protocol.Message{Kind: protocol.Probe, From: zone, Job: "j", Generation: 1, Body: q})
		if p.wait(0); p.place(1).Token == before {
			t.Errorf("%s: the grant of another question is given", name)
		}
	}
}

func TestAGapThatIsTooShortIsRefused(t *testing.T) {
	p := newProbed(t, 100)
	p.step(protocol.Message{Kind: protocol.Reserve, From: person,
		Body: &protocol.Booking{Request: "r", Reservation: &protocol.Reservation{Kind: protocol.ForServing, Slice: "a",
			Start: p.now.Add(time.Minute), End: p.now.Add(time.Hour)}}})
	p.ask(1, 0, 0, time.Minute)
	p.wait(0)
	if got := p.answers(); got[1] != "" {
		t.Fatalf("granted %v, which ends with the gap", got)
	}
	p.ask(2, 0, 0, 50*time.Second)
	p.wait(0)
	if at := p.place(2); at.End != t0.Add(time.Minute) {
		t.Errorf("held until %v, the gap ends at %v", at.End, t0.Add(time.Minute))
	}
}

func TestWhoWasRefusedIsToldOfRoomOnce(t *testing.T) {
	p := newProbed(t, 100)
	p.ask(1, 0, 0, time.Minute)
	p.wait(0)
	held := *p.place(1)
	p.ask(2, 0, 0, time.Minute)
	p.wait(0)
	count := func(list []protocol.Message) (n int) {
		for _, m := range list {
			if m.Kind == protocol.Room {
				n++
				if s := m.Body.(*flow.Summary); s.Free[0] != 1 {
					t.Errorf("free %v", s.Free)
				}
			}
		}
		return n
	}
	if n := count(p.step(protocol.Message{Kind: protocol.LetGo, From: zone, Job: "j", Token: held.Token})); n != 1 {
		t.Fatalf("%d words of room", n)
	}
	p.ask(3, 0, 0, time.Minute)
	p.wait(0)
	if n := count(p.step(protocol.Message{Kind: protocol.LetGo, From: zone, Job: "j", Token: p.place(3).Token})); n != 0 {
		t.Errorf("told again, though nobody was refused since")
	}
}

// TestWhereSomebodyWaitsTheNodeTellsOfRoom: a probe was granted, and says that others wait in its zone.
func TestWhereSomebodyWaitsTheNodeTellsOfRoom(t *testing.T) {
	for _, short := range []bool{false, true} {
		p := newProbed(t, 100)
		p.askFor(1, 0, 0, time.Minute, short)
		p.wait(0)
		told := false
		for _, m := range p.step(protocol.Message{Kind: protocol.LetGo, From: zone, Job: "j", Token: p.place(1).Token}) {
			told = told || m.Kind == protocol.Room
		}
		if told != short {
			t.Errorf("somebody waits: %v, the node has told of room: %v", short, told)
		}
	}
}

func TestWhatIsLeftOfAHoldIsFreeOnceItIsRedeemed(t *testing.T) {
	p := newProbed(t, 100)
	p.ask(1, 0, 0, time.Minute)
	p.wait(0)
	at := p.place(1)
	p.step(protocol.Message{
		Kind: protocol.Redeem, From: protocol.Address{Role: protocol.Zone, ID: "other"}, Job: "j", Generation: 1, Token: at.Token,
		Body: &protocol.Work{Placement: protocol.Placement{Slice: "a", Range: job.Range{To: 1}, Start: at.Start,
			End: at.Start.Add(time.Minute), Demand: trp.Vector{100}}, Spec: spec},
	})
	if l := p.n.Leases(); len(l) != 1 || l[0].End != t0.Add(time.Minute) {
		t.Fatalf("leases %+v", l)
	}
	if got := p.n.leases.Of(at.Token).Terms().Zone; got != "other" {
		t.Errorf("the lease is of zone %q, want the home that redeemed it", got)
	}
	var gaps []protocol.Gap
	if gaps, _ = p.n.inventory.Of("a").Gaps(p.now, time.Hour, time.Second, gaps); len(gaps) != 1 || gaps[0].Start != t0.Add(time.Minute) {
		t.Errorf("gaps %v", gaps)
	}
}

func TestOffersWaitForTheirPeriod(t *testing.T) {
	p := newProbed(t, 100)
	p.wait(time.Millisecond)
	p.ask(1, 0, 0, time.Minute)
	offers := func() (n int) {
		for _, m := range p.out.Effects {
			if m.Kind == protocol.Offer {
				n++
				if m.Body.(*protocol.SliceView).Room == nil {
					t.Error("an offer without a word of what is free")
				}
			}
		}
		return n
	}
	if p.wait(0); offers() != 0 {
		t.Error("a hold is shown at once")
	}
	if p.wait(100 * time.Millisecond); offers() != 1 {
		t.Errorf("%d offers with the next period", offers())
	}
}
