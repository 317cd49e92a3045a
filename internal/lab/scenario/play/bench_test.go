package play

import (
	"testing"
	"time"

	policies "sluice.dev/sluice/internal/core/policy/all"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario"
)

// BenchmarkNegotiation is what a simulated award costs, with everything that comes with it: proposals, verification,
// clearing, the five steps, and where all divisible jobs have agents also these and their messages.
func BenchmarkNegotiation(b *testing.B) {
	for name, agents := range map[string]string{"inside": "[]", "agents": "[{strategy: honest, share: 100%, think: 5ms}]",
		"hostile": "[{strategy: honest, share: 90%}, {strategy: hostile, share: 10%}]"} {
		b.Run(name, func(b *testing.B) {
			s, err := scenario.Load("small", strict.Set{Path: "window", Value: "{until: 4h, limit: 1d}"},
				strict.Set{Path: "workload.agents", Value: agents})
			if err != nil {
				b.Fatal(err)
			}
			m, err := Table{Policies: policies.Policies(), Policy: policies.ByName}.Find(s, []string{JASDA + ":fair"})
			if err != nil {
				b.Fatal(err)
			}
			awards := 0.
			for b.Loop() {
				r, err := Run(b.Context(), Options{Scenario: s, Mechanisms: m, Seeds: []uint64{1}, Workers: 1})
				if err != nil {
					b.Fatal(err)
				}
				awards += r[0].Metrics.Get(measure.Awards)
			}
			b.ReportMetric(float64(b.Elapsed())/float64(time.Microsecond)/awards, "us/award")
		})
	}
}
