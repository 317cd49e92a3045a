package skew

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestClock: whatever is done to a clock, it never goes back, and when finds the first instant at which it shows a time.
func TestClock(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var c Clock
		now, last := quantity.Instant(1000*time.Second), quantity.Instant(0)
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(rt, "pass")))
			if rapid.Bool().Draw(rt, "set") {
				c.Set(now, time.Duration(rapid.Int64Range(-int64(time.Minute), int64(time.Minute)).Draw(rt, "offset")),
					rapid.Int64Range(-500_000, 500_000).Draw(rt, "drift"))
			}
			shown := c.Shows(now)
			if shown < last {
				rt.Fatalf("it showed %d, then %d", last, shown)
			}
			last = shown
			want := shown.Add(time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(rt, "ahead")))
			when := c.When(want)
			if when < now || c.Shows(when) < want || when > now && c.Shows(when-1) >= want {
				rt.Fatalf("%+v: it shows %d from %d on, not %d", c, c.Shows(when), when, want)
			}
		}
	})
	right := Clock{}
	if right.Shows(5) != 5 || right.When(7) != 7 || right.When(quantity.Never) != quantity.Never {
		t.Error("a clock that was never set is wrong")
	}
}
