package zone

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestRanking against a scan in order, with enough jobs for several chunks.
func TestRanking(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := func(a, b *state) int { return cmp.Or(cmp.Compare(a.Attained, b.Attained), cmp.Compare(a.Job, b.Job)) }
		var r ranking
		var all []ranked
		seed := rapid.Uint64().Draw(t, "seed")
		draw := func(n int) int {
			seed = seed*6364136223846793005 + 1442695040888963407
			return int(seed>>33) % n
		}
		for n := range rapid.IntRange(1, 1500).Draw(t, "changes") {
			if len(all) > 0 && draw(3) == 0 {
				i := draw(len(all))
				r.remove(before, all[i].job)
				all = slices.Delete(all, i, i+1)
				continue
			}
			s := &state{}
			s.Job, s.Attained = job.ID(rune('a'+n%26))+job.ID(rune(1000+n)), int64(draw(50))
			e := ranked{time.Duration(draw(100)), s}
			all = append(all, e)
			r.insert(before, e)
		}
		slices.SortFunc(all, func(a, b ranked) int { return before(a.job, b.job) })
		for length := time.Duration(-1); length < 101; length += 3 {
			var want *state
			if i := slices.IndexFunc(all, func(e ranked) bool { return e.need <= length }); i >= 0 {
				want = all[i].job
			}
			if got := r.first(length); got != want {
				t.Fatalf("of %d jobs the first for %d is %v, want %v", len(all), length, got, want)
			}
		}
	})
}

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
				s := started{quantity.Instant(now + rapid.Int64Range(-5_000_000_000, 1_000_000).Draw(t, "start")), rapid.Int64Range(1, 90_000).Draw(t, "memory")}
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
