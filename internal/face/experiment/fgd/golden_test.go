package fgd_test

import (
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"sluice.dev/sluice/internal/core/planner"
	"sluice.dev/sluice/internal/core/planner/bestfit"
	"sluice.dev/sluice/internal/core/planner/clustering"
	"sluice.dev/sluice/internal/core/planner/dotproduct"
	planfgd "sluice.dev/sluice/internal/core/planner/fgd"
	"sluice.dev/sluice/internal/core/planner/packing"
	"sluice.dev/sluice/internal/edge/trace"
	"sluice.dev/sluice/internal/edge/trace/fgdorder"
	"sluice.dev/sluice/internal/edge/trace/fgdtable"
	"sluice.dev/sluice/internal/edge/trace/tracetest"
	"sluice.dev/sluice/internal/face/experiment/fgd"
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

// TestPublishedRows gives the planners the arrivals and ranks of published runs: every column of their rows must come out.
func TestPublishedRows(t *testing.T) {
	const within = 0.02
	data := filepath.Dir(tracetest.Data(t, "openb"))
	w, err := fgd.Load(data, "default")
	if err != nil {
		t.Fatal(err)
	}
	published := map[string][]float64{}
	tracetest.Each(t, fgdtable.Format(), "fgd_expected/analysis_allo_discrete.csv.gz", func(r *trace.Record) {
		if r.Curve.Workload == "openb_pod_list_default" {
			published[fmt.Sprintf("%s %d", r.Curve.Policy, r.Curve.Seed)] = append([]float64(nil), r.Curve.Values...)
		}
	})
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
			{"02-DotProd", dotproduct.Kind()}, {"03-GpuClustering", clustering.Kind()}, {"04-GpuPacking", packing.Kind()},
			{"05-BestFit", bestfit.Kind()}, {"06-FGD", planfgd.Kind()},
		} {
			t.Run(fmt.Sprintf("%s %d", c.kind.Name, seed), func(t *testing.T) {
				want := published[fmt.Sprintf("%s %d", c.policy, seed)]
				if len(want) != fgd.Columns {
					t.Fatalf("%d published columns", len(want))
				}
				got, err := fgd.Run(c.kind, s)
				if err != nil {
					t.Fatal(err)
				}
				worst := 0.0
				for column, x := range want {
					worst = max(worst, math.Abs(got.Allocated[column]-x))
					if math.Abs(got.Allocated[column]-x) > within {
						t.Errorf("at %d%% arrived %.3f%% is allocated; published is %.2f", column, got.Allocated[column], x)
					}
				}
				t.Logf("at most %.4f away", worst)
			})
		}
	}
}
