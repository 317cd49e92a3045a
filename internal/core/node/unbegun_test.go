package node

import (
	"testing"

	"sluice.dev/sluice/internal/core/protocol"
)

// TestWhatHasBegunIsNotWithdrawn: its home wanted it gone only if it had not begun.
func TestWhatHasBegunIsNotWithdrawn(t *testing.T) {
	w := booted(t)
	token := w.ranked(1, "a", protocol.Rank{}, 0)
	l := w.n.lease(token)
	w.step(protocol.Message{Kind: protocol.Stop, From: l.home(), Token: token, Job: l.job,
		Body: &protocol.Halt{Unbegun: true, Text: "something better is known"}})
	w.never(protocol.Stop)
	same(t, "phase", l.phase, leaseRunning)
	same(t, "why", l.why, "")
}
