package market

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/policy/fair"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestWhoIsInAnotherQueueIsRankedThere: a policy that has an order within each queue finds a job in the queue that it is in now, and in no
// other, although it answers every window as before. Only its owner knows whether a job ever changes its queue.
func TestWhoIsInAnotherQueueIsRankedThere(t *testing.T) {
	now := quantity.Instant(1e15)
	w := newFakeWorld(FloorConfig{Policy: fair.Policy{}, Horizon: time.Hour, MinWindow: time.Second, Retry: time.Second}, false)
	w.offer("s", 10, 1000, protocol.Gap{Start: now, End: quantity.Never})
	for range 2 {
		s := benchSpec(t, 1)
		s.Queue = "q"
		w.submit(fakeJob{spec: s, submitted: now.Add(-time.Hour)})
	}
	w.f.refreshIndex(now)
	moves := w.jobs[1]
	for _, queue := range []string{"qq", "q", "qq"} {
		spec := *moves.Spec()
		spec.Queue = queue
		moves.Demand.(*fakeJob).spec = &spec
		w.f.Changed(moves)
		w.f.refreshIndex(now)
		for name, g := range w.f.byQueue {
			found := false
			for j := range g.rankings[0].All() {
				found = found || j == moves
			}
			if found != (name == queue) {
				t.Errorf("it is in queue %q, and ranked in %q: %v", queue, name, found)
			}
		}
	}
}
