package fgdorder

import (
	"fmt"
	"testing"

	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

var arrivals = tracetest.Suite{
	Format: Format(),
	File:   "arrivals.csv",
	Sample: "position,pod\n0,pod-7\n1,pod-3\n2,pod-7\n",
	Want: []trace.Record{
		{Kind: trace.Rank, Line: 2, At: trace.Unknown, Rank: trace.RankRecord{ID: "pod-7"}},
		{Kind: trace.Rank, Line: 3, At: trace.Unknown, Rank: trace.RankRecord{ID: "pod-3", Rank: 1}},
		{Kind: trace.Rank, Line: 4, At: trace.Unknown, Rank: trace.RankRecord{ID: "pod-7", Rank: 2}},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: "1,", New: "-1,", Says: `position is "-1"`},
		{Name: "missing column", Old: "position,", New: "", Place: "1:1", Says: "the header lacks position"},
	},
}

var ranks = tracetest.Suite{
	Format: Format(),
	File:   "ranks.csv",
	Sample: "node,rank\nn0,1\nn1,0\n",
	Want: []trace.Record{
		{Kind: trace.Rank, Line: 2, At: trace.Unknown, Rank: trace.RankRecord{ID: "n0", Rank: 1}},
		{Kind: trace.Rank, Line: 3, At: trace.Unknown, Rank: trace.RankRecord{ID: "n1"}},
	},
	Broken: []tracetest.Broken{
		{Name: "wrong number", Old: ",1", New: ",one", Place: "2:4", Says: `rank is "one"`},
		{Name: "missing column", Old: ",rank", New: "", Place: "1:1", Says: "the header lacks rank"},
	},
}

func TestArrivalsConform(t *testing.T) { tracetest.Run(t, arrivals) }
func TestRanksConform(t *testing.T)    { tracetest.Run(t, ranks) }
func FuzzFgdorder(f *testing.F)        { tracetest.Fuzz(f, arrivals) }
func BenchmarkFgdorder(b *testing.B)   { tracetest.Bench(b, arrivals) }

// Arrivals are numbered in order; ranks are a permutation of the 1,213 nodes.
func TestPublishedOrders(t *testing.T) {
	for seed, want := range map[int]int{42: 10866, 43: 10793, 44: 10863} {
		next := int64(0)
		n := tracetest.Each(t, Format(), fmt.Sprintf("fgd_golden/default_seed%d_arrivals.csv.gz", seed), func(r *trace.Record) {
			if r.Rank.Rank != next {
				t.Fatalf("line %d has position %d", r.Line, r.Rank.Rank)
			}
			next++
		})
		if n != want {
			t.Errorf("seed %d: %d arrivals, want %d", seed, n, want)
		}
		seen := map[int64]string{}
		n = tracetest.Each(t, Format(), fmt.Sprintf("fgd_golden/default_seed%d_noderank.csv.gz", seed),
			func(r *trace.Record) { seen[r.Rank.Rank] = r.Rank.ID })
		for rank := range int64(1213) {
			if seen[rank] == "" {
				t.Errorf("seed %d: nobody has rank %d", seed, rank)
			}
		}
		if n != 1213 || len(seen) != n {
			t.Errorf("seed %d: %d nodes, %d ranks", seed, n, len(seen))
		}
	}
}
