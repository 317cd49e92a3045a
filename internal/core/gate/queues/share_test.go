package queues

import (
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/protocol"
)

// TestSharesAddUpToTheCap, and none falls when the cap rises: while some zones have heard of a new cap and others have not, their
// jobs together may hold no more than the larger of the two.
func TestSharesAddUpToTheCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(t, "zones")
		small := rapid.IntRange(1, 40).Draw(t, "cap")
		large := small + rapid.IntRange(0, 40).Draw(t, "more")
		sum, either := 0, 0
		for i := range n {
			was, is := Share(small, i, n), Share(large, i, n)
			if was == 0 || is == 0 {
				t.Fatalf("zone %d of %d has no cap, of %d and of %d", i, n, small, large)
			}
			was, is = max(0, was), max(0, is)
			if is < was {
				t.Errorf("zone %d of %d: %d of a cap of %d, %d of one of %d", i, n, was, small, is, large)
			}
			sum += was
			either += max(was, is)
		}
		if sum != small || either != large {
			t.Errorf("over %d zones a cap of %d adds up to %d, and with one of %d half told to %d", n, small, sum, large, either)
		}
	})
	if Share(0, 3, 7) != 0 || Share(2, 2, 7) != protocol.NoShare {
		t.Errorf("no cap is %d, a share of none %d", Share(0, 3, 7), Share(2, 2, 7))
	}
}
