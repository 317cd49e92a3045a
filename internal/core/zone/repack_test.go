package zone_test

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestRepackUsesTimeThatWasFreedEarly: a chain is sold ahead, and its first piece ends in a quarter of its time. What is
// sold for good waits for its time; with withdrawal the next pieces begin earlier; and nothing that runs is ever stopped.
func TestRepackUsesTimeThatWasFreedEarly(t *testing.T) {
	ended := map[auction.Repack]quantity.Instant{}
	for _, mode := range []auction.Repack{auction.Rolling, auction.Withdraw, auction.Never} {
		w := newMarket(t, auction.Config{Repack: mode, Freeze: 5 * time.Second}, 512)
		w.run = func(m *protocol.Message) (time.Duration, job.Result) {
			return m.Body.(*protocol.Work).Plan.Wall / 4, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
		}
		w.submit(items(t, "a", 400, 100, 4))
		for w.now < quantity.Instant(3600e9) && len(w.closed) == 0 {
			w.tick()
			for _, r := range w.slices[0].runs {
				if r.ended && r.result.Outcome == job.Stopped && r.m.Body.(*protocol.Work).Start < w.now {
					t.Fatalf("mode %d: %v was stopped after it had begun", mode, r.m.Token)
				}
			}
		}
		finished(t, w, "a")
		ended[mode] = w.now
		if n := w.z.Negotiation().Withdrawn; mode == auction.Withdraw == (n == 0) {
			t.Errorf("mode %d: %d were withdrawn", mode, n)
		}
	}
	if ended[auction.Withdraw] >= ended[auction.Never] {
		t.Errorf("with withdrawal it ended at %d, without at %d", ended[auction.Withdraw], ended[auction.Never])
	}
}

// TestALostWithdrawalIsRepeated: after a second, though nothing else happens.
func TestALostWithdrawalIsRepeated(t *testing.T) {
	w := newMarket(t, auction.Config{Repack: auction.Withdraw, Freeze: 5 * time.Second}, 512)
	w.run = func(m *protocol.Message) (time.Duration, job.Result) {
		return m.Body.(*protocol.Work).Plan.Wall / 4, job.Result{Outcome: job.Done, Progress: m.Body.(*protocol.Work).Range.To}
	}
	var withdrawn []quantity.Instant
	w.lose = func(m *protocol.Message) bool {
		if m.Kind == protocol.Stop && m.Body.(*protocol.Halt).Unstarted {
			withdrawn = append(withdrawn, w.now)
			return withdrawn[0] == w.now
		}
		return false
	}
	w.submit(items(t, "a", 400, 100, 4))
	w.until(time.Hour)
	finished(t, w, "a")
	i := slices.IndexFunc(withdrawn, func(at quantity.Instant) bool { return at != withdrawn[0] })
	if i < 0 || withdrawn[i].Sub(withdrawn[0]) > 1100*time.Millisecond {
		t.Errorf("withdrawn at %v", withdrawn)
	}
}
