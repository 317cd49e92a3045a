package node

import (
	"testing"

	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestWhatHasBegunIsNotWithdrawn: its home wanted it gone only if it had not begun.
func TestWhatHasBegunIsNotWithdrawn(t *testing.T) {
	w := booted(t)
	token := w.ranked(1, "a", protocol.Rank{}, 0)
	l := w.n.leases.Of(token)
	w.step(protocol.Message{Kind: protocol.Stop, From: zone, Token: token, Job: l.Job(),
		Body: &protocol.Halt{Unstarted: true, Text: "something better is known"}})
	w.never(protocol.Stop)
	same(t, "phase", l.Phase(), leases.Running)
	same(t, "why", l.Why(), "")
}
