package interest

import (
	"math/rand/v2"
	"testing"

	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/policy/fifo"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestAgentsGetNoMoreThanIsForSale: whatever they answer, when, how often and in whose name, no unit and no time is sold twice, every piece
// is safe by the scheduler's own numbers, and nothing panics.
func TestAgentsGetNoMoreThanIsForSale(t *testing.T) {
	sold, denied := 0, int64(0)
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(fifo.Policy{}, starvation.Limit{}, false)
		if why := markettest.Siege(t, &markettest.Market{
			Seller: w.seller, Relay: w.x.relay, Submit: w.submit, Offer: w.offer,
			Jobs: func() []*index.Job { return w.jobs }, Slices: func() []*window.Slice { return w.slices },
			Run: func(now quantity.Instant) []protocol.Message {
				w.run(now)
				return w.out.Effects
			},
		}, func(low, high int) int { return low + r.IntN(high-low+1) }); why != "" {
			t.Fatalf("seed %d: %s", seed, why)
		}
		sold, denied = sold+len(w.seller.Sold), denied+w.x.stats.Denied
	}
	if sold < 1000 || denied < 1000 {
		t.Errorf("%d pieces were sold and %d variants denied: the test tests little", sold, denied)
	}
}
