package placement

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

func newFlow(tb testing.TB, nodes int) *Flow {
	tb.Helper()
	w, err := NewFlow(Usual(), nodes, .9)
	if err != nil {
		tb.Fatal(err)
	}
	return w
}

// processor is the time that the process has had of processors.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkFlow is one task from probe to grant: draw, probes, grant, redemption, the slice's return, and its part of digests and tables.
func BenchmarkFlow(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			w := newFlow(b, nodes)
			w.Warm()
			b.ReportAllocs()
			b.ResetTimer()
			before := processor()
			for w.Begun < b.N {
				w.Tick()
			}
			cpu, n := float64(processor()-before), float64(w.Begun)
			b.ReportMetric(float64(w.Probes)/n, "probes/op")
			b.ReportMetric(cpu/n, "cpu-ns/op")
			b.ReportMetric(cpu/float64(w.Probes), "cpu-ns/probe")
			b.ReportMetric(float64(w.Placed)/(cpu/1e9), "placements/cpu-s")
			b.ReportMetric(float64(w.Placed)/float64(w.Placed+w.Expired), "placed")
		})
	}
}

// BenchmarkLine is one write to a line of memory that nobody can guess, among as many as there are nodes of that many: what a task cannot
// do without, and does several times.
func BenchmarkLine(b *testing.B) {
	for _, nodes := range []int{1000, 100_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			lines, at := make([][8]uint64, 3*nodes), uint64(1) // a node, its grant, its part of what the zone knows
			for i := range lines {
				lines[i][0] = uint64(i) * 0x9e3779b97f4a7c15
			}
			b.ResetTimer()
			for b.Loop() {
				line := &lines[(at>>32)%uint64(len(lines))]
				at = at*6364136223846793005 + line[0]
				line[0]++
			}
		})
	}
}

// TestFlowAllocatesNothing: draws, hops, decisions, redemptions, returns, digests and tables.
func TestFlowAllocatesNothing(t *testing.T) {
	w := newFlow(t, 1000)
	for w.now < start+20e9 { // until everything has grown as far as it does
		w.Tick()
	}
	if n := testing.AllocsPerRun(5, func() {
		for range 1000 {
			w.Tick()
		}
	}); n != 0 {
		t.Errorf("3,600 tasks allocate %v times", n)
	}
	if w.Placed < 5000 || w.Probes < w.Placed {
		t.Errorf("%d placed with %d probes", w.Placed, w.Probes)
	}
}

// TestPlacementIsFlat: a hundred times the nodes, at the same load, take the same probes for each task.
func TestPlacementIsFlat(t *testing.T) {
	var mean [2]float64
	for i, nodes := range []int{300, 10_000} {
		w := newFlow(t, nodes)
		for w.now < start+4e9 {
			if w.now < start+2e9 {
				w.Counts = Counts{}
			}
			w.Tick()
		}
		mean[i] = float64(w.Probes) / float64(w.Placed)
		t.Logf("%d nodes: %.2f probes for each of %d placed, %d expired", nodes, mean[i], w.Placed, w.Expired)
	}
	if mean[1] > 1.1*mean[0] {
		t.Errorf("10,000 nodes take %.2f probes a task, 300 take %.2f", mean[1], mean[0])
	}
}
