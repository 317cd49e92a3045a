package node

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// leaves tells the node when its machine is gone for good; 0: nobody knows.
func (w *world) leaves(until quantity.Instant, found ...protocol.Found) {
	w.step(protocol.Message{Kind: protocol.Inventory, From: executor,
		Body: &protocol.Stock{Slices: []protocol.Slice{device("a"), device("b")}, Found: found, Until: until}})
}

// TestAMachineThatLeavesIsClosedBefore: windows end a hand-over before it is gone, what runs longer is truncated, what has not begun is
// withdrawn; a restart, an occupant that goes and other slices change nothing of it, and it may be said otherwise.
func TestAMachineThatLeavesIsClosedBefore(t *testing.T) {
	w := booted(t)
	long := w.running(1, "a", 0, time.Hour)
	w.lease(2, "b", 5*time.Minute, 20*time.Minute)
	w.leaves(at(10 * time.Minute))
	w.recorded(protocol.Truncated, protocol.SubjobEnded)
	closes := at(10*time.Minute - 10*time.Second)
	same(t, "truncated to", w.n.leases.Of(long).Terms().End, closes)
	same(t, "why", w.n.leases.Of(long).Terms().Text, "time taken (reclaim) by the machine, which leaves at 1970-01-12T13:56:40.000Z")
	last := func() quantity.Instant {
		t.Helper()
		gaps := w.gaps("b")
		return gaps[len(gaps)-1].End
	}
	same(t, "gaps end", last(), closes)
	w.step(ask(3, "b", 9*time.Minute, 11*time.Minute))
	if why := w.must(protocol.Refused).Body.(*protocol.Refusal).Text; !strings.Contains(why, "for the machine, which leaves at") {
		t.Errorf("refused since %s", why)
	}
	w.step(protocol.Message{Kind: protocol.Foreign, From: executor, Body: &protocol.Intrusion{Slice: "b", Present: true}})
	w.step(protocol.Message{Kind: protocol.Foreign, From: executor, Body: &protocol.Intrusion{Slice: "b"}})
	same(t, "gaps end after an occupant", last(), closes)
	w.restart()
	w.leaves(at(10*time.Minute), protocol.Found{Token: long, Job: "j", Slice: "a", Alive: true})
	same(t, "gaps end after a restart", last(), closes)
	w.leaves(at(20 * time.Minute))
	same(t, "gaps end later", last(), at(20*time.Minute-10*time.Second))
	w.wait(time.Minute)
	w.leaves(w.now.Add(5 * time.Second)) // by now it should be closed
	same(t, "it has a moment", w.n.leases.Of(long).Terms().End, w.now.Add(w.n.cfg.TruncateGrace))
	same(t, "gaps", len(w.gaps("b")), 0)
	w.leaves(0)
	same(t, "gaps end", last(), quantity.Never)
	same(t, "it remains", w.n.Remaining(), len(w.n.leases.Ordered()))
}

// TestAMachineThatIsAboutToLeave: nothing more is sold, what has not begun is withdrawn, and what runs has a moment; said once more it has
// no other.
func TestAMachineThatIsAboutToLeave(t *testing.T) {
	w := booted(t)
	long := w.running(1, "a", 0, time.Hour)
	w.lease(2, "b", time.Minute, 2*time.Minute)
	until := at(10 * time.Minute)
	for k := range 2 {
		w.step(protocol.Message{Kind: protocol.Inventory, From: executor,
			Body: &protocol.Stock{Slices: []protocol.Slice{device("a"), device("b")}, Until: until, Leaves: true}})
		if k == 0 {
			w.recorded(protocol.Truncated, protocol.SubjobEnded)
			same(t, "gaps", len(w.gaps("a"))+len(w.gaps("b")), 0)
		} else {
			w.recorded()
		}
		same(t, "truncated to", w.n.leases.Of(long).Terms().End, t0.Add(w.n.cfg.TruncateGrace))
		w.wait(time.Second)
	}
}

// TestWhatIsHandedOver: a subjob counts until its home has acknowledged its result and its directories are settled.
func TestWhatIsHandedOver(t *testing.T) {
	w := booted(t)
	same(t, "at first", w.n.Remaining(), 0)
	token := w.running(1, "a", 0, time.Hour)
	same(t, "it runs", w.n.Remaining(), 1)
	w.step(protocol.Message{Kind: protocol.Exited, From: executor, Token: token,
		Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.Done, Progress: 10, Start: t0, End: w.now}}})
	same(t, "it has ended", w.n.Remaining(), 1)
	w.step(protocol.Message{Kind: protocol.ResultAck, From: zone, Token: token, Job: "j", Body: &protocol.Acknowledgement{}})
	same(t, "it is acknowledged", w.n.Remaining(), 1)
	w.step(protocol.Message{Kind: protocol.Settled, From: executor, Token: token})
	same(t, "it is settled", w.n.Remaining(), 0)
}
