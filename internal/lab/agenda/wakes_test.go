package agenda

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestWakesIndexedAndPlainAgree: the heap of wake-ups is nothing but a fast way to look at everybody's.
func TestWakesIndexedAndPlainAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var w Wakes
		plain := make([]quantity.Instant, rapid.IntRange(1, 30).Draw(rt, "parties"))
		for p := range plain {
			plain[p] = quantity.Never
			w.Add()
		}
		now := quantity.Instant(0)
		for range rapid.IntRange(1, 200).Draw(rt, "moves") {
			switch rapid.IntRange(0, 3).Draw(rt, "move") {
			case 0:
				now += quantity.Instant(rapid.IntRange(0, 8).Draw(rt, "pass"))
				var due []int
				for p, at := range plain {
					if at <= now {
						due, plain[p] = append(due, p), quantity.Never
					}
				}
				if got := w.Due(now); !slices.Equal(got, due) {
					rt.Fatalf("due at %d are %v, want %v", now, got, due)
				}
			default:
				p := rapid.IntRange(0, len(plain)-1).Draw(rt, "party")
				plain[p] = rapid.SampledFrom([]quantity.Instant{now, now + 3, now + 5, now + 20, quantity.Never}).Draw(rt, "at")
				w.Set(p, plain[p])
			}
			if got, want := w.Next(), slices.Min(plain); got != want || !slices.Equal(w.at, plain) {
				rt.Fatalf("next is %d, want %d; by party %v, want %v", got, want, w.at, plain)
			}
		}
	})
}
