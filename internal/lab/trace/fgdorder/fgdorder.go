// Package fgdorder reads the orders behind single rows of the published tables of FGD: in which order a seed's pods
// arrived (position,pod), and which rank its nodes had where scores tie (node,rank).
package fgdorder

import (
	"io"

	"sluice.dev/sluice/internal/lab/trace"
)

// Format of the files. Records are ranks: of a pod, its position; a pod that is cloned arrives several times.
func Format() trace.Format {
	return trace.Format{Name: "fgdorder", Doc: "arrival orders and node ranks behind FGD's tables (CSV)", Kinds: []trace.Kind{trace.Rank},
		Open: open}
}

func open(r io.Reader, file string) trace.Reader {
	return trace.OpenCSV(r, file, sheet("pod", "position"), sheet("node", "rank"))
}

func sheet(id, rank string) trace.Sheet {
	return trace.Sheet{Columns: []string{id, rank}, Parse: func(l *trace.Line, r *trace.Record) {
		r.Kind = trace.Rank
		r.Rank = trace.RankRecord{ID: l.Column(0).ID(), Rank: l.Column(1).Count()}
	}}
}
