package node

import (
	"slices"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

func TestALeaseFromAskToGone(t *testing.T) {
	w := booted(t)
	w.step(ask(1, "a", 0, time.Minute))
	g := w.must(protocol.Granted)
	w.recorded() // a hold is no fact
	same(t, "expiry", g.Body.(*protocol.Grant).Expiry, at(200*time.Millisecond))
	same(t, "first gap", w.gaps("a")[0].Start, at(time.Minute))
	w.step(ask(1, "a", 0, time.Minute))
	same(t, "token of the same ask", w.must(protocol.Granted).Token, g.Token)

	w.step(redeem(g))
	w.recorded(protocol.LeaseMade)
	w.must(protocol.Leased)
	w.never(protocol.Offer) // a hold that becomes a lease changes no gap
	same(t, "token to start", w.must(protocol.Start).Token, g.Token)
	w.step(redeem(g))
	w.recorded()
	w.must(protocol.Leased)
	w.never(protocol.Start)

	w.wait(time.Second)
	w.must(protocol.Start) // nobody has said that it started
	w.step(protocol.Message{Kind: protocol.Started, From: executor, Token: g.Token, Body: &protocol.Beginning{At: w.now}})
	w.recorded(protocol.SubjobStarted)
	w.must(protocol.Running)
	w.step(protocol.Message{Kind: protocol.Started, From: executor, Token: g.Token, Body: &protocol.Beginning{At: w.now}})
	w.recorded()

	w.now = at(10 * time.Second)
	w.step(protocol.Message{Kind: protocol.Report, From: executor, Token: g.Token, Body: &protocol.Observation{Progress: 7}})
	same(t, "progress reported", w.must(protocol.Report).Body.(*protocol.Observation).Progress, 7)
	w.step(exited(g.Token, job.Yielded, 40))
	w.recorded(protocol.SubjobEnded)
	same(t, "first gap", w.gaps("a")[0].Start, w.now)
	r := w.must(protocol.Result)
	same(t, "result to", r.To, zone)
	same(t, "progress", r.Body.(*protocol.Conclusion).Result.Progress, 40)
	w.step(exited(g.Token, job.Done, 100))
	w.recorded()
	w.step(redeem(g))
	same(t, "a late redeem answers the result", w.must(protocol.Result).Body.(*protocol.Conclusion).Result.Progress, 40)
	w.wait(time.Second)
	w.must(protocol.Result)

	ack := protocol.Message{Kind: protocol.ResultAck, From: zone, Token: g.Token, Job: "j",
		Body: &protocol.Acknowledgement{Range: job.Range{From: 0, To: 40}}}
	w.step(ack)
	w.recorded(protocol.ResultSettled)
	same(t, "committed", w.must(protocol.Settle).Body.(*protocol.Settlement).Committed, true)
	w.step(ack)
	w.recorded()
	w.wait(time.Second)
	same(t, "range settled", w.must(protocol.Settle).Body.(*protocol.Settlement).Range, job.Range{From: 0, To: 40})
	w.step(protocol.Message{Kind: protocol.Settled, From: executor, Token: g.Token})
	w.recorded(protocol.LeaseGone)
	w.step(protocol.Message{Kind: protocol.Settled, From: executor, Token: g.Token})
	w.recorded()
	w.step(redeem(g))
	w.must(protocol.RedeemRefused)
	same(t, "leases left", len(w.n.Leases()), 0)
}

func TestAHoldLapses(t *testing.T) {
	w := booted(t)
	w.step(ask(1, "a", 0, time.Minute))
	g := w.must(protocol.Granted)
	same(t, "wake", w.must(protocol.Wake).Body.(*protocol.Moment).At, g.Body.(*protocol.Grant).Expiry)
	w.step(ask(2, "a", 30*time.Second, 90*time.Second))
	if text := w.must(protocol.Refused).Body.(*protocol.Refusal).Text; !strings.Contains(text, "hold") {
		t.Errorf("refused because of %q", text)
	}
	w.must(protocol.Offer)
	w.wait(200 * time.Millisecond)
	same(t, "first gap", w.gaps("a")[0].Start, w.now)
	w.step(redeem(g))
	w.must(protocol.RedeemRefused)
	w.never(protocol.Start)
}

func TestAsksThatAreRefused(t *testing.T) {
	change := func(f func(*protocol.Message)) protocol.Message {
		m := ask(9, "a", 10*time.Second, 20*time.Second)
		f(&m)
		return m
	}
	for _, c := range []struct {
		why string
		ask protocol.Message
	}{
		{"lease", ask(9, "a", 70*time.Second, 90*time.Second)},
		{"drain", ask(9, "b", 70*time.Second, 90*time.Second)},
		{"not a slice of this node", ask(9, "c", 0, time.Second)},
		{"ends before", ask(9, "a", 2*time.Second, time.Second)},
		{"over", ask(9, "a", -2*time.Second, 0)},
		{"ahead", ask(9, "a", 2*time.Hour, 3*time.Hour)},
		{"twice", change(func(m *protocol.Message) { m.Body.(*protocol.Asking).Also = []job.SliceID{"a"} })},
		{"twice", change(func(m *protocol.Message) { m.Body.(*protocol.Asking).Also = []job.SliceID{"b", "b"} })},
		{"no job", change(func(m *protocol.Message) { m.Job = "" })},
		{"no job", change(func(m *protocol.Message) { m.Job = "../b" })},
		{"capacity", change(func(m *protocol.Message) { m.Body.(*protocol.Asking).Demand = trp.Vector{101} })},
		{"b: taken", change(func(m *protocol.Message) { m.Body.(*protocol.Asking).Also = []job.SliceID{"b"} })},
	} {
		t.Run(c.why, func(t *testing.T) {
			w := booted(t)
			w.lease(1, "a", time.Minute, 2*time.Minute)
			w.step(reserve("r", protocol.Reservation{Kind: protocol.ForDrain, Slice: "b", Start: at(15 * time.Second),
				End: quantity.Never}))
			w.step(c.ask)
			if text := w.must(protocol.Refused).Body.(*protocol.Refusal).Text; !strings.Contains(text, c.why) {
				t.Errorf("refused because %q, want something with %q", text, c.why)
			}
			w.recorded()
		})
	}
}

func TestRedeemsThatAreRefused(t *testing.T) {
	for why, f := range map[string]func(*protocol.Message){
		"lapsed":         func(m *protocol.Message) { m.Token.Seq++ },
		"earlier boot":   func(m *protocol.Message) { m.Token.Epoch-- },
		"token is for a": func(m *protocol.Message) { m.Body.(*protocol.Work).Slice = "b" },
		"token is for 1": func(m *protocol.Message) { m.Body.(*protocol.Work).End++ },
		"no work":        func(m *protocol.Message) { m.Body.(*protocol.Work).Range = job.Range{} },
		"what to run":    func(m *protocol.Message) { m.Body.(*protocol.Work).Spec = nil },
		"capacity":       func(m *protocol.Message) { m.Body.(*protocol.Work).Demand = trp.Vector{101} },
	} {
		t.Run(why, func(t *testing.T) {
			w := booted(t)
			w.step(ask(1, "a", 0, time.Minute))
			m := redeem(w.must(protocol.Granted))
			f(&m)
			w.step(m)
			w.recorded()
			if text := w.must(protocol.RedeemRefused).Body.(*protocol.Refusal).Text; !strings.Contains(text, why) {
				t.Errorf("refused because %q, want something with %q", text, why)
			}
		})
	}
}

func TestALeaseForLaterStartsThenAndNotBeforeItsPlaceIsFree(t *testing.T) {
	w := booted(t)
	first := w.running(1, "a", 0, 10*time.Second)
	second := w.lease(2, "a", 10*time.Second, 20*time.Second)
	w.never(protocol.Start)
	w.wait(10 * time.Second)
	w.never(protocol.Start) // the first was not confirmed gone
	w.step(ask(3, "a", 30*time.Second, 40*time.Second))
	w.must(protocol.Refused)
	if gaps := w.gaps("a"); len(gaps) != 0 {
		t.Errorf("gaps %v are offered while a subjob is overdue", gaps)
	}
	w.now = at(11 * time.Second)
	w.step(exited(first, job.DeadlineKilled, 10))
	same(t, "token to start", w.must(protocol.Start).Token, second)
}

func TestALeaseWhosePlaceNeverGetsFreeEndsUnstarted(t *testing.T) {
	w := booted(t)
	first := w.running(1, "a", 0, 10*time.Second)
	second := w.lease(2, "a", 10*time.Second, 20*time.Second)
	w.wait(15 * time.Second)
	same(t, "an overdue subjob is stopped", w.must(protocol.Stop).Token, first)
	w.wait(5 * time.Second)
	same(t, "outcome", w.result().Outcome, job.Stopped)
	same(t, "token", w.must(protocol.Result).Token, second)
	w.step(protocol.Message{Kind: protocol.ResultAck, From: zone, Token: second, Job: "j", Body: &protocol.Acknowledgement{}})
	w.recorded(protocol.ResultSettled, protocol.LeaseGone) // there are no directories to settle
	w.never(protocol.Settle)
}

func TestStop(t *testing.T) {
	stop := func(t job.Token) protocol.Message {
		return protocol.Message{Kind: protocol.Stop, From: zone, Token: t, Body: &protocol.Halt{Text: "cancelled"}}
	}
	t.Run("before the redeem", func(t *testing.T) {
		w := booted(t)
		w.step(ask(1, "a", 0, time.Minute))
		g := w.must(protocol.Granted)
		w.step(stop(g.Token))
		w.step(redeem(g))
		w.must(protocol.RedeemRefused)
	})
	t.Run("before the start", func(t *testing.T) {
		w := booted(t)
		token := w.lease(1, "a", time.Minute, 2*time.Minute)
		w.step(stop(token))
		same(t, "detail", w.result().Detail, "cancelled")
		w.never(protocol.Stop)
		w.wait(time.Minute)
		w.never(protocol.Start)
	})
	t.Run("while it starts", func(t *testing.T) {
		w := booted(t)
		token := w.lease(1, "a", 0, time.Minute)
		w.step(stop(token))
		w.never(protocol.Stop)
		w.step(protocol.Message{Kind: protocol.Started, From: executor, Token: token, Body: &protocol.Beginning{}})
		same(t, "cause", w.must(protocol.Stop).Body.(*protocol.Halt).Text, "cancelled")
	})
	t.Run("running", func(t *testing.T) {
		w := booted(t)
		token := w.running(1, "a", 0, time.Minute)
		w.step(stop(token))
		w.must(protocol.Stop)
		w.recorded()
		w.wait(time.Second)
		w.must(protocol.Stop)
		w.step(exited(token, job.Stopped, 5))
		w.recorded(protocol.SubjobEnded)
	})
}

func TestExtend(t *testing.T) {
	extend := func(id uint64, token job.Token, to int64, end time.Duration) protocol.Message {
		return protocol.Message{Kind: protocol.Extend, From: zone, Body: &protocol.Extension{Ask: id, Slice: "a",
			Range: job.Range{From: 0, To: to}, End: at(end)}, Token: token, Job: "j"}
	}
	w := booted(t)
	token := w.running(1, "a", 0, time.Minute)
	w.lease(2, "a", 3*time.Minute, 4*time.Minute)
	w.step(extend(3, token, 200, 2*time.Minute))
	w.recorded(protocol.LeaseExtended)
	same(t, "deadline", w.must(protocol.Deadline).Body.(*protocol.Shift).End, at(2*time.Minute))
	same(t, "extended to", w.must(protocol.Extended).Body.(*protocol.Extension).End, at(2*time.Minute))
	w.step(extend(3, token, 200, 2*time.Minute))
	w.recorded()
	w.must(protocol.Extended)
	for why, m := range map[string]protocol.Message{
		"lease":      extend(4, token, 300, 4*time.Minute),
		"earlier":    extend(5, token, 200, time.Minute),
		"go on from": extend(6, token, 100, 150*time.Second),
		"no running": extend(7, job.Token{Epoch: 1, Seq: 99}, 300, 150*time.Second),
	} {
		w.step(m)
		w.recorded()
		if text := w.must(protocol.Refused).Body.(*protocol.Refusal).Text; !strings.Contains(text, why) {
			t.Errorf("refused because %q, want something with %q", text, why)
		}
	}
}

func TestLeasesThatAreFixedAreNotExtended(t *testing.T) {
	w := newWorld(t)
	w.cfg.Fixed = true
	w.restart()
	w.inventory()
	token := w.running(1, "a", 0, time.Minute)
	w.step(protocol.Message{Kind: protocol.Extend, From: zone, Body: &protocol.Extension{Ask: 3, Slice: "a",
		Range: job.Range{From: 0, To: 200}, End: at(2 * time.Minute)}, Token: token, Job: "j"})
	w.recorded()
	if text := w.must(protocol.Refused).Body.(*protocol.Refusal).Text; !strings.Contains(text, "not extended") {
		t.Errorf("refused because %q", text)
	}
}

func TestAGangHoldsAllItsSlices(t *testing.T) {
	w := booted(t)
	m := ask(1, "a", 0, quantity.Never.Sub(0))
	// no walltime: nothing is sold behind it
	m.Body.(*protocol.Asking).Also, m.Body.(*protocol.Asking).End = []job.SliceID{"b"}, quantity.Never
	w.step(m)
	w.step(redeem(w.must(protocol.Granted)))
	if start := w.must(protocol.Start); !slices.Equal(start.Body.(*protocol.Work).Also, m.Body.(*protocol.Asking).Also) {
		t.Errorf("start also on %v", start.Body.(*protocol.Work).Also)
	}
	for _, s := range w.n.Slices(w.now) {
		if len(s.Reservations) != 1 || s.Reservations[0].End != quantity.Never {
			t.Errorf("%s is reserved %v", s.Slice.ID, s.Reservations)
		}
	}
	w.step(ask(2, "b", time.Minute, 2*time.Minute))
	w.must(protocol.Refused)
}

// TestARedeemAfterTheStartSaysThatItRuns: the zone asks again because it lost the answers, or its memory.
func TestARedeemAfterTheStartSaysThatItRuns(t *testing.T) {
	w := booted(t)
	w.step(ask(1, "a", 0, time.Minute))
	g := w.must(protocol.Granted)
	w.step(redeem(g))
	w.step(protocol.Message{Kind: protocol.Started, From: executor, Token: g.Token, Body: &protocol.Beginning{At: at(time.Second)}})
	w.step(redeem(g))
	w.must(protocol.Leased)
	same(t, "running since", w.must(protocol.Running).Body.(*protocol.Beginning).At, at(time.Second))
}

// TestARefusedGangSeesAllItsSlices: the old view may have been that of any of them.
func TestARefusedGangSeesAllItsSlices(t *testing.T) {
	w := booted(t)
	w.lease(1, "b", 0, time.Minute)
	gang := ask(2, "a", 0, time.Minute)
	gang.Body.(*protocol.Asking).Also = []job.SliceID{"b"}
	w.step(gang)
	w.must(protocol.Refused)
	same(t, "first gap of a", w.gaps("a")[0].Start, w.now)
	same(t, "first gap of b", w.gaps("b")[0].Start, at(time.Minute))
}
