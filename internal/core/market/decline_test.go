package market

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestAWinnerThatDeclinesIsPassedOver: what a job may use changes between its signal and its cut, and nobody has said so. It is
// passed over, the next in order is asked, and it is asked again after a pause.
func TestAWinnerThatDeclinesIsPassedOver(t *testing.T) {
	for _, volatile := range []bool{false, true} {
		w := newFakeWorld(FloorConfig{Policy: fifo.Policy{}, Horizon: 10 * time.Minute, MinWindow: time.Second, Retry: time.Second})
		now := quantity.Instant(1e12)
		w.offer("s", 10, 1000, protocol.Gap{Start: now.Add(time.Minute), End: now.Add(5 * time.Minute)})
		for i, name := range []string{"first", "second"} {
			s := markettest.Spec(t, 1)
			s.Name = job.ID(name)
			w.submit(markettest.Job{Of: s, Came: now.Add(time.Duration(i)), Moves: volatile && i == 1})
		}
		w.step(now)
		first := w.jobs[0]
		first.Demand.(*markettest.Job).Learned.MemoryScale = 1 << 20 // no slice is large enough for it now
		w.step(now.Add(time.Minute))
		if len(w.sale.Sold) != 1 || !strings.Contains(w.sale.Sold[0], " second ") {
			t.Fatalf("the first in order declines, and sold was %q", w.sale.Sold)
		}
		if why := first.Ineligible(now.Add(time.Minute)); why != explain.Aside {
			t.Errorf("the job that has declined is ineligible for %d, want %d", why, explain.Aside)
		}
		if why := first.Ineligible(now.Add(time.Minute + time.Second)); why != explain.Eligible {
			t.Errorf("a second later it is still ineligible for %d", why)
		}
	}
}
