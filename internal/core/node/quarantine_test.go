package node

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/timeline"
)

func stuckNow(t job.Token) protocol.Message {
	return protocol.Message{Kind: protocol.Stuck, From: executor, Token: t,
		Body: &protocol.Reason{Text: "4000 processes remain after SIGKILL"}}
}

// remains says whether the node has just told a home that processes of a subjob are there.
func (w *world) remains(t job.Token) bool {
	m := w.sent(protocol.Report)
	return m != nil && m.Token == t && m.To == zone && m.Body.(*protocol.Observation).Remains
}

// TestAQuarantineEndsWithItsLastProcess: nobody has to lift it, whatever of it a restart falls between; until then its reason is said, and
// since when.
func TestAQuarantineEndsWithItsLastProcess(t *testing.T) {
	stuck := func(token job.Token) protocol.Found {
		return protocol.Found{Token: token, Job: "j", Slice: "a", Stuck: true}
	}
	for name, ends := range map[string]func(w *world, token job.Token){
		"in the same life": func(w *world, token job.Token) { w.step(exited(token, job.Stopped, 0)) },
		"after a restart": func(w *world, token job.Token) {
			w.restart()
			w.inventory(stuck(token))
			same(t, "state", w.n.Slices(w.now)[0].State, "quarantined")
			w.step(exited(token, job.Stopped, 0))
		},
		"during a restart": func(w *world, token job.Token) {
			w.restart()
			w.inventory(protocol.Found{Token: token, Job: "j", Slice: "a", Result: &job.Result{Outcome: job.Stopped}})
		},
		"with all that was known of it": func(w *world, _ job.Token) {
			w.restart()
			w.inventory()
		},
		"before the inventory comes": func(w *world, token job.Token) {
			w.restart()
			w.step(exited(token, job.Stopped, 0))
			w.inventory(stuck(token))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := booted(t)
			token := w.running(1, "a", 0, time.Minute)
			w.wait(59 * time.Second)
			w.step(stuckNow(token))
			w.recorded(protocol.Quarantined)
			a := w.n.Slices(w.now)[0]
			for _, want := range []string{token.String(), "job j", "4000 processes", "since " + timeline.Clock(w.now)} {
				if !strings.Contains(a.Reason, want) {
					t.Errorf("%s: %q lacks %q", a.State, a.Reason, want)
				}
			}
			ends(w, token)
			same(t, "state", w.n.Slices(w.now)[0].State, "idle")
			same(t, "ended", w.n.leases.Of(token).Ended(), true)
			w.step(ask(2, "a", 2*time.Minute, 3*time.Minute))
			w.must(protocol.Granted)
		})
	}
}

// TestSeveralReasonsForOneQuarantine: it ends with the last of them.
func TestSeveralReasonsForOneQuarantine(t *testing.T) {
	w := newWorld(t)
	first, second := job.Token{Epoch: 7, Seq: 3}, job.Token{Epoch: 7, Seq: 4}
	w.inventory(protocol.Found{Token: first, Job: "x", Slice: "a", Alive: true},
		protocol.Found{Token: second, Job: "y", Slice: "a", Stuck: true})
	w.step(exited(second, job.Lost, 0))
	same(t, "state", w.n.Slices(w.now)[0].State, "quarantined")
	w.step(exited(first, job.Lost, 0))
	same(t, "state", w.n.Slices(w.now)[0].State, "idle")
}

// TestAPersonMayLiftAQuarantineEarlier: what remains of a gang on other slices holds those until it is gone.
func TestAPersonMayLiftAQuarantineEarlier(t *testing.T) {
	w := booted(t)
	m := ask(1, "a", 0, time.Minute)
	m.Body.(*protocol.Asking).Also = []job.SliceID{"b"}
	w.step(m)
	g := w.must(protocol.Granted)
	m = redeem(g)
	m.Body.(*protocol.Work).Also = []job.SliceID{"b"}
	w.step(m)
	w.step(protocol.Message{Kind: protocol.Started, From: executor, Token: g.Token, Body: &protocol.Beginning{At: w.now}})
	w.step(stuckNow(g.Token))
	w.recorded(protocol.Quarantined, protocol.Quarantined)
	w.step(protocol.Message{Kind: protocol.Unquarantine, From: person, Body: &protocol.Clearance{Request: "1", Slice: "a"}})
	w.recorded(protocol.SubjobEnded, protocol.QuarantineLifted)
	same(t, "state of b", w.n.Slices(w.now)[1].State, "quarantined")
	n := New(w.cfg)
	for _, f := range capture.All(w.n) {
		n.Apply(f)
	}
	same(t, "digest of a snapshot", n.Digest(), w.n.Digest())
	w.step(exited(g.Token, job.Stopped, 0))
	w.recorded(protocol.QuarantineLifted)
}

// TestItsHomeIsToldThatASubjobIsNotGone: from a second after its lease's end, or as soon as it is stuck, and again each second until it is
// gone, through a restart too.
func TestItsHomeIsToldThatASubjobIsNotGone(t *testing.T) {
	w := booted(t)
	token := w.running(1, "a", 0, time.Minute)
	if w.wait(time.Minute); w.remains(token) {
		t.Error("it is said at the lease's end, when every subjob is about to end")
	}
	for range 8 { // longer than its home waits for a node that is silent
		if w.wait(time.Second); !w.remains(token) {
			t.Fatalf("at %v nothing is said: %v", w.now.Sub(at(0)), kinds(w.effects))
		}
	}
	w.must(protocol.Stop)
	if w.step(stuckNow(token)); !w.remains(token) {
		t.Error("nothing is said when it is stuck")
	}
	w.restart()
	w.inventory(protocol.Found{Token: token, Job: "j", Slice: "a", Stuck: true})
	if !w.remains(token) {
		t.Error("nothing is said after a restart")
	}
	for range 3 {
		if w.wait(time.Second); !w.remains(token) {
			t.Fatalf("after the restart nothing is said: %v", kinds(w.effects))
		}
	}
	w.step(exited(token, job.DeadlineKilled, 0))
	w.recorded(protocol.SubjobEnded, protocol.QuarantineLifted)
	for range 3 {
		if w.wait(time.Second); w.sent(protocol.Report) != nil {
			t.Error("it is said of what is gone")
		}
	}
}

// TestWhatIsStoppedAndDoesNotEndIsToldItsHome: long before its lease's end.
func TestWhatIsStoppedAndDoesNotEndIsToldItsHome(t *testing.T) {
	w := booted(t)
	token := w.running(1, "a", 0, time.Hour)
	w.step(protocol.Message{Kind: protocol.Stop, From: zone, Token: token, Body: &protocol.Halt{Text: "cancelled"}})
	if w.step(stuckNow(token)); !w.remains(token) {
		t.Errorf("nothing is said: %v", kinds(w.effects))
	}
}
