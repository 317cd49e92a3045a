package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
)

// page is docs/evaluation.md under way.
type page struct {
	bytes.Buffer
	dir string
}

func (p *page) say(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// write makes the page and its figures.
func write(s *settings, done []result) error {
	dir := filepath.Join(s.out, "evaluation")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	p := &page{dir: dir}
	p.head(s, done)
	for i := range done {
		if err := p.study(&done[i]); err != nil {
			return err
		}
	}
	return report.Create(filepath.Join(s.out, "evaluation.md"), func(w io.Writer) error { _, err := w.Write(p.Bytes()); return err })
}

func (p *page) head(s *settings, done []result) {
	p.say("# Evaluation of SJA and JASDA\n\n")
	name, _ := s.base(false)
	where := "on generated work with published statistics (scenario `synthetic-mig`), because no traces were given"
	if s.data != "" {
		where = "on a composition of published traces (scenario `philly-mig`)"
	}
	p.say("Written by `make evaluation`, with 20 seeds by `make evaluation-full`, %s; every figure below comes from that one command. "+
		"`sluice sim show %s` prints the scenario,\n", where, name)
	p.say("[metrics.md](metrics.md) has the formulas, [scenarios.md](scenarios.md) the language. Seeds: %s;\n", seedText(s.seeds))
	p.say("the first %d of them where a setting is varied. Values are means over seeds with 95%% intervals by Student's t; mechanisms "+
		"are compared in pairs,\n", fewSeeds)
	p.say("seed by seed. The order of shortest and of throughput was tried on seeds 1 to 3 of the scenario, that of gangs on 1 to 6,\n")
	p.say("the weights of JASDA's score under fair on seeds 11 to 13; what nothing was chosen on are the other seeds, and other logs\n")
	p.say("([below](#logs-that-nothing-was-chosen-on)).\n\n")
	p.say("Mechanisms are judged by completion. The wait until a job first starts stands in the tables, with a caveat: who cuts jobs " +
		"shortens it by\n")
	p.say("that alone, whether they end sooner or not.\n\n")
	p.say("All of it is about slices that are Sluice's own; [leftover.md](leftover.md) is about slices that it borrows from a host " +
		"scheduler, and [laminar.md](laminar.md) about short tasks on very many nodes.\n\n")
	for i := range done {
		if done[i].name == mainStudy {
			p.answer(&done[i])
			p.ours(done)
			p.unstopped(done)
			p.losses(done)
			p.assumptions(&done[i])
		}
	}
}

func seedText(seeds []uint64) string {
	var out []string
	for _, n := range seeds {
		out = append(out, strconv.FormatUint(n, 10))
	}
	return strings.Join(out, ", ")
}

func (p *page) assumptions(r *result) {
	p.say("## What the composition assumes\n\n")
	for _, a := range r.assumptions {
		p.say("- %s\n", a)
	}
	f := &r.facts
	p.say("\nAt load %s, first seed: %d jobs on %d slices, %.0f%% of the work in jobs that can not be cut, mean job %s on a whole GPU, "+
		"mean gap\n", usualLoad, f.Jobs, f.Slices, 100*f.RigidShare, f.MeanJob.Round(time.Second))
	p.say("between rigid jobs %s where they run alone.\n\n", f.MeanGap.Round(time.Second))
}

// study writes one section: question, figures, table.
func (p *page) study(r *result) error {
	p.say("## %s\n\n%s\n\n", r.title, r.question)
	for _, metric := range r.charts {
		file := r.name + "-" + metric + ".svg"
		c := r.chart(metric)
		if err := report.Create(filepath.Join(p.dir, file), c.SVG); err != nil {
			return err
		}
		p.say("![%s](evaluation/%s)\n", c.Title, file)
	}
	if err := p.frontiers(r); err != nil {
		return err
	}
	table := r.columns()
	p.say("\n| %s | mechanism |", r.axis.Label)
	for _, metric := range table {
		p.say(" %s |", measure.About(metric).Title)
	}
	p.say("\n|---|---|%s\n", strings.Repeat("---|", len(table)))
	for i, x := range r.xs() {
		// Those that did exactly the same share a row.
		var rows []string
		who := map[string]string{}
		for _, m := range r.names() {
			var row strings.Builder
			for _, metric := range table {
				fmt.Fprintf(&row, " %s |", estimate(metric, measure.Mean(r.values(x, m, metric))))
			}
			if who[row.String()] == "" {
				rows = append(rows, row.String())
				who[row.String()] = m
			} else {
				who[row.String()] += ", " + m
			}
		}
		for _, row := range rows {
			p.say("| %s | %s |%s\n", r.pointName(i, x), who[row], row)
		}
	}
	p.say("\n")
	p.usual(r)
	if r.name == mainStudy {
		p.cost(r)
	}
	return nil
}

// columns of the table: those of the study, and what happened to jobs that did not finish, where there are any. Who turns
// jobs away has shorter waits.
func (r *result) columns() []string {
	out := slices.Clone(r.table)
	for _, metric := range []string{measure.Rejected, measure.Failed, measure.Unfinished} {
		if slices.ContainsFunc(r.Rows, func(w report.Row) bool { return w.Metrics.Get(metric) > 0 }) {
			out = append(out, metric)
		}
	}
	return out
}

// pointName is how the page calls a point: the value as it was set where the axis has only a number for it.
func (r *result) pointName(i int, x float64) string {
	if i < len(r.points) {
		if _, v, ok := strings.Cut(r.points[i].label, "="); ok {
			return v
		}
		return r.points[i].label
	}
	return short(x)
}

// peers are the baselines that figures show beside ours: what clusters run, and the best known orders that know lengths, without
// and with stopping work. The table has the others.
func peers() []string { return []string{"easy", "sjf-easy", "srpt"} }

// chart is a metric over the setting, a line for each of ours and of their peers.
func (r *result) chart(metric string) *report.Chart {
	about := measure.About(metric)
	c := &report.Chart{Title: r.title + ": " + strings.ToLower(about.Title), X: r.axis, Y: report.Axis{Label: about.Title, Unit: about.Unit,
		Log: r.spread(metric)}}
	for _, m := range r.names() {
		if !mine(m) && !slices.Contains(peers(), m) {
			continue
		}
		s := report.Series{Name: m}
		for _, x := range r.xs() {
			e := measure.Mean(r.values(x, m, metric))
			if !math.IsNaN(e.Mean) {
				s.Dots = append(s.Dots, report.Dot{X: x, Y: e.Mean, Low: e.Low, High: e.High})
			}
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// spread says whether the values of a metric differ by more than twenty times: such are drawn in decades.
func (r *result) spread(metric string) bool {
	if measure.About(metric).Unit == measure.Share {
		return false
	}
	low, high := math.Inf(1), 0.0
	for _, x := range r.xs() {
		for _, m := range r.names() {
			if v := measure.Mean(r.values(x, m, metric)).Mean; v > 0 {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	return high > 20*low
}

// xs are the settings that were run, in the order of the points.
func (r *result) xs() (out []float64) {
	for i := range r.Rows {
		if x := r.Rows[i].Params[0].Value; !slices.Contains(out, x) {
			out = append(out, x)
		}
	}
	return out
}

// names are the mechanisms, in the order in which they ran.
func (r *result) names() (out []string) {
	for i := range r.Rows {
		if m := r.Rows[i].Mechanism; !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// values of a metric at a setting, one for each seed in the order they were run.
func (r *result) values(x float64, mechanism, metric string) (out []float64) {
	for i := range r.Rows {
		if w := &r.Rows[i]; w.Mechanism == mechanism && w.Params[0].Value == x {
			out = append(out, w.Metrics.Get(metric))
		}
	}
	return out
}

// short is a number with as many digits as a reader wants.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// value of a metric for people.
func value(metric string, v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case measure.About(metric).Unit == measure.Seconds && math.Abs(v) >= 60:
		return time.Duration(v * float64(time.Second)).Round(time.Second).String()
	case measure.About(metric).Unit == measure.Seconds:
		return fmt.Sprintf("%.1fs", v)
	case measure.About(metric).Unit == measure.Share:
		return fmt.Sprintf("%.2f%%", 100*v)
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func signed(metric string, v float64) string {
	if v > 0 {
		return "+" + value(metric, v)
	}
	return value(metric, v)
}

// estimate is a mean with half of its interval.
func estimate(metric string, e measure.Estimate) string {
	if math.IsNaN(e.Low) || e.High == e.Low {
		return value(metric, e.Mean)
	}
	return value(metric, e.Mean) + " ± " + value(metric, e.High-e.Mean)
}
