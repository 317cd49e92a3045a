package fgdtable

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/tracetest"
)

// sample has one row of shares i/2 for i percent.
func sample() (content string, values []float64) {
	header, row := []string{"workload", "sc_policy", "tune", "seed", "total_gpus"}, []string{"pods", "06-FGD", "1.3", "42", "6212"}
	for i := range Arrived + 1 {
		header = append(header, strconv.Itoa(i))
		row = append(row, fmt.Sprintf("%d.%d", i/2, i%2*5))
		values = append(values, float64(i)/2)
	}
	return strings.Join(header, ",") + "\n" + strings.Join(row, ",") + "\n", values
}

func suite() tracetest.Suite {
	content, values := sample()
	return tracetest.Suite{
		Format: Format(),
		File:   "dir/allo.csv.gz",
		Sample: content,
		Want: []trace.Record{{Kind: trace.Curve, Line: 2, At: trace.Unknown, Curve: trace.CurveRecord{
			Table: "allo", Workload: "pods", Policy: "06-FGD", Seed: 42, Inflation: 1300, GPUs: 6212, Values: values,
		}}},
		Broken: []tracetest.Broken{
			{Name: "wrong number", Old: "64.5,", New: "64..5,", Says: `129 is "64..5", expected a number`},
			{Name: "over 100", Old: "64.5,", New: "100.5,", Says: "percent, 0 to 100"},
			{Name: "missing column", Old: "98,99,", New: "98,", Place: "1:1", Says: "the header lacks 99; expected workload"},
			{Name: "a name twice", Old: "99,100,", New: "98,100,", Says: `column "98" is there twice`},
			{Name: "seed", Old: "42,6212", New: "x,6212", Says: "seed"},
		},
	}
}

func TestConforms(t *testing.T)      { tracetest.Run(t, suite()) }
func FuzzFgdtable(f *testing.F)      { tracetest.Fuzz(f, suite()) }
func BenchmarkFgdtable(b *testing.B) { tracetest.Bench(b, suite()) }

// Each table has 11 workloads, 6 policies and 10 seeds; the means of the default workload at 130% are the published ones.
func TestPublishedTables(t *testing.T) {
	for _, table := range []string{"allo", "frag", "frag_ratio"} {
		name := "analysis_" + table + "_discrete"
		rows, means := map[string]int{}, map[string]float64{}
		n := tracetest.Each(t, Format(), "fgd_expected/"+name+".csv.gz", func(r *trace.Record) {
			c := &r.Curve
			rows[fmt.Sprint(c.Workload, c.Policy, c.Seed)]++
			if c.Table != name || c.Inflation != 1300 || len(c.Values) != Arrived+1 || (c.GPUs == 6212) != (table == "allo") {
				t.Fatalf("line %d: %+v", r.Line, c)
			}
			if c.Workload == "openb_pod_list_default" {
				means[c.Policy] += c.Values[Arrived] / 10
			}
		})
		if n != 660 || len(rows) != n {
			t.Errorf("%s: %d rows, %d different", table, n, len(rows))
		}
		if table != "allo" {
			continue
		}
		for policy, want := range map[string]float64{
			"01-Random": 87.47, "02-DotProd": 90.85, "03-GpuClustering": 91.88, "04-GpuPacking": 92.00, "05-BestFit": 93.08,
			"06-FGD": 95.39,
		} {
			if math.Abs(means[policy]-want) > .0051 {
				t.Errorf("%s: mean %.3f, want %.2f", policy, means[policy], want)
			}
		}
	}
}
