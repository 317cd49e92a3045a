package world_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/swarm/all"
	"sluice.dev/sluice/internal/lab/swarm/world"
)

// BenchmarkSecond is a simulated second of every mechanism at load .9, after two of warm-up: its wall time, and that of a task
// placed. Run it with -benchtime 1x.
func BenchmarkSecond(b *testing.B) {
	for _, zones := range []int{10, 100, 1000} {
		for _, k := range all.Kinds() {
			b.Run(fmt.Sprintf("%s/nodes=%d", k.Name, 100*zones), func(b *testing.B) {
				o := world.Usual(zones, k, 900_000)
				o.From, o.Until = 0, quantity.Instant(time.Hour)
				w, err := world.New(o)
				if err != nil {
					b.Fatal(err)
				}
				w.Run(quantity.Instant(2 * time.Second))
				before := w.Counts()
				b.ResetTimer()
				for range b.N {
					w.Run(w.Now().Add(time.Second))
				}
				after := w.Counts()
				placed := float64(after.Starts - before.Starts)
				b.ReportMetric(placed/float64(b.N), "placed/s")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/max(1, placed), "ns/task")
			})
		}
	}
}
