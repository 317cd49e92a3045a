package wire

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// claimed is the fact that a busy zone writes most.
func claimed() protocol.Fact {
	start := quantity.Instant(1_795_000_000_000_000_000)
	return protocol.Fact{Kind: protocol.Claimed, Actor: protocol.Address{Role: protocol.Zone, ID: "zone-1"}, Job: "train-llm", Epoch: 1,
		Token: job.Token{Epoch: 7, Seq: 123456}, Body: &protocol.Sale{Placement: protocol.Placement{Slice: "node-1/gpu-0/3g.40gb",
			Range: job.Range{From: 4000, To: 4400}, Start: start, End: start.Add(10 * time.Minute), Demand: trp.Vector{30 << 30},
			Plan: protocol.Plan{Run: 9 * time.Minute, Wall: 590 * time.Second, Resume: job.Token{Epoch: 7, Seq: 123000}, Window: 9876,
				Round: 5432}}, Node: "node-1"}}
}

func BenchmarkAppendFact(b *testing.B) {
	f := claimed()
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = AppendFact(out[:0], &f)
	}
	b.ReportMetric(float64(len(out)), "B/fact")
}

func BenchmarkDecodeFact(b *testing.B) {
	f := claimed()
	in := AppendFact(nil, &f)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeFact(in); err != nil {
			b.Fatal(err)
		}
	}
}
