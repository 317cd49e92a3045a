package node

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

func TestNothingIsSoldBeforeTheInventory(t *testing.T) {
	w := newWorld(t)
	w.recorded(protocol.Booted)
	same(t, "epoch", w.n.Epoch(), 1)
	w.step(ask(1, "a", 0, time.Minute))
	w.must(protocol.Refused)
	w.never(protocol.Offer)
	w.step(reserve("r", protocol.Reservation{Kind: protocol.ForDrain, Start: w.now, End: quantity.Never}))
	same(t, "kind", errkind.Of(w.must(protocol.Reply).Body.(*protocol.Receipt).Err), errkind.Unavailable)
	w.inventory()
	same(t, "slices for the gate", len(w.must(protocol.Inventory).Body.(*protocol.Stock).Slices), 2)
	same(t, "gaps", len(w.gaps("a"))+len(w.gaps("b")), 2)
	w.step(reserve("r", protocol.Reservation{Kind: protocol.ForDrain, Start: w.now, End: quantity.Never}))
	same(t, "the same call later", told(w.must(protocol.Reply)), "1 2")
	w.inventory()
	w.never(protocol.Inventory)
	w.step(protocol.Message{Kind: protocol.Inventory, From: protocol.Address{Role: protocol.Gate}, Body: &protocol.Stock{}})
	same(t, "slices for a gate that asks", len(w.must(protocol.Inventory).Body.(*protocol.Stock).Slices), 2)
}

func TestWhatARestartFinds(t *testing.T) {
	found := func(token job.Token) protocol.Found {
		return protocol.Found{Token: token, Job: "j", Slice: "a"}
	}
	for _, c := range []struct {
		name    string
		started bool
		found   func(f *protocol.Found) bool // false: no run directory
		facts   []protocol.FactKind
		effect  protocol.Kind
		usable  bool
		outcome job.Outcome
	}{
		{
			name: "no run directory", found: func(*protocol.Found) bool { return false },
			facts: []protocol.FactKind{protocol.SubjobEnded}, effect: protocol.Result, usable: true, outcome: job.NodeFailed,
		},
		{
			name: "no run directory any more", started: true, found: func(*protocol.Found) bool { return false },
			facts: []protocol.FactKind{protocol.SubjobEnded}, effect: protocol.Result, usable: true, outcome: job.NodeFailed,
		},
		{
			name: "alive", started: true, found: func(f *protocol.Found) bool { f.Alive = true; return true },
			effect: protocol.Deadline, usable: true,
		},
		{
			name: "alive, not known to have started", found: func(f *protocol.Found) bool {
				f.Alive, f.Started = true,
					at(time.Second)
				return true
			},
			facts: []protocol.FactKind{protocol.SubjobStarted}, effect: protocol.Deadline, usable: true,
		},
		{
			name: "dead", started: true, found: func(f *protocol.Found) bool {
				f.Result = &job.Result{Outcome: job.Done, Progress: 100}
				return true
			},
			facts: []protocol.FactKind{protocol.SubjobEnded}, effect: protocol.Result, usable: true, outcome: job.Done,
		},
		{
			name: "dead without a word", started: true, found: func(*protocol.Found) bool { return true },
			facts: []protocol.FactKind{protocol.SubjobEnded}, effect: protocol.Result, usable: true, outcome: job.NodeFailed,
		},
		{
			name: "stuck", started: true, found: func(f *protocol.Found) bool { f.Stuck = true; return true },
			facts: []protocol.FactKind{protocol.Quarantined}, effect: protocol.Stop,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := booted(t)
			var token job.Token
			if c.started {
				token = w.running(1, "a", 0, time.Minute)
			} else {
				token = w.lease(1, "a", 0, time.Minute)
			}
			w.now = at(5 * time.Second)
			w.restart()
			same(t, "epoch", w.n.Epoch(), 2)
			f := found(token)
			if c.found(&f) {
				w.inventory(f)
			} else {
				w.inventory()
			}
			w.recorded(c.facts...)
			w.must(c.effect)
			for _, m := range w.effects {
				if m.Kind == protocol.Offer && m.Body.(*protocol.SliceView).Slice.ID == "a" &&
					m.Body.(*protocol.SliceView).Usable != c.usable {
					t.Errorf("usable is %v: %s", m.Body.(*protocol.SliceView).Usable, m.Body.(*protocol.SliceView).Why)
				}
			}
			if c.outcome != 0 {
				same(t, "outcome", w.result().Outcome, c.outcome)
				same(t, "that it began", w.result().Start != 0, c.started && w.result().Outcome == job.NodeFailed)
			}
			w.never(protocol.Start)
		})
	}
}

func TestAStrangerQuarantinesItsSlice(t *testing.T) {
	w := newWorld(t)
	token := job.Token{Epoch: 7, Seq: 3}
	w.inventory(protocol.Found{Token: token, Job: "x", Slice: "a", Alive: true}, protocol.Found{Token: job.Token{Epoch: 7, Seq: 4},
		Job: "y", Slice: "b"})
	w.recorded(protocol.Quarantined)
	same(t, "stopped", w.must(protocol.Stop).Token, token)
	same(t, "put away", w.must(protocol.Settle).Job, "y")
	same(t, "state", w.n.Slices(w.now)[0].State, "quarantined")
	w.step(ask(1, "a", 0, time.Minute))
	w.must(protocol.Refused)
	w.step(exited(token, job.Stopped, 0))
	w.recorded(protocol.QuarantineLifted)
	same(t, "put away", w.must(protocol.Settle).Body.(*protocol.Settlement).Committed, false)
	w.must(protocol.Offer)
	w.step(ask(2, "a", 0, time.Minute))
	w.must(protocol.Granted)
}

func TestASliceThatIsMissingIsNotSoldAndSaysWhy(t *testing.T) {
	w := booted(t)
	token := w.running(1, "a", 0, time.Minute)
	w.restart()
	w.step(protocol.Message{
		Kind: protocol.Inventory, From: executor, Body: &protocol.Stock{Slices: []protocol.Slice{device("b")},
			Found: []protocol.Found{{Token: token, Job: "j", Slice: "a", Alive: true}}},
	})
	a := w.n.Slices(w.now)[0]
	same(t, "state", a.State, "unconfirmed")
	if !strings.Contains(a.Reason, "not in the inventory") {
		t.Errorf("reason %q", a.Reason)
	}
	if gaps := w.gaps("a"); len(gaps) != 0 {
		t.Errorf("gaps %v", gaps)
	}
	w.step(exited(token, job.Done, 100))
	w.recorded(protocol.SubjobEnded)
}

func TestWhatIsOutstandingIsSentAgainAtBoot(t *testing.T) {
	w := booted(t)
	first, second := w.running(1, "a", 0, time.Minute), w.running(2, "b", 0, time.Minute)
	w.step(exited(first, job.Done, 100))
	w.step(exited(second, job.Done, 100))
	w.step(protocol.Message{Kind: protocol.ResultAck, From: zone, Token: second, Job: "j",
		Body: &protocol.Acknowledgement{Range: job.Range{From: 0, To: 100}}})
	w.restart()
	same(t, "result", w.must(protocol.Result).Token, first)
	same(t, "settle", w.must(protocol.Settle).Token, second)
}

func TestAnEndBeforeTheInventoryIsNoStranger(t *testing.T) {
	w := booted(t)
	token := w.running(1, "a", 0, time.Minute)
	w.restart()
	w.step(exited(token, job.Done, 100))
	w.recorded(protocol.SubjobEnded)
	w.inventory(protocol.Found{Token: token, Job: "j", Slice: "a", Alive: true})
	w.recorded()
}

func TestStuckUntilAPersonHasLooked(t *testing.T) {
	w := booted(t)
	token := w.running(1, "a", 0, time.Minute)
	later := w.lease(2, "a", time.Minute, 2*time.Minute)
	w.step(ask(3, "a", 2*time.Minute, 3*time.Minute))
	hold := w.must(protocol.Granted)
	w.step(protocol.Message{Kind: protocol.Stuck, From: executor, Token: token, Body: &protocol.Reason{Text: "in state D"}})
	w.recorded(protocol.Quarantined, protocol.SubjobEnded)
	same(t, "withdrawn", w.must(protocol.Result).Token, later)
	w.step(redeem(hold))
	w.must(protocol.RedeemRefused)
	w.step(protocol.Message{Kind: protocol.Stuck, From: executor, Token: token, Body: &protocol.Reason{Text: "in state D"}})
	w.recorded()
	w.restart()
	w.inventory(protocol.Found{Token: token, Job: "j", Slice: "a", Stuck: true})
	w.wait(time.Hour)
	w.step(protocol.Message{Kind: protocol.Unquarantine, From: person, Body: &protocol.Clearance{Request: "1", Slice: "a"}})
	w.recorded(protocol.SubjobEnded, protocol.QuarantineLifted)
	same(t, "answer", w.must(protocol.Reply).Body.(*protocol.Receipt).Text, "a is unquarantined")
	same(t, "outcome", w.result().Outcome, job.Lost)
	w.step(ask(4, "a", time.Hour, 2*time.Hour))
	w.must(protocol.Granted)
	w.step(protocol.Message{Kind: protocol.Unquarantine, From: person, Body: &protocol.Clearance{Request: "3", Slice: "b"}})
	w.recorded()
	same(t, "answer for a healthy slice", w.must(protocol.Reply).Body.(*protocol.Receipt).Text, "b is not quarantined, nothing changed")
	w.step(protocol.Message{Kind: protocol.Unquarantine, From: person, Body: &protocol.Clearance{Request: "2", Slice: "nowhere"}})
	same(t, "kind", errkind.Of(w.must(protocol.Reply).Body.(*protocol.Receipt).Err), errkind.NotFound)
}

func TestASnapshotFoldsToTheSameState(t *testing.T) {
	w := booted(t)
	first := w.running(1, "a", 0, time.Minute)
	w.step(protocol.Message{Kind: protocol.Stuck, From: executor, Token: first, Body: &protocol.Reason{}})
	withdrawn := w.lease(2, "b", time.Minute, 2*time.Minute)
	w.step(protocol.Message{Kind: protocol.Stop, From: zone, Token: withdrawn, Body: &protocol.Halt{}})
	cut := w.running(3, "b", 0, 90*time.Second) // sold over what the withdrawn lease had
	w.step(reserve("1", protocol.Reservation{Kind: protocol.ForReclaim, Slice: "b", Start: at(80 * time.Second), End: quantity.Never,
		Truncate: true}))
	same(t, "cut", w.last[1].Token, cut)
	w.step(reserve("2", protocol.Reservation{Kind: protocol.ForServing, Start: w.now, End: at(time.Hour), Every: 24 * time.Hour}))
	w.step(protocol.Message{Kind: protocol.Unreserve, From: person,
		Body: &protocol.Booking{Request: "3", Reservation: &protocol.Reservation{ID: 3}}})
	n := New(w.cfg)
	for _, f := range capture.All(w.n) {
		n.Apply(f)
	}
	same(t, "digest", n.Digest(), w.n.Digest())
	same(t, "last id", n.reservations.Last(), 3)
}
