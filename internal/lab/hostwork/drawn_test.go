package hostwork_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/workload/synthetic"
)

// TestDrawnStays: stays and gaps have their lengths, each is announced once, in time, and where the host says nothing of its end with none.
func TestDrawnStays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gap := synthetic.Uniform{From: 3 * time.Minute, To: 20 * time.Minute}
		turns := hostwork.Turns{
			Gap: gap, Stay: synthetic.Fixed(rapid.IntRange(0, 600).Draw(t, "stay")) * synthetic.Fixed(time.Second),
			Notice: time.Duration(rapid.IntRange(0, 400).Draw(t, "notice")) * time.Second,
			Untold: rapid.Bool().Draw(t, "untold"), Until: 86_400 * s,
		}
		draw := prng.New(rapid.Uint64().Draw(t, "seed"))
		list, at := hostwork.Drawn(&draw, turns), quantity.Instant(0)
		if len(list) < 40 {
			t.Fatalf("%d stays in a day", len(list))
		}
		for _, x := range list {
			told := x.To
			if turns.Untold {
				told = quantity.Never
			}
			free := x.From.Sub(at)
			if free < max(gap.From, turns.Notice) || free > max(gap.To, turns.Notice) ||
				x.To.Sub(x.From) != max(1, turns.Stay.Draw(nil)) {
				t.Fatalf("a gap of %v, then %+v", free, x)
			}
			if len(x.Words) != 1 || x.Words[0].At < at ||
				x.Words[0] != (hostwork.Word{At: x.From.Add(-turns.Notice), From: x.From, To: told}) {
				t.Fatalf("it is announced so: %+v", x)
			}
			at = x.To
		}
	})
}
