package zone_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestBidsAreShown: a job's history says what each of its subjobs was won with, while it runs and afterwards, and its trust
// counts them.
func TestBidsAreShown(t *testing.T) {
	w := newMarket(t, auction.Config{}, 512)
	s := steps(t, "train", 600, 10, 300)
	bid := honest(s)
	w.attend(s, func(m *protocol.Message) []protocol.Message { return bid(m) })
	w.until(time.Minute)
	j, _ := w.z.Job(w.now, "train")
	if len(j.History) == 0 || !j.History[0].Running || j.History[0].Bid == nil || j.Trust.Seen != 0 || j.Trust.Believed == 0 {
		t.Fatalf("after a minute: %+v", j)
	}
	w.until(2 * time.Hour)
	finished(t, w, "train")
	j, _ = w.z.Job(w.now, "train")
	for _, sub := range j.History {
		if sub.Bid == nil || sub.Bid.Weight <= 0 {
			t.Errorf("%v: won with %+v", sub.Token, sub.Bid)
		}
	}
	if j.Trust.Seen != int64(j.Subjobs+j.Lost) || j.Trust.Believed == 0 {
		t.Errorf("%d subjobs of %d were held against their bids: %+v", j.Trust.Seen, j.Subjobs+j.Lost, j.Trust)
	}
	if q := w.z.Queues(w.now); len(q) != 1 || q[0].Trust.Seen != j.Trust.Seen || q[0].Credits <= 0 {
		t.Errorf("queues: %+v", q)
	}
}
