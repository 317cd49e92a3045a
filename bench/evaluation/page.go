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

	"sluice.dev/sluice/internal/drive/measure"
	"sluice.dev/sluice/internal/face/report"
)

const sja = "sja"

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
	return create(filepath.Join(s.out, "evaluation.md"), func(w io.Writer) error { _, err := w.Write(p.Bytes()); return err })
}

func (p *page) head(s *settings, done []result) {
	p.say("# Evaluation of SJA\n\n")
	name, _ := s.base(false)
	where := "on generated work with published statistics (scenario `synthetic-mig`), because no traces were given"
	if s.data != "" {
		where = "on a composition of published traces (scenario `philly-mig`)"
	}
	p.say("Written by `make evaluation`, %s; every figure below comes from that one command. `sluice sim show %s` prints the scenario,\n", where, name)
	p.say("[metrics.md](metrics.md) has the formulas, [scenarios.md](scenarios.md) the language. Seeds: %s. Values are means over seeds with\n", seedText(s.seeds))
	p.say("95%% intervals by Student's t; mechanisms are compared in pairs, seed by seed.\n\n")
	for i := range done {
		if done[i].name == mainStudy {
			p.answer(&done[i])
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

// answer is the main table: sja against the best baseline at every load, for the metrics that matter most.
func (p *page) answer(r *result) {
	p.say("## SJA against the best baseline, by load\n\n")
	p.say("The best baseline is chosen anew for every metric and load, out of all planners, after the fact: what is asked of sja is to beat\n")
	p.say("whichever planner happens to be best there. Seeds differ by a factor and more, because the log's bursts do; so sja is compared by its\n")
	p.say("*ratio* to the baseline on each seed, and the mean of ratios is the geometric one. Shares of the bound are compared by difference.\n\n")
	for _, metric := range decisive() {
		about := measure.About(metric)
		way := "less is better"
		if about.Better == measure.Higher {
			way = "more is better"
		}
		by := "sja / baseline"
		if about.Unit == measure.Share {
			by = "sja - baseline"
		}
		p.say("**%s** (%s)\n\n| load | sja | best baseline | its value | %s, 95%% interval | |\n|---|---|---|---|---|---|\n", about.Title, way, by)
		p.against(r, metric, "")
	}
}

// against is a row for each point of a study: sja beside the best baseline but one.
func (p *page) against(r *result, metric, except string) {
	for i, x := range r.xs() {
		own := r.values(x, sja, metric)
		best, values := r.best(x, metric, except)
		text, how := compare(metric, own, values)
		p.say("| %s | %s | %s | %s | %s | %s |\n", r.pointName(i, x), value(metric, measure.Mean(own).Mean), best, value(metric, measure.Mean(values).Mean), text, how)
	}
	p.say("\n")
}

// unstopped compares with the planners that, like sja, never stop running work: by the share of jobs that may be cut.
func (p *page) unstopped(done []result) {
	i := slices.IndexFunc(done, func(r result) bool { return r.name == "atomizable" })
	if i < 0 {
		return
	}
	p.say("## Against planners that stop nothing, by the share of jobs that may be cut\n\n")
	p.say("The same at load %s, with the best of the planners that never stop running work, as sja does not: all but %s.\n\n", usualLoad, stops)
	for _, metric := range []string{measure.WaitMean, measure.CompletionMean} {
		p.say("**%s**\n\n| may be cut | sja | best baseline | its value | sja / baseline, 95%% interval | |\n|---|---|---|---|---|---|\n", measure.About(metric).Title)
		p.against(&done[i], metric, stops)
	}
}

// stops is the baseline that stops running work.
const stops = "migrate"

// decisive are the metrics by which mechanisms are judged on this page.
func decisive() []string {
	return []string{measure.WaitMean, measure.CompletionMean, measure.CompletionPerWork, measure.BoundShare}
}

// What is said of two mechanisms, where the interval does not hold no difference.
const (
	alike  = "no difference seen"
	better = "sja is better"
	worse  = "sja is worse"
)

// compare gives sja's value against a baseline's, seed by seed, with its interval: by difference for shares, else by ratio.
func compare(metric string, own, other []float64) (text, verdict string) {
	about := measure.About(metric)
	d := measure.Difference(own, other)
	text = fmt.Sprintf("%s (%s to %s)", signed(metric, d.Mean), signed(metric, d.Low), signed(metric, d.High))
	if about.Unit != measure.Share {
		d = measure.Difference(logs(own), logs(other))
		text = fmt.Sprintf("%.2f (%.2f to %.2f)", math.Exp(d.Mean), math.Exp(d.Low), math.Exp(d.High))
		if math.IsNaN(d.Mean) {
			text = "-" // one of them is 0 throughout
		}
	}
	switch {
	case math.IsNaN(d.Low) || d.Low <= 0 && d.High >= 0:
		return text, alike
	case (d.Mean > 0) == (about.Better == measure.Higher):
		return text, better
	}
	return text, worse
}

// logs of values that are above 0; NaN of the others, which leaves them out.
func logs(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Log(v)
		if v <= 0 {
			out[i] = math.NaN()
		}
	}
	return out
}

// losses lists every point of every study at which the best baseline is better.
func (p *page) losses(done []result) {
	p.say("## Where sja loses\n\nEvery point of every study below at which some baseline is better than sja, seed by seed.\n\n")
	p.say("| study | point | metric | sja | best baseline | its value | sja / baseline, or less it |\n|---|---|---|---|---|---|---|\n")
	for i := range done {
		r := &done[i]
		for j, x := range r.xs() {
			for _, metric := range decisive() {
				own := r.values(x, sja, metric)
				best, values := r.best(x, metric, "")
				if len(own) == 0 || len(values) == 0 {
					continue
				}
				if text, how := compare(metric, own, values); how == worse {
					p.say("| %s | %s | %s | %s | %s | %s | %s |\n", r.name, r.pointName(j, x), measure.About(metric).Title,
						value(metric, measure.Mean(own).Mean), best, value(metric, measure.Mean(values).Mean), text)
				}
			}
		}
	}
	p.say("\nWhy:\n\n")
	p.say("- *Nothing to cut.* Where few jobs may be cut sja is one more backfill: it serves rigid jobs as EASY does. conservative plans every\n")
	p.say("  job where it would end first and leaves a slow slice idle for it; that costs utilization and wins time.\n")
	p.say("- *Stopping against not stopping.* migrate stops running work in the instant in which a short job comes; sja waits for the end of a\n")
	p.say("  window, for half of the horizon on average. Where there are always windows about to end (bursts, queues) that matters little; in a\n")
	p.say("  calm cluster it is most of the wait. A shorter horizon buys it back for overhead (see Horizon). migrate needs jobs that can be\n")
	p.say("  stopped at any moment, and is told everything for nothing.\n")
	p.say("- *Gangs.* A planner gives a gang slices of one class and refuses one that is too wide for every class; sja takes any slices\n")
	p.say("  of the node, also for those too wide, and the slowest of them holds all the others up. And gangs go before the market: where\n")
	p.say("  they are most of the work, jobs that may be cut run in what they leave.\n")
	p.say("- *Share of the bound.* It is measured at the end of arrivals. A mechanism that takes the large jobs first has less left over then;\n")
	p.say("  sja under fairness takes those who have had least.\n\n")
}

func (p *page) assumptions(r *result) {
	p.say("## What the composition assumes\n\n")
	for _, a := range r.assumptions {
		p.say("- %s\n", a)
	}
	f := &r.facts
	p.say("\nAt load %s, first seed: %d jobs on %d slices, %.0f%% of the work in jobs that can not be cut, mean job %s on a whole GPU, mean gap\n", usualLoad, f.Jobs, f.Slices, 100*f.RigidShare, f.MeanJob.Round(time.Second))
	p.say("between rigid jobs %s where they run alone.\n\n", f.MeanGap.Round(time.Second))
}

// study writes one section: question, figures, table.
func (p *page) study(r *result) error {
	p.say("## %s\n\n%s\n\n", r.title, r.question)
	for _, metric := range r.charts {
		file := r.name + "-" + metric + ".svg"
		c := r.chart(metric)
		if err := create(filepath.Join(p.dir, file), c.SVG); err != nil {
			return err
		}
		p.say("![%s](evaluation/%s)\n", c.Title, file)
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

// chart is a metric over the setting, a line for each mechanism.
func (r *result) chart(metric string) *report.Chart {
	about := measure.About(metric)
	c := &report.Chart{Title: r.title + ": " + strings.ToLower(about.Title), X: r.axis, Y: report.Axis{Label: about.Title, Unit: about.Unit, Log: r.spread(metric)}}
	for _, m := range r.names() {
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

// best is the baseline with the best mean of a metric, of all but one.
func (r *result) best(x float64, metric, except string) (name string, values []float64) {
	sign := 1.0
	if measure.About(metric).Better == measure.Lower {
		sign = -1
	}
	top := math.Inf(-1)
	for _, m := range r.names() {
		if strings.HasPrefix(m, sja) || m == except {
			continue
		}
		v := r.values(x, m, metric)
		if e := sign * measure.Mean(v).Mean; e > top {
			name, values, top = m, v, e
		}
	}
	return name, values
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
