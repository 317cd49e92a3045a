package fgd_test

import (
	"os"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/lab/experiment/fgd"
)

// full is the default workload of the published experiment if SLUICE_DATA has it, else a made-up one on as many nodes
// (1,213) and GPUs (6,212).
func full(b *testing.B) *fgd.Workload {
	if data := os.Getenv("SLUICE_DATA"); data != "" {
		if _, err := os.Stat(filepath.Join(data, "openb")); err == nil {
			w, err := fgd.Load(data, "default")
			if err != nil {
				b.Fatal(err)
			}
			b.Log("openb, default pods")
			return w
		}
	}
	b.Log("made-up pods: SLUICE_DATA has no openb")
	return synthetic(617, 42, 554, 8152)
}

// BenchmarkFGDRun is one run of the experiment: arrivals to 130%, one seed.
func BenchmarkFGDRun(b *testing.B) {
	w := full(b)
	setup := w.Draw(1)
	for _, kind := range fgd.Policies() {
		b.Run(kind.Name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := fgd.Run(kind, setup); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(setup.Arrivals)*b.N)/b.Elapsed().Seconds(), "arrivals/s")
		})
	}
}
