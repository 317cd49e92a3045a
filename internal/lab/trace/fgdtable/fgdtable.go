// Package fgdtable reads the published result tables of FGD (USENIX ATC'23): for each workload, policy and seed the
// allocated or fragmented share of the cluster, in percent, while the arrived share rounds to 0, 1, ... 130 percent.
package fgdtable

import (
	"io"
	"strconv"

	"sluice.dev/sluice/internal/lab/trace"
)

// Arrived is the last column: percent of the cluster's GPU capacity that has arrived.
const Arrived = 130

const (
	workload = iota
	policy
	tune
	seed
	first // of the values
	gpus  = first + Arrived + 1
)

// Format of the files. Records are curves; Table is the file's name ("analysis_allo_discrete").
func Format() trace.Format {
	return trace.Format{Name: "fgdtable", Doc: "published result tables of FGD, USENIX ATC'23 (CSV)", Kinds: []trace.Kind{trace.Curve},
		Open: open}
}

func open(r io.Reader, file string) trace.Reader {
	columns := []string{workload: "workload", policy: "sc_policy", tune: "tune", seed: "seed"}
	for percent := range Arrived + 1 {
		columns = append(columns, strconv.Itoa(percent))
	}
	t := table{name: trace.Stem(file), values: make([]float64, Arrived+1)}
	return trace.OpenCSV(r, file, trace.Sheet{Columns: columns, Optional: []string{"total_gpus"}, Parse: t.parse})
}

type table struct {
	name   string
	values []float64 // every record's
}

func (t table) parse(l *trace.Line, r *trace.Record) {
	r.Kind = trace.Curve
	r.Curve = trace.CurveRecord{
		Table:     t.name,
		Workload:  l.Column(workload).Name(),
		Policy:    l.Column(policy).Name(),
		Seed:      l.Column(seed).Count(),
		Inflation: l.Column(tune).Milli(),
		GPUs:      trace.Unknown,
		Values:    t.values,
	}
	if l.Has(gpus) {
		r.Curve.GPUs = l.Column(gpus).Count()
	}
	for percent := range t.values {
		value := l.Column(first + percent)
		if t.values[percent] = value.Float(); t.values[percent] < 0 || t.values[percent] > 100 {
			value.Fail("percent, 0 to 100")
		}
	}
}
