package fgd_test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/lab/experiment/fgd"
	"sluice.dev/sluice/internal/lab/planner"
	planfgd "sluice.dev/sluice/internal/lab/planner/fgd"
	"sluice.dev/sluice/internal/lab/planner/place"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/fgdorder"
	"sluice.dev/sluice/internal/lab/trace/fgdtable"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

// order reads a published order as an index of names for each rank.
func order(t *testing.T, path string) (ids []string, ranks []int64) {
	tracetest.Each(t, fgdorder.Format(), path, func(r *trace.Record) {
		ids = append(ids, r.Rank.ID)
		ranks = append(ranks, r.Rank.Rank)
	})
	return ids, ranks
}

func index(names []string) map[string]int32 {
	at := map[string]int32{}
	for i, name := range names {
		at[name] = int32(i)
	}
	return at
}

// rows are the published rows of the default workload by policy and seed.
func rows(t *testing.T, name string) map[string][]float64 {
	out := map[string][]float64{}
	tracetest.Each(t, fgdtable.Format(), "fgd_expected/analysis_"+name+"_discrete.csv.gz", func(r *trace.Record) {
		if r.Curve.Workload == "openb_pod_list_default" {
			out[fmt.Sprintf("%s %d", r.Curve.Policy, r.Curve.Seed)] = append([]float64(nil), r.Curve.Values...)
		}
	})
	return out
}

// compare wants every column; the published ones are rounded to hundredths, and means of rounded values.
func compare(t *testing.T, what string, got, want []float64) {
	const within = 0.02
	if len(got) != len(want) {
		t.Fatalf("%d columns of percent %s, %d published", len(got), what, len(want))
	}
	worst := 0.0
	for column, x := range want {
		away := math.Abs(got[column] - x)
		worst = max(worst, away)
		if away > within {
			t.Errorf("at %d%% arrived %.3f%% is %s; published is %.2f", column, got[column], what, x)
		}
	}
	t.Logf("%s: at most %.4f away", what, worst)
}

// TestPublishedRows gives the planners the arrivals and ranks of published runs: every column of their rows of
// both tables must come out.
func TestPublishedRows(t *testing.T) {
	data := filepath.Dir(tracetest.Data(t, "openb"))
	w, err := fgd.Load(data, "default")
	if err != nil {
		t.Fatal(err)
	}
	allocated, fragmented := rows(t, "allo"), rows(t, "frag_ratio")
	pods, nodes := index(w.Names), index(w.NodeNames)
	for seed := 42; seed <= 44; seed++ {
		s := fgd.Setup{Workload: w, Ranks: make([]int32, len(w.NodeNames)), Seed: uint64(seed)}
		ids, positions := order(t, fmt.Sprintf("fgd_golden/default_seed%d_arrivals.csv.gz", seed))
		s.Arrivals = make([]int32, len(ids))
		for i, id := range ids {
			s.Arrivals[positions[i]] = pods[id]
		}
		ids, ranks := order(t, fmt.Sprintf("fgd_golden/default_seed%d_noderank.csv.gz", seed))
		for i, id := range ids {
			s.Ranks[nodes[id]] = int32(ranks[i])
		}
		for _, c := range []struct {
			policy string
			kind   planner.Kind
		}{
			{"02-DotProd", place.DotProduct()}, {"03-GpuClustering", place.Clustering()}, {"04-GpuPacking", place.Packing()},
			{"05-BestFit", place.BestFit()}, {"06-FGD", planfgd.Kind()},
		} {
			t.Run(fmt.Sprintf("%s %d", c.kind.Name, seed), func(t *testing.T) {
				row := fmt.Sprintf("%s %d", c.policy, seed)
				got, err := fgd.Run(c.kind, s)
				if err != nil {
					t.Fatal(err)
				}
				compare(t, "allocated", got.Allocated[:], allocated[row])
				compare(t, "fragmented", got.Fragmented[:], fragmented[row])
			})
		}
	}
}
