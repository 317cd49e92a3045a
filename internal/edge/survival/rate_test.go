package survival

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestRateIsOfTheLastTwoSeconds: whatever came before, two seconds of even growth are said as they are, however often it is asked.
func TestRateIsOfTheLastTwoSeconds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r Rate
		now, value := time.Duration(0), int64(0)
		for range rapid.IntRange(0, 40).Draw(t, "before") {
			now += time.Duration(rapid.IntRange(1, 500).Draw(t, "later ms")) * time.Millisecond
			value = int64(rapid.IntRange(0, 1<<20).Draw(t, "value"))
			r.Add(now, value)
		}
		perMilli := int64(rapid.IntRange(-1000, 1000).Draw(t, "growth"))
		step := rapid.SampledFrom([]int{1, 7, 50, 200}).Draw(t, "step ms")
		var got quantity.Amount
		for passed := 0; passed < 3000; passed += step {
			now += time.Duration(step) * time.Millisecond
			value += perMilli * int64(step)
			got = r.Add(now, value)
		}
		if want := quantity.Amount(1000 * perMilli); got < want-1 || got > want+1 {
			t.Fatalf("%d in a second, want %d", got, want)
		}
	})
}

// TestAStartIsNoTrend: what has come in a moment counts as if it had come in two seconds.
func TestAStartIsNoTrend(t *testing.T) {
	var r Rate
	if got := r.Add(time.Second, 1000); got != 0 {
		t.Errorf("the first value grows by %d", got)
	}
	if got := r.Add(time.Second+10*time.Millisecond, 3000); got != 1000 {
		t.Errorf("2000 more in 10 ms are %d in a second, want 1000", got)
	}
	if got := r.Add(time.Minute, 3000); got > 40 {
		t.Errorf("after a minute without a word it grows by %d", got)
	}
}
