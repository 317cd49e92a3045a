package node

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
)

// TestAHomeThatCanNotWaitIsObeyed: what was told to end keeps its grace until its home says that it has none, and is told so at once and
// until it is gone; what stands still, or was about to go on, as well. That it wants it gone is no news afterwards.
func TestAHomeThatCanNotWaitIsObeyed(t *testing.T) {
	for _, from := range []phase{leaseRunning, leaseSuspending, leaseSuspended, leaseResuming} {
		w := booted(t)
		token := w.ranked(1, "a", protocol.Rank{}, 0)
		l := w.n.lease(token)
		l.phase = from
		stop := func(now bool) *protocol.Message {
			halt := &protocol.Halt{Text: "cancelled", Now: now}
			w.step(protocol.Message{Kind: protocol.Stop, From: l.home(), Token: token, Job: l.job, Body: halt})
			return w.sent(protocol.Stop)
		}
		if m := stop(false); m == nil || m.To != executor || m.Body.(*protocol.Halt).Now {
			t.Fatalf("%v: the executor hears %+v", from, m)
		}
		if stop(false) != nil {
			t.Errorf("%v: the same word again is passed on", from)
		}
		if m := stop(true); m == nil || !m.Body.(*protocol.Halt).Now || m.Body.(*protocol.Halt).Text != "cancelled" {
			t.Errorf("%v: without grace the executor hears %+v", from, m)
		}
		if stop(true) != nil || stop(false) != nil {
			t.Errorf("%v: what is known is passed on", from)
		}
		w.wait(2 * time.Second)
		if m := w.sent(protocol.Stop); m == nil || !m.Body.(*protocol.Halt).Now {
			t.Errorf("%v: it is repeated as %+v", from, m)
		}
	}
}
