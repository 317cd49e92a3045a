package bound

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// BenchmarkFor bounds a day of 10,000 jobs of 32 kinds on five classes, at several sizes of the linear program.
func BenchmarkFor(b *testing.B) {
	var classes []Class
	for c := range 5 {
		classes = append(classes, Class{Name: fmt.Sprint(c), Count: 8})
	}
	s := prng.New(1)
	jobs := make([]Job, 10_000)
	for i := range jobs {
		kind := prng.New(2, uint64(s.IntN(32)))
		var v [5]int64
		for c := range v {
			v[c] = int64(100*(c+1) + kind.IntN(500))
		}
		if kind.IntN(3) == 0 {
			v[0] = 0
		}
		jobs[i] = Job{Submit: quantity.Instant(i) * 86400 * second / 10_000, Width: 1, Parts: part(time.Duration(s.Exp()*250*1e9), v[:]...)}
	}
	for _, o := range []Options{{Buckets: 12, Types: 24}, {Buckets: 24, Types: 24}, {Buckets: 12, Types: 40}, {Buckets: 24, Types: 40}} {
		b.Run(fmt.Sprintf("buckets=%d/types=%d", o.Buckets, o.Types), func(b *testing.B) {
			var r Result
			for b.Loop() {
				var err error
				if r, err = For(classes, jobs, Window{0, 86400 * second}, o); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(r.LP/r.Area, "LP/area")
			b.ReportMetric(float64(r.Size.Rows), "rows")
			b.ReportMetric(float64(r.Size.Variables), "variables")
			b.ReportMetric(float64(r.Size.Pivots), "pivots")
		})
	}
}
