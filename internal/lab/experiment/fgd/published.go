package fgd

import (
	"path/filepath"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/fgdtable"
)

// policyOf is our name for a policy of the published tables.
func policyOf(published string) string {
	switch published {
	case "01-Random":
		return "random"
	case "02-DotProd":
		return "dotproduct"
	case "03-GpuClustering":
		return "clustering"
	case "04-GpuPacking":
		return "packing"
	case "05-BestFit":
		return "bestfit"
	case "06-FGD":
		return "fgd"
	}
	return published
}

// Published is the published tables.
type Published map[cell]*published

type cell struct{ workload, policy string }

// published is the rows of one workload and policy, one for each seed. The first row is allocated percent at the end, the
// second fragmented percent where the knee is.
type published struct{ allocated, fragmented sample }

// LoadPublished reads the tables of allocation and of fragmentation from the folder fgd_expected below dir.
func LoadPublished(dir string) (Published, error) {
	p := Published{}
	at := func(r *trace.CurveRecord) *published {
		c := cell{strings.TrimPrefix(r.Workload, "openb_pod_list_"), policyOf(r.Policy)}
		if p[c] == nil {
			p[c] = &published{}
		}
		return p[c]
	}
	err := curves(dir, "allo", func(r *trace.CurveRecord) {
		at(r).allocated = append(at(r).allocated, r.Values[Load130])
	})
	if err != nil {
		return nil, err
	}
	err = curves(dir, "frag_ratio", func(r *trace.CurveRecord) {
		at(r).fragmented = append(at(r).fragmented, r.Values[Knee])
	})
	return p, err
}

// Workloads of the tables, by name.
func (p Published) Workloads() []string {
	var out []string
	for c := range p {
		if !slices.Contains(out, c.workload) {
			out = append(out, c.workload)
		}
	}
	slices.Sort(out)
	return out
}

// curves reads one table.
func curves(dir, name string, visit func(*trace.CurveRecord)) error {
	file := filepath.Join(dir, "fgd_expected", "analysis_"+name+"_discrete.csv.gz")
	return trace.Each(fgdtable.Format(), file, func(r *trace.Record) error {
		if len(r.Curve.Values) != Columns {
			return errkind.Errorf(errkind.Invalid, "%s:%d: %d columns of percent arrived; want 0 to %d", file, r.Line, len(r.Curve.Values),
				Load130)
		}
		visit(&r.Curve)
		return nil
	})
}
