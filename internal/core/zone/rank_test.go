package zone_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestWhatIsSoldSaysWhatItIsWorth: to the node, beside its range and its time.
func TestWhatIsSoldSaysWhatItIsWorth(t *testing.T) {
	w := newMarket(t, auction.Config{}, 512)
	w.step(protocol.Message{Kind: protocol.QueueChanged, Body: &protocol.Queue{Name: "default", Weight: 5}})
	s := items(t, "a", 60, 100, 1)
	s.Priority = 4
	w.submit(s)
	told := 0
	w.lose = func(m *protocol.Message) bool {
		if m.Kind == protocol.Redeem {
			told++
			if got, want := m.Body.(*protocol.Work).Rank, (protocol.Rank{Priority: 4, Value: 2, Yields: true}); got != want {
				t.Errorf("the node is told of rank %+v, want %+v", got, want)
			}
		}
		return false
	}
	w.until(30 * time.Minute)
	finished(t, w, "a")
	if told == 0 {
		t.Error("nothing was sold")
	}
}
