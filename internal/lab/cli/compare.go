package cli

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
)

func (a *app) simCompareCmd() *cobra.Command {
	var f simFlags
	var metrics []string
	var p pictures
	c := &cobra.Command{
		Use: "compare NAME|FILE | A.json B.json", Short: "Compare mechanisms, seed by seed",
		Long: `Run a scenario under several mechanisms and compare each with the first, seed by seed:
who won in one sentence (by the mean completion time, or the first metric asked for), then
the difference of every metric with its 95% interval, and who is better. Better is said only where the interval does not hold zero; with one seed there is none.

With two files, which sim run -o json wrote, it compares what is stored: the same
mechanism in both, or the one of each where each has only one.`,
		Example: `  sluice sim compare small --mechanism sja,easy --seeds 1-20
  sluice sim compare small -m sja,easy,conservative --metric waitMean,utilization -o json
  sluice sim compare before.json after.json`,
		Args: cobra.RangeArgs(1, 2), ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error {
			infos, err := chosenMetrics(metrics)
			if err != nil {
				return err
			}
			if len(args) == 2 {
				if p.report != "" {
					return command.Usage("--report: stored results have no timelines to draw; give it to sim run, or compare a scenario")
				}
				return a.compareFiles(args[0], args[1], infos)
			}
			return a.compareRun(cmd.Context(), args[0], &f, infos, p)
		},
	}
	f.add(a, c)
	c.Flags().StringVar(&p.report, "report", "", "write a page with plots, tables and a timeline to this file (HTML)")
	c.Flags().StringSliceVar(&metrics, "metric", nil, "metrics to compare (default: all)")
	return a.OutputAs(c, "table", "json", "csv")
}

// chosenMetrics finds metrics by name, those of a negotiation and of groups of jobs among them; the error names the near
// miss of every unknown one.
func chosenMetrics(names []string) ([]measure.Info, error) {
	if len(names) == 0 {
		return measure.Table(), nil
	}
	all := slices.Concat(measure.Table(), measure.NegotiationTable(), measure.FlowTable(), measure.SurvivalTable(), measure.VisitsTable(),
		measure.LentTable(), measure.StartsTable())
	for _, n := range names {
		if metric, group := measure.Group(n); group != "" && slices.Contains(measure.GroupTable(), metric) {
			all = append(all, measure.About(n))
		}
	}
	var known []string
	for _, m := range all {
		known = append(known, m.Name)
	}
	var out []measure.Info
	var problems []error
	for _, n := range names {
		if i := slices.Index(known, n); i >= 0 {
			out = append(out, all[i])
		} else {
			problems = append(problems, fmt.Errorf("--metric: there is no %q; %s", n, strict.Hint(n, known)))
		}
	}
	if len(problems) > 0 {
		return nil, command.Usage("%w", errors.Join(problems...))
	}
	return out, nil
}

func (a *app) compareRun(ctx context.Context, name string, f *simFlags, metrics []measure.Info, p pictures) error {
	o, err := f.options(a, name)
	if err = errors.Join(err, writable("--report", p.report)); err != nil {
		return err
	}
	if o.Scenario.Swarm != nil && len(metrics) == len(measure.Table()) {
		metrics = append(measure.FlowTable(), measure.About(measure.MessagesPerTask))
	}
	if len(o.Mechanisms) < 2 {
		return command.Usage("one mechanism has nothing to be compared with; give --mechanism a,b")
	}
	results, account, err := a.play(ctx, &o, p)
	if err != nil {
		return err
	}
	var runs []measure.Run
	for i := range results {
		if !results[i].Partial {
			runs = append(runs, results[i].Run)
		}
	}
	of := func(m string) side { return side{m, only(runs, m)} }
	var list []versus
	for _, m := range o.Mechanisms[1:] {
		list = append(list, compare(of(o.Mechanisms[0].Name), of(m.Name), metrics)...)
	}
	sides := make([]side, len(o.Mechanisms))
	for i, m := range o.Mechanisms {
		sides[i] = of(m.Name)
	}
	a.verdict(o.Scenario.Name, sides, metrics)
	if err := a.versus(list); err != nil {
		return err
	}
	if err := p.write(&o, results, account); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return &command.Failure{Code: command.ExitInterrupted, Err: fmt.Errorf("interrupted: %d of %d runs are whole, the rest is left out",
			len(runs), len(o.Mechanisms)*len(o.Seeds))}
	}
	return nil
}

// only keeps the runs of a mechanism.
func only(runs []measure.Run, mechanism string) (out []measure.Run) {
	for _, r := range runs {
		if r.Mechanism == mechanism {
			out = append(out, r)
		}
	}
	return out
}

func (a *app) compareFiles(first, second string, metrics []measure.Info) error {
	x, err1 := readRuns(first)
	y, err2 := readRuns(second)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	for i, runs := range [][]measure.Run{x, y} {
		if len(runs) == 0 {
			return command.Usage("%s holds no runs", []string{first, second}[i])
		}
	}
	if a, b := filepath.Base(first), filepath.Base(second); a != b {
		first, second = a, b
	}
	var list []versus
	left, right := mechanismsOf(x), mechanismsOf(y)
	for _, m := range left {
		switch {
		case slices.Contains(right, m):
			list = append(list, compare(side{m + " in " + first, only(x, m)}, side{m + " in " + second, only(y, m)}, metrics)...)
		case len(left) == 1 && len(right) == 1:
			list = append(list, compare(side{m, x}, side{right[0], y}, metrics)...)
		}
	}
	if len(list) == 0 {
		return command.Usage("%s has %s and %s has %s: no mechanism is in both", first, strings.Join(left, ", "), second,
			strings.Join(right, ", "))
	}
	if len(left) == 1 && len(right) == 1 {
		a.verdict(where(x), []side{{name: list[0].a, runs: x}, {name: list[0].b, runs: y}}, metrics)
	}
	// Stored results need not have every metric.
	list = slices.DeleteFunc(list, func(v versus) bool { return v.difference.N == 0 && math.IsNaN(v.meanA) && math.IsNaN(v.meanB) })
	return a.versus(list)
}

func readRuns(path string) ([]measure.Run, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, command.Usage("%w", err)
	}
	defer f.Close()
	runs, err := measure.ReadJSON(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return runs, nil
}

// mechanismsOf lists the mechanisms in order of first appearance.
func mechanismsOf(runs []measure.Run) (out []string) {
	for _, r := range runs {
		if !slices.Contains(out, r.Mechanism) {
			out = append(out, r.Mechanism)
		}
	}
	return out
}

// side is one of two things compared.
type side struct {
	name string
	runs []measure.Run
}

// versus is how two compare on one metric.
type versus struct {
	metric measure.Info
	a, b   string
	// means over the seeds that both have, and the estimate of the difference a - b.
	meanA, meanB float64
	difference   measure.Estimate
	// better is a, b, or empty where neither is.
	better string
}

// where stored runs took place: their scenario, or how many they are.
func where(runs []measure.Run) string {
	var names []string
	for i := range runs {
		if !slices.Contains(names, runs[i].Scenario) {
			names = append(names, runs[i].Scenario)
		}
	}
	if len(names) == 1 {
		return names[0]
	}
	return fmt.Sprintf("%d scenarios", len(names))
}

// verdict says for people who won, by the mean completion where that is among the metrics, else by the first that has better
// and worse. Runs are paired by scenario and seed with those of the first side.
func (a *app) verdict(where string, sides []side, metrics []measure.Info) {
	if a.Format != "table" {
		return
	}
	metric := ""
	for _, m := range metrics {
		if m.Better != measure.Neither && (metric == "" || m.Name == measure.CompletionMean) {
			metric = m.Name
		}
	}
	c := report.Contest{Where: where}
	for _, s := range sides {
		c.Names = append(c.Names, s.name)
	}
	c.Values = func(name, metric string) []float64 {
		at := slices.IndexFunc(sides, func(s side) bool { return s.name == name })
		out := make([]float64, len(sides[0].runs))
		for i, r := range sides[0].runs {
			out[i] = math.NaN()
			for _, s := range sides[at].runs {
				if s.Scenario == r.Scenario && s.Seed == r.Seed {
					out[i] = s.Metrics.Get(metric)
				}
			}
		}
		return out
	}
	if text := c.Verdict(metric); metric != "" && text != "" {
		fmt.Fprintf(a.Out, "%s\n\n", text)
	}
}

// compare pairs runs by scenario and seed.
func compare(a, b side, metrics []measure.Info) []versus {
	type key struct {
		scenario string
		seed     uint64
	}
	other := map[key]*measure.Run{}
	for i := range b.runs {
		other[key{b.runs[i].Scenario, b.runs[i].Seed}] = &b.runs[i]
	}
	out := make([]versus, 0, len(metrics))
	for _, m := range metrics {
		var x, y []float64
		for i := range a.runs {
			r := &a.runs[i]
			if s := other[key{r.Scenario, r.Seed}]; s != nil {
				x, y = append(x, r.Metrics.Get(m.Name)), append(y, s.Metrics.Get(m.Name))
			}
		}
		v := versus{metric: m, a: a.name, b: b.name, meanA: measure.Mean(x).Mean, meanB: measure.Mean(y).Mean,
			difference: measure.Difference(x, y)}
		switch d := v.difference; {
		case m.Better == measure.Neither || math.IsNaN(d.Low):
		case d.Low > 0 && m.Better == measure.Higher, d.High < 0 && m.Better == measure.Lower:
			v.better = a.name
		case d.Low > 0 || d.High < 0:
			v.better = b.name
		}
		out = append(out, v)
	}
	return out
}

// versus prints comparisons in the form asked for.
func (a *app) versus(list []versus) error {
	switch a.Format {
	case "json":
		out := make([]command.Record, len(list))
		for i, v := range list {
			out[i] = command.Record{
				{Key: "metric", Value: v.metric.Name}, {Key: "a", Value: v.a}, {Key: "b", Value: v.b},
				{Key: "pairs", Value: v.difference.N}, {Key: "meanA", Value: finite(v.meanA)}, {Key: "meanB", Value: finite(v.meanB)},
				{Key: "difference", Value: finite(v.difference.Mean)}, {Key: "low", Value: finite(v.difference.Low)},
				{Key: "high", Value: finite(v.difference.High)}, {Key: "better", Value: v.better},
			}
		}
		return a.Dump(out)
	case "csv":
		w := csv.NewWriter(a.Out)
		// it keeps its first error for Error
		_ = w.Write([]string{"metric", "a", "b", "pairs", "meanA", "meanB", "difference", "low", "high", "better"})
		for _, v := range list {
			row := []string{v.metric.Name, v.a, v.b, strconv.Itoa(v.difference.N)}
			for _, x := range []float64{v.meanA, v.meanB, v.difference.Mean, v.difference.Low, v.difference.High} {
				if math.IsNaN(x) {
					row = append(row, "")
				} else {
					row = append(row, strconv.FormatFloat(x, 'g', -1, 64))
				}
			}
			_ = w.Write(append(row, v.better))
		}
		w.Flush()
		return w.Error()
	}
	return versusTable(a.Out, list)
}

// finite is a number, nil if it is none.
func finite(v float64) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return v
}

func versusTable(out io.Writer, list []versus) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	wins := map[string]int{}
	var names []string
	for i, v := range list {
		if i == 0 || v.b != list[i-1].b || v.a != list[i-1].a {
			if i > 0 {
				fmt.Fprintln(w)
			}
			fmt.Fprintf(w, "METRIC\t%s\t%s\tDIFFERENCE\t95%% INTERVAL\tBETTER\n", v.a, v.b)
		}
		interval, better := "-", "-"
		if d := v.difference; !math.IsNaN(d.Low) {
			interval = difference(v.metric, d.Low) + " to " + difference(v.metric, d.High)
		}
		if v.better != "" {
			better = v.better
			if wins[better]++; wins[better] == 1 {
				names = append(names, better)
			}
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", v.metric.Name, figure(v.metric.Name, v.meanA), figure(v.metric.Name, v.meanB),
			difference(v.metric, v.difference.Mean), interval, better)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(list) > 0 {
		fmt.Fprintf(out, "\n%d seeds in both", list[0].difference.N)
		for _, n := range names {
			fmt.Fprintf(out, "; %s is better %d times", n, wins[n])
		}
		fmt.Fprintln(out)
	}
	return nil
}

// difference is a figure with its sign; of shares it is in points.
func difference(m measure.Info, v float64) string {
	text := figure(m.Name, v)
	if m.Unit == measure.Share && !math.IsNaN(v) {
		text = fmt.Sprintf("%.1f pp", 100*v)
	}
	if v > 0 {
		text = "+" + text
	}
	return text
}
