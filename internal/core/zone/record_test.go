package zone_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestANewJobBeginsWithItsQueuesRecord: the first bid of a job is believed as far as the jobs of its queue are. A new name is
// no way out of a bad record.
func TestANewJobBeginsWithItsQueuesRecord(t *testing.T) {
	first := func(c auction.Config, queue string) int64 {
		w := newMarket(t, c, 512)
		boast := func(name, queue string) {
			s := steps(t, name, 600, 10, 300)
			s.Queue = queue
			bid := honest(s)
			w.attend(s, func(m *protocol.Message) []protocol.Message {
				out := bid(m)
				for i := range out {
					for j := range out[i].Body.(*protocol.Proposal).Variants {
						out[i].Body.(*protocol.Proposal).Variants[j].Score = 1_000_000
					}
				}
				return out
			})
		}
		boast("liar", "liars")
		w.until(2 * time.Hour)
		finished(t, w, "liar")
		from := len(w.facts)
		boast("new", queue)
		w.until(time.Minute)
		for _, f := range w.facts[from:] {
			if s, ok := f.Body.(*protocol.Sale); ok {
				return s.Bid.Calibrated
			}
		}
		t.Fatal("nothing was sold")
		return 0
	}
	if got := first(auction.Config{}, "liars"); got > 950_000 {
		t.Errorf("of a million %d is believed of the next job of a queue that lied", got)
	}
	if got := first(auction.Config{}, "others"); got != 1_000_000 {
		t.Errorf("of a million %d is believed of the first job of a queue", got)
	}
	if got := first(auction.Config{Trusting: true}, "liars"); got != 1_000_000 {
		t.Errorf("of a million %d is believed where all is", got)
	}
}
