package auction

import (
	"math/rand/v2"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/markettest"
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
		w := newWorld(fifo.Policy{}, hostileConfig(r))
		if why := markettest.Siege(t, &markettest.Market{
			Seller: w.seller, Relay: w.parts.Relay, Submit: w.submit, Offer: w.offer,
			Jobs: func() []*index.Job { return w.jobs }, Slices: func() []*window.Slice { return w.slices },
			Run: func(now quantity.Instant) []protocol.Message {
				w.run(now)
				return w.out.Effects
			},
		}, func(low, high int) int { return low + r.IntN(high-low+1) }); why != "" {
			t.Fatalf("seed %d: %s", seed, why)
		}
		sold, denied = sold+len(w.seller.Sold), denied+w.parts.Stats.Denied
	}
	if sold < 1000 || denied < 1000 {
		t.Errorf("%d pieces were sold and %d variants denied: the test tests little", sold, denied)
	}
}

// hostileConfig is a market of any kind.
func hostileConfig(r *rand.Rand) Config {
	c := Config{PerTime: r.IntN(2) == 0, Repack: Repack(r.IntN(3)), Payment: Payment(r.IntN(3)),
		Freeze: time.Duration(r.IntN(3)) * time.Minute}
	if c.Payment != VCG {
		c.Exclusive, c.Joint = r.IntN(4) == 0, r.IntN(4) == 0
	}
	return c.WithDefaults()
}
