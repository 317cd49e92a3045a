package foresight

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestTheRangeHoldsFourOfFive, whatever real waits are in proportion to the plain estimate, and though that may change: over a
// thousand of them 75 to 85% are in the range.
func TestTheRangeHoldsFourOfFive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seed := rapid.Uint64().Draw(rt, "seed")
		draw := func(n int64) int64 {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int64(seed>>33) % n
		}
		scale := rapid.Int64Range(1, 100).Draw(rt, "real waits, in tenths of the estimate")
		drift := rapid.SampledFrom([]int64{0, 1, 5}).Draw(rt, "drift")
		var e misses
		in := 0
		for i := range 1000 {
			f := Told{wait: time.Duration(1+draw(1000)) * time.Second}
			f.low, f.high = e.between(f.wait, 0)
			if f.low > f.high || f.low < 0 {
				rt.Fatalf("a range from %v to %v", f.low, f.high)
			}
			tenths := scale + draw(20*scale) + drift*int64(i)*scale/1000
			real := f.wait * time.Duration(tenths) / 10
			if f.low <= real && real <= f.high {
				in++
			}
			e.learn(&f, real)
		}
		if in < 750 || in > 850 {
			rt.Fatalf("%d of 1000 waits were in a range of 80%%", in)
		}
	})
}

// TestWhoHasWaitedLongIsTold: the longer a job has waited beyond what it was told, the later the range, and never in the past.
func TestWhoHasWaitedLongIsTold(t *testing.T) {
	var e misses
	for i := range 100 {
		e.learn(&Told{wait: time.Minute, high: time.Hour}, time.Duration(i)*2*time.Second)
	}
	last := time.Duration(0)
	for far := time.Duration(0); far < 10*time.Minute; far += 7 * time.Second {
		low, high := e.between(time.Minute, far)
		if low < far || high < low || high < last {
			t.Errorf("after %v: from %v to %v, before that to %v", far, low, high, last)
		}
		last = high
	}
}
