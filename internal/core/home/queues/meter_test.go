package queues

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/quantity"
)

// TestMeter against the sum over all that run, some of whose nodes' clocks are ahead.
func TestMeter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m meter
		var all []started
		now := int64(1_700_000_000_000_000_000)
		for range rapid.IntRange(1, 60).Draw(t, "changes") {
			if len(all) > 0 && rapid.IntRange(0, 2).Draw(t, "end") == 0 {
				i := rapid.IntRange(0, len(all)-1).Draw(t, "which")
				m.remove(all[i].at, all[i].memory)
				all = slices.Delete(all, i, i+1)
			} else {
				s := started{quantity.Instant(now + rapid.Int64Range(-5_000_000_000, 1_000_000).Draw(t, "start")),
					rapid.Int64Range(1, 90_000).Draw(t, "memory")}
				m.add(s.at, s.memory)
				all = append(all, s)
			}
			now += rapid.Int64Range(0, 3_000_000).Draw(t, "later")
			want := int64(0)
			for _, s := range all {
				want += s.memory * max(0, quantity.Instant(now).Sub(s.at).Milliseconds())
			}
			if got := m.at(quantity.Instant(now)); got != want {
				t.Fatalf("%d subjobs have had %d, want %d", len(all), got, want)
			}
		}
	})
}
