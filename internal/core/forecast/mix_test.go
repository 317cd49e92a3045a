package forecast_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/digest/digesttest"
	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/quantity"
)

func TestEveryFieldOfARunMovesTheDigest(t *testing.T) {
	run := &forecast.Run{}
	digesttest.EveryField(t, run, func() uint64 { return run.Mix(digest.New()).Sum() })
}

// TestTheDigestIsOfWhatIsRemembered: whatever was added before and is forgotten, runs that remember the same have the same digest, and
// others another.
func TestTheDigestIsOfWhatIsRemembered(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) forecast.Run {
		return forecast.Run{Peaks: rapid.SliceOfN(rapid.Map(rapid.Int64Range(0, 3),
			func(v int64) quantity.Amount { return quantity.Amount(v) }), 0, 3).Draw(t, "peaks")}
	})
	sum := func(r *forecast.Runs) uint64 { return r.Mix(digest.New()).Sum() }
	rapid.Check(t, func(t *rapid.T) {
		var r, again forecast.Runs
		for i := range rapid.SampledFrom([]int{0, forecast.MaxRuns - 1, forecast.MaxRuns, 2 * forecast.MaxRuns}).Draw(t, "before") {
			r.Add(forecast.Run{Peaks: []quantity.Amount{quantity.Amount(i)}})
		}
		for _, run := range rapid.SliceOfN(draw, 0, 10).Draw(t, "runs") {
			r.Add(run)
		}
		for _, run := range r.List {
			again.Add(run)
		}
		if sum(&r) != sum(&again) {
			t.Fatalf("%d runs that are the same have another digest", len(r.List))
		}
		if len(r.List) == 0 {
			return
		}
		var other forecast.Runs
		at := rapid.IntRange(0, len(r.List)-1).Draw(t, "at")
		for i, run := range r.List {
			if i == at {
				run.Peaks = slices.Clone(run.Peaks)
				run.Peaks[0]++
			}
			other.Add(run)
		}
		if sum(&r) == sum(&other) {
			t.Fatalf("run %d of %d is another one, and the digest is the same", at, len(r.List))
		}
	})
}
