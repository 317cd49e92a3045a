package policy_test

import (
	"math"
	"testing"

	"sluice.dev/sluice/internal/core/policy"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestAgeIsMostOfTheOrder: who has the lesser age comes first, up to the ends of both numbers, and equal ones are no further apart than
// Age says.
func TestAgeIsMostOfTheOrder(t *testing.T) {
	const million = 1<<20 - 1
	var all []policy.Candidate
	for _, p := range []int32{math.MinInt32, -million - 1, -million, -million + 1, -million + 2, -1, 0, 1, million - 2, million - 1,
		million, million + 1, math.MaxInt32} {
		for _, at := range []quantity.Instant{-1 << 40, -1, 0, 1<<21 - 1, 1 << 21, 1 << 62, math.MaxInt64 - 1<<21, math.MaxInt64} {
			all = append(all, policy.Candidate{Priority: p, Submitted: at})
		}
	}
	tops := func(p int32) bool { return p <= -million || p >= million }
	for i := range all {
		for k := range all {
			a, b := &all[i], &all[k]
			x, y := policy.Age(a.Priority, a.Submitted), policy.Age(b.Priority, b.Submitted)
			switch {
			case x < 0 || x < y && policy.ByAge(a, b) >= 0:
				t.Errorf("%+v has the age %d, and %+v has %d", a, x, b, y)
			case x == y && (a.Priority > 0) != (b.Priority > 0), x == y && !tops(a.Priority) &&
				(a.Priority != b.Priority || max(0, a.Submitted)>>21 != max(0, b.Submitted)>>21):
				t.Errorf("%+v and %+v are of one age, %d", a, b, x)
			}
		}
	}
}
