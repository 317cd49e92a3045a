package placement

import (
	"fmt"
	"testing"
)

func newActors(tb testing.TB, mechanism string, nodes int) *Actors {
	tb.Helper()
	a, err := NewActors(Mixed(), mechanism, nodes, .9)
	if err != nil {
		tb.Fatal(err)
	}
	return a
}

// BenchmarkActors is one job through the whole protocol: submitted, homed, searched for, granted, claimed, leased, run, committed, closed
// and forgotten.
//
//	go test -run '^$' -bench 'Actors/laminar/nodes=5000' -benchtime 100000x -cpuprofile /tmp/p ./bench/placement
func BenchmarkActors(b *testing.B) {
	for _, mechanism := range []string{"laminar", "sja"} {
		for _, nodes := range []int{100, 1000, 5000, 100_000} {
			b.Run(fmt.Sprintf("%s/nodes=%d", mechanism, nodes), func(b *testing.B) {
				if nodes > 1000 && testing.Short() {
					b.Skip("it takes long to fill; run it without -short")
				}
				a := newActors(b, mechanism, nodes)
				a.Warm()
				b.ReportAllocs()
				b.ResetTimer()
				before := processor()
				for a.Leased < b.N {
					a.Tick()
				}
				cpu, n := float64(processor()-before), float64(a.Leased)
				b.ReportMetric(cpu/n, "cpu-ns/op")
				b.ReportMetric(n/(cpu/1e9), "placements/cpu-s")
				b.ReportMetric(float64(a.Messages)/n, "messages/op")
				b.ReportMetric(float64(a.Facts)/n, "facts/op")
				b.ReportMetric(n/float64(a.Submitted), "placed")
			})
		}
	}
}

// BenchmarkLanding is a job's way from Submit to Leased alone, while nodes fill; what follows a lease is in Actors.
func BenchmarkLanding(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 100_000} {
		b.Run(fmt.Sprintf("nodes=%d", nodes), func(b *testing.B) {
			if nodes > 1000 && testing.Short() {
				b.Skip("it takes long to boot; run it without -short")
			}
			var cpu float64
			leased, messages, facts := 0, 0, 0
			b.ReportAllocs()
			for leased < b.N {
				b.StopTimer()
				a := newActors(b, "laminar", nodes)
				b.StartTimer()
				before := processor()
				a.Land()
				cpu += float64(processor() - before)
				leased, messages, facts = leased+a.Leased, messages+a.Messages, facts+a.Facts
			}
			n := float64(leased)
			b.ReportMetric(cpu/n, "cpu-ns/placement")
			b.ReportMetric(n/(cpu/1e9), "placements/cpu-s")
			b.ReportMetric(float64(messages)/n, "messages/placement")
			b.ReportMetric(float64(facts)/n, "facts/placement")
		})
	}
}

// TestEveryJobHasItsLife: under either mechanism nearly all that come are leased, run and are over.
func TestEveryJobHasItsLife(t *testing.T) {
	for _, mechanism := range []string{"laminar", "sja"} {
		a := newActors(t, mechanism, 100)
		a.Warm()
		for range 2000 {
			a.Tick()
		}
		if a.Submitted < 500 || a.Leased < a.Submitted*9/10 || a.Over < a.Leased*9/10 {
			t.Errorf("%s: of %d jobs %d were leased, %d are over", mechanism, a.Submitted, a.Leased, a.Over)
		}
		t.Logf("%s: %+v", mechanism, a.ActorCounts)
	}
}
