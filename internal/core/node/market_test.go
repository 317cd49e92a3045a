package node

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/federation/floor"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/policy/shortest"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// trading is a node with one slice and a market, and a job of a zone that visits it.
type trading struct {
	*probed
	session uint64
}

const sliceMemory = 4 << 30

func newTrading(t *testing.T, most int) *trading { return newTradingOn(t, most, joint.Config{}) }

func newTradingOn(t *testing.T, most int, host joint.Config) *trading {
	cfg, err := search.Config{Flow: flow.Config{Classes: flow.Classes{sliceMemory}},
		Zones: []search.Zone{{ID: "z", Nodes: []job.NodeID{"n"}}}}.Checked()
	if err != nil {
		t.Fatal(err)
	}
	x := &trading{probed: &probed{T: t, now: t0, n: New(Config{
		ID: "n", Zone: "z", Search: cfg, Host: host, Market: &floor.Config{Policy: shortest.Policy{}, Market: &auction.Config{},
			Most: most},
	})}, session: 1}
	x.n.Recover(x.now, &x.out)
	d := device("a")
	d.Capacity = trp.Vector{trp.Memory: sliceMemory}
	x.step(protocol.Message{Kind: protocol.Inventory, From: executor, Body: &protocol.Stock{Slices: []protocol.Slice{d}}})
	return x
}

// visit has a job of a hundred steps of a second come to the node.
func (x *trading) visit(name job.ID) []protocol.Message {
	s := &job.Spec{
		Kind: job.Steps, Total: 100, Unit: "step", Grid: 1, Parallelism: 1, Slices: 1, PerUnit: time.Second, OverheadMax: 100,
		Theta:  10_000,
		Launch: job.Launch{Grace: time.Second}, Profile: trp.Profile{Form: trp.Phases, Combine: trp.Maximum,
			Phases: []trp.Phase{{UpTo: 100, Mean: 1 << 30}}},
	}
	var err error
	if s.Safe, err = trp.Compile(s.Profile, s.Total, s.Theta); err != nil {
		x.Fatal(err)
	}
	return x.step(protocol.Message{Kind: protocol.Visiting, From: zone, Job: name, Session: x.session,
		Body: &protocol.Visit{Spec: s, Weight: 1, Submitted: t0}})
}

func said(k protocol.Kind, all []protocol.Message) *protocol.Message {
	for i := range all {
		if all[i].Kind == k {
			return &all[i]
		}
	}
	return nil
}

// win is what a visitor is sold that answers its first call with sixty steps from a start on.
func (x *trading) win(name job.ID, after time.Duration) *protocol.Prize {
	call := said(protocol.Announce, x.visit(name))
	if call == nil || call.To != zone || call.Job != name || call.Session != x.session || len(call.Body.(*protocol.Call).Windows) != 1 {
		x.Fatalf("the job is called with %+v", call)
	}
	won := said(protocol.Winning, x.step(protocol.Message{
		Kind: protocol.Answer, From: zone, Job: name, Session: x.session, Body: &protocol.Proposal{Round: call.Body.(*protocol.Call).Round,
			Variants: []protocol.Variant{{
				ID: 1, Window: call.Body.(*protocol.Call).Windows[0].Window, Range: job.Range{To: 60}, Start: x.now.Add(after),
				Run: time.Minute, Wall: time.Minute, Score: 500_000, Demand: trp.Vector{trp.Memory: 1 << 30},
			}}},
	}))
	if won == nil {
		x.Fatal("nothing is sold")
	}
	if won.To != zone || won.Job != name || won.Session != x.session {
		x.Fatalf("%v is told of %s, session %d", won.To, won.Job, won.Session)
	}
	return won.Body.(*protocol.Prize)
}

// TestWhatAVisitorWinsIsHeldAndRedeemed: a hold like any other, which nobody else gets, and which becomes the lease.
func TestWhatAVisitorWinsIsHeldAndRedeemed(t *testing.T) {
	x := newTrading(t, 0)
	p := x.win("j", 0)
	if p.Node != "n" || p.Slice.ID != "a" || p.Range != (job.Range{To: 60}) || p.Start != x.now || p.End < x.now.Add(time.Minute) ||
		p.Expiry != x.now.Add(x.n.cfg.GrantTTL) || p.Speed == 0 || p.Bid == nil || p.Plan.Wall != time.Minute {
		t.Errorf("sold was %+v", p)
	}
	x.ask(1, 0, 0, time.Second)
	if x.wait(0); x.answers()[1] != "" {
		t.Error("a probe got the time that is held")
	}
	s := &job.Spec{Kind: job.Steps, Total: 100, Grid: 1, Parallelism: 1, Slices: 1}
	redeem := protocol.Message{
		Kind: protocol.Redeem, From: zone, Job: "j", Generation: 1, Token: p.Token,
		Body: &protocol.Work{Placement: protocol.Placement{Slice: "a", Range: p.Range, Start: p.Start, End: p.End, Demand: p.Demand,
			Plan: p.Plan}, Spec: s},
	}
	if got := x.step(redeem); said(protocol.Leased, got) == nil || said(protocol.Start, got) == nil {
		t.Fatalf("redeemed, and said was %+v", got)
	}
	if got := x.step(redeem); said(protocol.Leased, got) == nil || said(protocol.Start, got) != nil {
		t.Errorf("redeemed again, and said was %+v", got)
	}
}

func TestWhatItsHomeDoesNotTakeIsFreeAgain(t *testing.T) {
	for name, forgo := range map[string]func(*trading, *protocol.Prize){
		"let go": func(x *trading, p *protocol.Prize) {
			x.step(protocol.Message{Kind: protocol.LetGo, From: zone, Job: "j", Token: p.Token})
		},
		"lapsed": func(x *trading, _ *protocol.Prize) { x.wait(x.n.cfg.GrantTTL) },
	} {
		x := newTrading(t, 0)
		p := x.win("j", 0)
		x.step(protocol.Message{Kind: protocol.Parting, From: zone, Job: "j", Session: x.session})
		forgo(x, p)
		x.ask(1, 0, 0, time.Second)
		if x.wait(0); x.answers()[1] != "a" {
			t.Errorf("%s: the slice is not free again", name)
		}
	}
}

// TestTimeIsSoldAheadAndProbesTakeWhatIsBefore: a variant may begin later, and what is free before it is for whoever fits in.
func TestTimeIsSoldAheadAndProbesTakeWhatIsBefore(t *testing.T) {
	x := newTrading(t, 0)
	ahead := 20 * time.Second
	if p := x.win("j", ahead); p.Start != x.now.Add(ahead) {
		t.Fatalf("sold from %v", p.Start.Sub(x.now))
	}
	x.ask(1, 0, 0, 30*time.Second)
	x.ask(2, 0, 0, 10*time.Second)
	if x.wait(0); x.answers()[1] != "" || x.answers()[2] != "a" {
		t.Errorf("answered was %v, want the short one alone to fit in before", x.answers())
	}
}

func TestAVisitorThatIsNotLetInIsTold(t *testing.T) {
	x := newTrading(t, 1)
	x.visit("j")
	m := said(protocol.Parting, x.visit("k"))
	if m == nil || m.To != zone || m.Job != "k" || m.Session != x.session {
		t.Errorf("told was %+v", m)
	}
	x.step(protocol.Message{Kind: protocol.Parting, From: zone, Job: "j", Session: x.session})
	if m := said(protocol.Parting, x.visit("k")); m != nil {
		t.Errorf("there is room, and told was %+v", m)
	}
	if x.wait(time.Minute); x.n.market.Visitors() != 0 {
		t.Error("its home has said nothing for a minute, and it is here")
	}
}

// TestABootHasNoVisitors: they come again, by themselves.
func TestABootHasNoVisitors(t *testing.T) {
	x := newTrading(t, 0)
	x.visit("j")
	again := New(x.n.cfg)
	again.Apply(protocol.Fact{Kind: protocol.Booted, Epoch: 1})
	var out protocol.Out
	again.Recover(quantity.Instant(x.now), &out)
	if again.market.Visitors() != 0 {
		t.Error("a new boot has visitors of the one before")
	}
}
