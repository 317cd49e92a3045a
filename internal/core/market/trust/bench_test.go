package trust_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/score"
)

// BenchmarkCalibrateAndScore is what the market does to each variant after it was verified: the features, the calibration of
// the declared score, the total and the weight. Variants and records rotate.
func BenchmarkCalibrateAndScore(b *testing.B) {
	const n = 1024
	var variants [n]score.Variant
	var records [n]protocol.Trust
	var declared [n]int64
	for i := range int64(n) {
		open := quantity.Instant(i * 1e9)
		start := open.Add(time.Duration(i*37%600) * time.Second)
		variants[i] = score.Variant{
			Open: open, Shut: open.Add(time.Hour), Start: start, End: start.Add(time.Duration(60+i*91%1800) * time.Second),
			Shortest: 2 * time.Minute,
			Demand:   quantity.Amount(1+i%40) << 30, Capacity: 40 << 30, Waited: time.Duration(i*i%1500) * time.Second,
		}
		records[i] = protocol.Trust{Error: i * 331 % 400_000, History: i * 7919 % score.One, Seen: 1, Risk: 60_000}
		declared[i] = score.Job{Progress: i * 911 % score.One, Overhead: i * 389 % score.One}.Of(job.DefaultWorth)
	}
	var sum int64
	for i := 0; b.Loop(); i++ {
		v := &variants[i%n]
		total := score.Of("fair").Total(settings.Calibrated(&records[i%n], declared[i%n]), score.Of("fair").Features(v))
		sum += score.Weight(total, v.End.Sub(v.Start), true) >> 20
	}
	if sum == 0 {
		b.Error("nothing was worth anything")
	}
}

// BenchmarkObserve is what one ended subjob costs.
func BenchmarkObserve(b *testing.B) {
	var record protocol.Trust
	for i := 0; b.Loop(); i++ {
		settings.Observe(&record, trust.Observation{
			Declared: 700_000, Observed: int64(i % score.One), Risk: int64(1000 + i%977), Planned: time.Minute, Ran: 50 * time.Second,
			Predicted: 100, Peak: quantity.Amount(i % 101), Theta: 10_000,
		})
	}
}
