package lengths

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestWhatIsLikelyHolds: of Pods that are alike, whatever their lengths, at most one in twenty stays for longer than is said of it; and as
// little is known of those that run still as there is to know.
func TestWhatIsLikelyHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Int64Range(1, 100), Fewest+1, 120).Draw(t, "lengths")
		later := 0
		for i := range list { // each of them as the next one: in an order that says nothing any may be
			l, clock := New(), quantity.Instant(1)
			for k, d := range list {
				if k == i {
					continue
				}
				uid := fmt.Sprint(k)
				l.Begun(uid, "a/x", clock)
				clock = clock.Add(time.Duration(d))
				l.Over(uid, clock, false)
			}
			l.Begun("next", "a/x", clock)
			if until := l.Until(clock, "next"); until != quantity.Never && until < clock.Add(time.Duration(list[i])) {
				later++
			}
		}
		if later*20 > len(list) {
			t.Fatalf("%d of %d stay for longer than is said", later, len(list))
		}
	})
}
