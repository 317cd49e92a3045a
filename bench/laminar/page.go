package main

import (
	"cmp"
	_ "embed"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template"

	pages "sluice.dev/sluice/bench/page"
	"sluice.dev/sluice/bench/program"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
)

//go:embed laminar.md.tmpl
var text string

// page is docs/laminar.md under way.
type page struct {
	*pages.Page
	Seeds []uint64
	Done  []result
}

// write makes the page and its figures.
func write(s *settings, done []result) error {
	if err := os.RemoveAll(filepath.Join(s.Out, "laminar")); err != nil { // no figure of an earlier page stays
		return err
	}
	out, err := pages.New(s.Out, "laminar")
	if err != nil {
		return err
	}
	return out.Write(text, template.FuncMap{"machine": machine, "same": func() float64 { return samePlaced },
		"ratio": func(a, b float64) float64 { return a / b }}, &page{out, s.Seeds, done})
}

// By is a study by its name, nil if it was not run.
func (p *page) By(name string) *result {
	for i := range p.Done {
		if r := &p.Done[i]; r.Name == name && len(r.Rows) > 0 {
			return r
		}
	}
	return nil
}

// At is a metric of laminar's at a setting.
func (r *result) At(x float64, metric string) float64 { return r.mean(x, ours, metric) }

// Probe is laminar's processor time for each probe, in nanoseconds.
func (r *result) Probe(x float64) float64 {
	return r.At(x, measure.CPUNanosPerTask) / r.At(x, measure.HopsMean)
}

// machine is the processor's name, as its system has it.
func machine() string {
	model, _ := program.Processor()
	return "one processor of a shared " + cmp.Or(model, "machine")
}

// Pictures draws the figures of a study, and returns what shows each.
func (p *page) Pictures(r *result) ([]string, error) {
	var all []pages.Picture
	draw := func(name string, c *report.Chart) { all = append(all, pages.Picture{Name: name, Chart: c}) }
	for _, metric := range r.Charts {
		draw(r.Name+"-"+metric, r.chart(metric))
	}
	for _, x := range r.Frontier {
		for _, metric := range []string{measure.MessagesPerTask, measure.LandingP99} {
			draw(fmt.Sprintf("%s-frontier-%s-%g", r.Name, metric, x), r.against(metric, x))
		}
	}
	return p.DrawAll(all)
}

// columns of a study's table.
func (r *result) columns() []string {
	if r.CPU {
		return []string{measure.CPUNanosPerTask, measure.PlacedShare, measure.HopsMean, measure.MessagesPerTask}
	}
	return []string{measure.PlacedShare, measure.LandingP50, measure.LandingP99, measure.HopsMean, measure.MessagesPerTask,
		measure.LeftoverUse, measure.ZoneFairness}
}

// Titles of the columns.
func (r *result) Titles() (titles []string) {
	for _, metric := range r.columns() {
		titles = append(titles, strings.Replace(measure.About(metric).Title, "per job", "per task", 1)) // a task is all that a job has here
	}
	return titles
}

// Table are the rows of each mechanism at each point, and of the theory.
func (r *result) Table() (rows []string) {
	for _, pt := range r.Points {
		for _, m := range r.Names() {
			cells := []string{pt.Label, m}
			for _, metric := range r.columns() {
				cells = append(cells, estimate(metric, r.Mean(pt.X, m, metric)))
			}
			rows = append(rows, pages.Row(cells))
		}
		if f, ok := r.solved[pt.X]; ok {
			rows = append(rows, fmt.Sprintf("| %s | *%s* | %s | | | %s | | %s | |", pt.Label, theory, value(measure.PlacedShare, f.Placed),
				value(measure.HopsMean, f.Hops), value(measure.LeftoverUse, f.Use)))
		}
	}
	return rows
}

// value of a metric for people.
func value(metric string, v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case measure.About(metric).Unit == measure.Seconds && v < 1:
		return fmt.Sprintf("%.3g ms", 1000*v)
	case measure.About(metric).Unit == measure.Seconds:
		return fmt.Sprintf("%.3g s", v)
	case measure.About(metric).Unit == measure.Share:
		return fmt.Sprintf("%.4f", v)
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// estimate is a mean with half of its interval.
func estimate(metric string, e measure.Estimate) string {
	text := value(metric, e.Mean)
	if half := e.High - e.Mean; half > e.Mean/1000 {
		return text + " ± " + value(metric, half)
	}
	return text
}

// first are the mechanisms that figures name, in this order, as long as there is room.
func first(names []string) (out []string) {
	for _, m := range append([]string{ours, "central", "spillback", "omega", "two-level"}, names...) {
		if slices.Contains(names, m) && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}
