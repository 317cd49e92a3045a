package miso

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

const us = time.Microsecond

var suite = tracetest.Suite{
	Format: Format(),
	File:   "summary.csv",
	Sample: `model,batch,mem_mib_7g,profile,n_iter,first_iter_s,median_iter_s,p05_iter_s,p95_iter_s,cv
a,2,6000,2g.10gb,500,0.3,0.2,0.1,0.4,0.005
a,2,6000,7g.40gb,60,0.06,0.05,0.04,0.07,0
a,4,7000,3g.20gb,10,1,0.0003,0.0002,0.0004,1e-1
b,4,8000,7g.40gb,10,1,0.2,0.2,0.2,0
b,4,8000,1g.5gb,10,1,0.3,0.3,0.3,0
`,
	Want: []trace.Record{
		{Kind: trace.Measurement, Line: 2, At: trace.Unknown, Measurement: trace.MeasurementRecord{
			Program: "a", Batch: 2, Profile: "2g.10gb", Iterations: 500, First: 300000 * us, Iteration: 200000 * us,
			Low: 100000 * us, High: 400000 * us, Variation: .005, Speed: 250, Memory: 6000,
		}},
		{Kind: trace.Measurement, Line: 3, At: trace.Unknown, Measurement: trace.MeasurementRecord{
			Program: "a", Batch: 2, Profile: "7g.40gb", Iterations: 60, First: 60000 * us, Iteration: 50000 * us,
			Low: 40000 * us, High: 70000 * us, Speed: 1000, Memory: 6000,
		}},
		{Kind: trace.Measurement, Line: 4, At: trace.Unknown, Measurement: trace.MeasurementRecord{
			Program: "a", Batch: 4, Profile: "3g.20gb", Iterations: 10, First: time.Second, Iteration: 300 * us,
			Low: 200 * us, High: 400 * us, Variation: .1, Speed: trace.Unknown, Memory: 7000,
		}},
		{Kind: trace.Measurement, Line: 5, At: trace.Unknown, Measurement: trace.MeasurementRecord{
			Program: "b", Batch: 4, Profile: "7g.40gb", Iterations: 10, First: time.Second, Iteration: 200000 * us,
			Low: 200000 * us, High: 200000 * us, Speed: 1000, Memory: 8000,
		}},
		{Kind: trace.Measurement, Line: 6, At: trace.Unknown, Measurement: trace.MeasurementRecord{
			Program: "b", Batch: 4, Profile: "1g.5gb", Iterations: 10, First: time.Second, Iteration: 300000 * us,
			Low: 300000 * us, High: 300000 * us, Speed: 667, Memory: 8000,
		}},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "0.0003", New: "3e-4", Says: `median_iter_s is "3e-4"`},
		{Name: "no time", Old: "0.0003", New: "0.0", Says: "above 0"},
		{Name: "missing column", Old: ",batch", New: "", Place: "1:1", Says: "the header lacks batch"},
	},
}

func TestConforms(t *testing.T)  { tracetest.Run(t, suite) }
func FuzzMiso(f *testing.F)      { tracetest.Fuzz(f, suite) }
func BenchmarkMiso(b *testing.B) { tracetest.Bench(b, suite) }

// Six model families with four batch sizes each, of which 17, 21 and all ran on the smaller profiles; the mean speed rises
// with the profile.
func TestPublishedMeasurements(t *testing.T) {
	sum, count := map[string]int64{}, map[string]int64{}
	n := tracetest.Each(t, Format(), "miso/miso_mig_iter_summary.csv", func(r *trace.Record) {
		m := &r.Measurement
		if m.Speed == trace.Unknown || m.Speed > 1100 || m.Low > m.Iteration || m.High < m.Iteration {
			t.Fatalf("line %d: %+v", r.Line, m)
		}
		profile, _, _ := strings.Cut(m.Profile, ".")
		sum[profile] += m.Speed
		count[profile]++
	})
	if n != 110 || count["1g"] != 17 || count["2g"] != 21 || count["3g"] != 24 || count["4g"] != 24 || count["7g"] != 24 {
		t.Errorf("%d measurements: %v", n, count)
	}
	mean := func(profile string) int64 { return sum[profile] / count[profile] }
	if mean("1g") >= mean("2g") || mean("2g") >= mean("3g") || mean("3g") >= mean("4g") || mean("4g") >= mean("7g") || mean("7g") != 1000 {
		t.Errorf("mean speeds %v over %v", sum, count)
	}
}
