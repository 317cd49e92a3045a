package node

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
)

// TestALeaseKeepsItsRank: a node that comes back from a crash knows what each lease is worth without asking anybody, and so does what it
// starts.
func TestALeaseKeepsItsRank(t *testing.T) {
	want := protocol.Rank{Priority: 7, Class: protocol.Fleeting, Value: 3}
	w := booted(t)
	w.step(ask(1, "a", 0, time.Minute))
	m := redeem(w.must(protocol.Granted))
	m.Body.(*protocol.Work).Rank = want
	w.step(m)
	same(t, "rank recorded", w.last[0].Body.(*protocol.Terms).Rank, want)
	same(t, "rank started with", w.must(protocol.Start).Body.(*protocol.Work).Rank, want)
	w.restart()
	same(t, "rank after a restart", w.n.leases.Of(m.Token).Terms().Rank, want)
}
