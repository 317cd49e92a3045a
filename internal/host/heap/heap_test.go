package heap

import "testing"

// TestHowFarTheHeapMayGrow: far while nearly all stays, but never so far that a machine which holds the state twice is too small.
func TestHowFarTheHeapMayGrow(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	for _, c := range []struct {
		there, lived uint64
		recovering   bool
		want         int
	}{
		{0, 0, true, 400}, {gib, 100 * mib, true, 400}, {gib, 512 * mib, true, 400}, {2 * gib, gib, true, 200},
		{4 * gib, 3 * gib, true, 75}, {90 * gib, 80 * gib, true, 75},
		{100 * mib, 80 * mib, false, 100}, {256 * mib, 10 * mib, false, 75}, {gib, gib, false, 75},
	} {
		if got := gogc(c.there, c.lived, c.recovering); got != c.want {
			t.Errorf("of %d bytes %d lived, recovering %v: %d%%, want %d%%", c.there, c.lived, c.recovering, got, c.want)
		}
	}
}
