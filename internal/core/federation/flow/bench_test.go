package flow

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// benchSplitter has digests of some zones.
func benchSplitter(zones int) *Splitter {
	s, source := NewSplitter(tested(), zones), prng.New(3)
	for z := range zones {
		d := Digest{Zone: ZoneID(z), Version: 1, Alive: true, Pressure: uint16(source.IntN(500))}
		for c := range d.Free {
			d.Free[c], d.Demand[c] = uint32(source.IntN(200)), uint32(source.IntN(100))
		}
		s.Hear(start, &d)
	}
	s.Rebuild(start)
	return s
}

func BenchmarkDraw(b *testing.B) {
	for _, zones := range []int{10, 100, 1000} {
		b.Run(fmt.Sprintf("zones=%d", zones), func(b *testing.B) {
			s := benchSplitter(zones)
			tk, sum, i := Ticket{}, ZoneID(0), 0
			b.ReportAllocs()
			for b.Loop() {
				i++
				tk.ID, tk.Class = TicketID(i), Class(i%len(levels))
				z, _ := s.Draw(&tk)
				sum += z
			}
			if sum == 0 {
				b.Error("always the first zone")
			}
		})
	}
}

// BenchmarkRebuild is the tables of all classes; ns/zone is what a digest costs whoever draws.
func BenchmarkRebuild(b *testing.B) {
	for _, zones := range []int{10, 1000} {
		b.Run(fmt.Sprintf("zones=%d", zones), func(b *testing.B) {
			s := benchSplitter(zones)
			b.ReportAllocs()
			for b.Loop() {
				s.Rebuild(start)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(zones), "ns/zone")
		})
	}
}

// BenchmarkArbitration is one decision of a node, among 1,024 nodes and sets of probes by turns.
func BenchmarkArbitration(b *testing.B) {
	for _, probes := range []int{1, 2, 4, 8} {
		b.Run(fmt.Sprintf("probes=%d", probes), func(b *testing.B) {
			const many = 1024
			source, a := prng.New(5), NewArbiter(tested())
			var fresh, nodes [many]Node
			var sets [many][]Probe
			for i := range many {
				f := Fragments{uint8(source.IntN(3)), uint8(source.IntN(3)), uint8(source.IntN(2)), 0, uint8(source.IntN(2))}
				fresh[i] = NewNode(1, f, make([]Grant, 0, 8))
				for k := range probes {
					p := Probe{Ticket: TicketID(source.Uint64()), Demand: quantity.Amount(source.IntN(80e9)),
						Born: start - quantity.Instant(source.IntN(2e9)), Priority: int16(source.IntN(3)), Churn: uint8(k % 2)}
					p.Class, _ = levels.Of(p.Demand)
					sets[i] = append(sets[i], p)
				}
			}
			out, i := make([]Answer, 0, 8), 0
			b.ReportAllocs()
			for b.Loop() {
				i = (i + 1) % many
				nodes[i] = fresh[i]
				out = a.Decide(start, &nodes[i], sets[i], out[:0])
			}
			if len(out) != probes {
				b.Error("no answer")
			}
		})
	}
}

// TestDecisionsAllocateNothing: bench/placement has the same of whole placements.
func TestDecisionsAllocateNothing(t *testing.T) {
	a, n, out := NewArbiter(tested()), NewNode(1, Fragments{9}, make([]Grant, 0, 8)), make([]Answer, 0, 8)
	probes := []Probe{{Ticket: 3}, {Ticket: 1}, {Ticket: 2}}
	if got := testing.AllocsPerRun(5, func() { out = a.Decide(start, &n, probes, out[:0]) }); got != 0 {
		t.Errorf("a decision about several allocates %v times", got)
	}
}
