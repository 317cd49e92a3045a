package node

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestAnOldWordLeavesNothingBehind: neither that there is no room for who had to leave, nor that somebody had to, nor how much was used.
func TestAnOldWordLeavesNothingBehind(t *testing.T) {
	w := booted(t)
	low, high := w.ranked(1, "a", protocol.Rank{Yields: true}, 0), w.ranked(2, "b", protocol.Rank{Priority: 1}, 0)
	press := func(a, b quantity.Amount) { // of a host of 100 bytes; each of the two was to have 10
		t.Helper()
		w.step(protocol.Message{Kind: protocol.Pressure, From: executor, Body: &protocol.Strain{
			Capacity: 100, Used: a + b, Uses: []protocol.Use{{Token: low, Resident: a}, {Token: high, Resident: b}},
		}})
	}
	press(50, 45)
	same(t, "asked to yield", w.must(protocol.Stop).Token, low)
	w.step(protocol.Message{Kind: protocol.Exited, From: executor, Token: low,
		Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.Yielded, Progress: 40, Checkpoint: true}}})
	press(0, 83)
	w.step(ask(3, "a", 0, time.Minute))
	w.must(protocol.Refused)
	w.pass(30 * time.Second)
	same(t, "share that is used", w.n.pressure.Share(), 0)
	w.step(ask(4, "a", 30*time.Second, time.Minute))
	w.must(protocol.Granted)
	press(0, 83)
	w.step(ask(5, "a", time.Minute, 2*time.Minute))
	w.must(protocol.Granted)
}

// TestRoomIsKeptForWhoHadToLeaveAnotherNode: its home may have it come to any node of the machine.
func TestRoomIsKeptForWhoHadToLeaveAnotherNode(t *testing.T) {
	m := newShared(t, 2)
	low, high := m[1].ranked(1, "a", protocol.Rank{Yields: true}, 0), m[0].ranked(2, "a", protocol.Rank{Priority: 1}, 0)
	if done := m.press(protocol.Strain{Capacity: 100, Used: 95, Uses: []protocol.Use{{Token: low, Resident: 20},
		{Token: high, Resident: 10}}}); len(done) != 1 || done[0].Token != low {
		t.Fatalf("done are %+v", done)
	}
	m[1].step(protocol.Message{Kind: protocol.Exited, From: executor, Token: low,
		Body: &protocol.Conclusion{Result: &job.Result{Outcome: job.Yielded, Progress: 40, Checkpoint: true}}})
	m.press(protocol.Strain{Capacity: 100, Used: 83, Uses: []protocol.Use{{Token: high, Resident: 10}}})
	for i, w := range m {
		if w.step(ask(uint64(3+i), "b", 0, 10*time.Minute)); w.sent(protocol.Granted) != nil {
			t.Errorf("node %d grants what is kept", i+1)
		}
	}
}

// TestWhatANeighbourHadOutsideIsForgottenToo: by an old word it does not fit, and nothing waits behind it.
func TestWhatANeighbourHadOutsideIsForgottenToo(t *testing.T) {
	m := newShared(t, 2)
	low, high := m[0].ranked(1, "a", protocol.Rank{}, 0), m[1].ranked(2, "a", protocol.Rank{Priority: 1}, 0)
	s := protocol.Strain{Capacity: 100 * gib, Used: 93 * gib, Room: 50 * gib, Uses: []protocol.Use{{Token: high, Resident: 5 * gib},
		{Token: low, Resident: 5 * gib}}}
	if done := m.press(s); len(done) != 2 {
		t.Fatalf("done are %+v", done)
	}
	m[0].still(low, true)
	m[1].still(high, true)
	s.Used, s.Uses = 86*gib, []protocol.Use{{Token: high, Parked: 10 * gib}, {Token: low, Parked: gib}}
	m.press(s) // and nothing more
	m.pass(30 * time.Second)
	if l := m[0].n.leases.Of(low); l.Phase() != leases.Resuming {
		t.Errorf("its time is over, there is room, and it is %v", l.Phase())
	}
}
