package zone_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestAGangIsNotSoldByTheSlice: a job of several slices answers no window, whatever its queue: the plan places it whole.
func TestAGangIsNotSoldByTheSlice(t *testing.T) {
	for _, queue := range []string{"default", "capped"} {
		w := newMarket(t, market.Config{}, 512)
		w.step(protocol.Message{Kind: protocol.QueueChanged, Queue: &protocol.Queue{Name: "capped", Weight: 1, Cap: 4}})
		s := rigid(t, "pair", 30*time.Second, 400, 2)
		s.Queue = queue
		w.submit(s)
		w.until(2 * time.Minute)
		for _, f := range w.facts {
			if f.Kind == protocol.Claimed {
				t.Errorf("queue %s: %s is sold on %s and %v, and needs two slices", queue, f.Job, f.Slice, f.Also)
			}
		}
	}
}
