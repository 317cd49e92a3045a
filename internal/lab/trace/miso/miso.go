// Package miso reads the summary of MISO's measurements (SoCC'22): how long one training iteration takes for each model,
// batch size and MIG profile of an A100-40GB.
package miso

import (
	"io"
	"strings"
	"time"

	"sluice.dev/sluice/internal/lab/trace"
)

const (
	model = iota
	batch
	memory
	profile
	iterations
	first
	median
	low
	high
	variation
)

// Format of miso_mig_iter_summary.csv. Records are measurements; Speed is given where the lines of one model and batch
// stand together and the whole GPU (7g) is among them.
func Format() trace.Format {
	return trace.Format{Name: "miso", Doc: "training speeds on the MIG profiles of an A100-40GB, MISO, SoCC'22 (CSV)",
		Kinds: []trace.Kind{trace.Measurement}, Open: open}
}

func open(r io.Reader, file string) trace.Reader {
	return &grouped{lines: trace.OpenCSV(r, file, trace.Sheet{
		Columns: []string{
			model: "model", batch: "batch", memory: "mem_mib_7g", profile: "profile", iterations: "n_iter", first: "first_iter_s",
			median: "median_iter_s", low: "p05_iter_s", high: "p95_iter_s", variation: "cv",
		},
		Parse: parse,
	})}
}

func parse(l *trace.Line, r *trace.Record) {
	r.Kind = trace.Measurement
	r.Measurement = trace.MeasurementRecord{
		Program: l.Column(model).Name(), Batch: l.Column(batch).Count(), Profile: l.Column(profile).Name(),
		Iterations: l.Column(iterations).Count(), First: l.Column(first).Seconds(), Low: l.Column(low).Seconds(),
		Iteration: l.Column(median).Seconds(), High: l.Column(high).Seconds(), Variation: l.Column(variation).Float(),
		Speed: trace.Unknown, Memory: l.Column(memory).Count(),
	}
	if it := r.Measurement.Iteration; it == 0 || it > 24*time.Hour {
		l.Column(median).Fail("a time above 0, up to a day")
	}
}

// grouped holds back the records of one program and batch until the whole GPU's is known. MIG has few profiles, so a
// longer group is given out in parts.
type grouped struct {
	lines trace.Reader
	held  []trace.Record // of one group, then the first of the next
	given int            // of held
	ready int            // of held: the group is complete up to here
	err   error          // final, of lines
}

const maxProfiles = 64

// Treated implements trace.Reader.
func (g *grouped) Treated() []trace.Treatment { return g.lines.Treated() }

// Next implements trace.Reader.
func (g *grouped) Next(r *trace.Record) error {
	for g.given == g.ready {
		if g.err != nil && g.ready == len(g.held) {
			return g.err
		}
		g.group()
	}
	*r = g.held[g.given]
	g.given++
	return nil
}

// group reads up to the end of the next group and sets its speeds.
func (g *grouped) group() {
	g.held = append(g.held[:0], g.held[g.ready:]...)
	g.given = 0
	for g.err == nil && len(g.held) < maxProfiles {
		n := len(g.held)
		g.held = append(g.held, trace.Record{})
		if g.err = g.lines.Next(&g.held[n]); g.err != nil {
			g.held = g.held[:n]
			break
		}
		if n > 0 && !together(&g.held[n], &g.held[0]) {
			break
		}
	}
	g.ready = len(g.held)
	if n := g.ready - 1; n > 0 && !together(&g.held[n], &g.held[0]) {
		g.ready = n
	}
	setSpeeds(g.held[:g.ready])
}

func together(a, b *trace.Record) bool {
	return a.Measurement.Program == b.Measurement.Program && a.Measurement.Batch == b.Measurement.Batch
}

func setSpeeds(group []trace.Record) {
	for i := range group {
		if whole := &group[i].Measurement; strings.HasPrefix(whole.Profile, "7g.") {
			for k := range group {
				m := &group[k].Measurement
				m.Speed = int64((whole.Iteration*1000 + m.Iteration/2) / m.Iteration)
			}
		}
	}
}
