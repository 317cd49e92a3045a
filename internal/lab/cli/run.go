package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
)

func (a *app) simRunCmd() *cobra.Command {
	var f simFlags
	var p pictures
	c := &cobra.Command{
		Use: "run NAME|FILE", Short: "Run a scenario",
		Long: `Run a scenario under one mechanism or several, with one seed or several, and print what
is measured: docs/metrics.md defines each figure. What the scenario expects is checked.

sja is the gate, the zone and the nodes of the daemon; sja:throughput and so on run them
under that policy. jasda is the same with jobs that bid and a market that clears. In a scenario with jobs
that are resident sja:cold and jasda:cold play them as if they were not. Every
other mechanism is a planner that runs each job as one block; in a scenario with a host it
is a filler of the gaps that the host leaves, such as requeue or checkpoint:10m; and in one
of lean nodes, such as laminar-1k, a way to place short tasks, such as sparrow.

Interrupted, it prints what it has and says so.

Exit codes: 0 done, and what the scenario expects holds; 1 it does not; 2 wrong arguments
or a wrong file; 130 interrupted.`,
		Example: `  sluice sim run small
  sluice sim run small --mechanism sja,jasda --set market.lambda=0.3
  sluice sim run small --mechanism sja,sja:throughput,easy --seeds 1-20 -o json
  sluice sim run philly-mig --data ./data --mechanism all
  sluice sim run stories/host-hours -m all,checkpoint:5m
  sluice sim run small --set workload.synthetic.0.load=0.8 --set mechanism.horizon=30m
  sluice sim run small -m sja,easy --report small.html --perfetto small.json
  sluice sim run laminar-1k -m all --cpu
  sluice sim run tickets --messages
  sluice sim run bug.yml -o wide`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: completeScenarios,
		RunE: func(cmd *cobra.Command, args []string) error { return a.simRun(cmd.Context(), args[0], &f, p) },
	}
	f.add(a, c)
	c.Flags().StringVar(&p.report, "report", "", "write a page with plots, tables and a timeline to this file (HTML)")
	c.Flags().StringVar(&p.perfetto, "perfetto", "", "write what ran where under the first seed to this file, for ui.perfetto.dev (JSON)")
	c.AddCommand(a.simRunFGDCmd())
	return a.OutputAs(c, "table", "wide", "json", "csv")
}

func (a *app) simRun(ctx context.Context, name string, f *simFlags, p pictures) error {
	o, err := f.options(a, name)
	if err = errors.Join(err, writable("--report", p.report), writable("--perfetto", p.perfetto)); err != nil {
		return err
	}
	results, account, err := a.play(ctx, &o, p)
	if err != nil {
		return err
	}
	if (a.Format == "table" || a.Format == "wide") && ctx.Err() == nil {
		f, err := facts(ctx, o.Scenario, o.Data)
		switch {
		case err == nil:
			fmt.Fprintf(a.Out, "%s: %s\n\n", o.Scenario.Name, f)
		case ctx.Err() == nil:
			return err
		}
	}
	if err := a.simResults(results); err != nil {
		return err
	}
	if err := p.write(&o, results, account); err != nil {
		return err
	}
	findings := outcome.Judge(o.Scenario.Expect, o.Mechanisms[0].Name, results)
	a.findings(findings)
	if ctx.Err() != nil {
		whole := 0
		for i := range results {
			if !results[i].Partial {
				whole++
			}
		}
		return &command.Failure{Code: command.ExitInterrupted, Err: fmt.Errorf("interrupted: %d of %d runs are whole, %d were cut off",
			whole, len(o.Mechanisms)*len(o.Seeds), len(results)-whole)}
	}
	for _, f := range findings {
		if !f.OK {
			return &command.Failure{Code: command.ExitFailed, Err: errkind.Errorf(errkind.Conflict, "scenario %s is not as expected",
				o.Scenario.Name)}
		}
	}
	return nil
}

// simResults prints results in the form asked for.
func (a *app) simResults(results []outcome.Result) error {
	var runs []measure.Run // whole ones: programs could not tell the others
	for i := range results {
		if !results[i].Partial {
			runs = append(runs, results[i].Run)
		}
	}
	switch a.Format {
	case "json":
		return measure.WriteJSON(a.Out, runs)
	case "csv":
		return measure.WriteCSV(a.Out, runs)
	case "wide":
		return everyMetric(a.Out, results)
	}
	if err := errors.Join(overview(a.Out, results), started(a.Out, results), mailed(a.Out, results)); err != nil || len(results) != 1 {
		return err
	}
	return reclaimed(a.Out, results[0].Reclaims)
}

// mostReclaims is how many decisions for guests are printed of one run.
const mostReclaims = 40

// reclaimed is what was decided about subjobs for guests, in the only run.
func reclaimed(out io.Writer, list []status.ReclaimStep) error {
	if len(list) == 0 {
		return nil
	}
	if older := len(list) - mostReclaims; older > 0 {
		list = list[older:]
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "AT\tSTEP\tJOB\tSLICE\tFOR\tWHY")
	for _, s := range list {
		at := s.At.Sub(0).Round(time.Second)
		fmt.Fprintln(w, strings.Join([]string{at.String(), s.Step, string(s.Job), string(s.Slice), s.Who, s.Why}, "\t"))
	}
	return w.Flush()
}

// group is the results of one mechanism: the whole runs, or where there are none those that were cut off.
type group struct {
	name  string
	runs  []*outcome.Result
	whole bool
	// cut off runs beside the whole ones.
	cut int
}

// perMechanism groups results, in order of first appearance.
func perMechanism(results []outcome.Result) (groups []group) {
	for i := range results {
		r := &results[i]
		at := slices.IndexFunc(groups, func(g group) bool { return g.name == r.Mechanism })
		if at < 0 {
			at = len(groups)
			groups = append(groups, group{name: r.Mechanism})
		}
		switch g := &groups[at]; {
		case !r.Partial && !g.whole:
			g.cut += len(g.runs)
			g.runs, g.whole = []*outcome.Result{r}, true
		case r.Partial && g.whole:
			g.cut++
		default:
			g.runs = append(g.runs, r)
		}
	}
	return groups
}

// seeds says how many runs the means are over.
func (g *group) seeds() string {
	switch {
	case !g.whole:
		return fmt.Sprintf("%d, cut off", len(g.runs))
	case g.cut > 0:
		return fmt.Sprintf("%d (%d more cut off)", len(g.runs), g.cut)
	}
	return strconv.Itoa(len(g.runs))
}

// finished is the mean number of jobs that finished.
func (g *group) finished() float64 {
	sum := int64(0)
	for _, r := range g.runs {
		sum += r.Finished
	}
	return float64(sum) / float64(len(g.runs))
}

// mean of a metric over the runs, those left out in which it could not be measured.
func (g *group) mean(metric string) float64 {
	values := make([]float64, len(g.runs))
	for i, r := range g.runs {
		values[i] = r.Metrics.Get(metric)
	}
	return measure.Mean(values).Mean
}

// overview is one row for each mechanism: means over the seeds of the main metrics.
func overview(out io.Writer, results []outcome.Result) error {
	type column struct{ head, metric string }
	columns := []column{
		{"USE", measure.Utilization}, {"USEFUL", measure.UsefulUtilization}, {"WAIT", measure.WaitMean}, {"WAIT-P95", measure.WaitP95},
		{"COMPLETION", measure.CompletionMean}, {"SLOWDOWN", measure.SlowdownMean}, {"PIECES", measure.Subjobs},
		{"OVERHEAD", measure.OverheadShare}, {"LOST", measure.LostShare}, {"UNFINISHED", measure.Unfinished}, {"BOUND", measure.BoundShare},
		{"/LEAST", measure.CompletionOverBound},
	}
	if slices.ContainsFunc(results, func(r outcome.Result) bool { return !math.IsNaN(r.Metrics.Get(measure.Gaps)) }) {
		columns = append([]column{
			{"LEFTOVER", measure.LeftoverUseful}, {"LOST-WORK", measure.LostWork}, {"HOST-DELAY", measure.HostDelayMean},
		}, columns[4:10]...) // with a host's leftovers, use and waits are no measure
	}
	if isLean(results) {
		columns = []column{
			{"PLACED", measure.PlacedShare}, {"LANDING-P50", measure.LandingP50}, {"LANDING-P99", measure.LandingP99},
			{"HOPS", measure.HopsMean},
			{"MESSAGES", measure.MessagesPerTask}, {"LEFTOVER-USE", measure.LeftoverUse}, {"FAIRNESS", measure.ZoneFairness},
		}
		if !math.IsNaN(results[0].Metrics.Get(measure.CPUNanosPerTask)) {
			columns = append(columns, column{"CPU-NS", measure.CPUNanosPerTask})
		}
	}
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	heads := []string{"MECHANISM", "SEEDS", "FINISHED"}
	for _, bad := range []column{{"REJECTED", measure.Rejected}, {"FAILED", measure.Failed}} { // what is not done looks like speed
		if slices.ContainsFunc(results, func(r outcome.Result) bool { return r.Metrics.Get(bad.metric) > 0 }) {
			columns = slices.Insert(columns, len(columns)-2, bad)
		}
	}
	for _, c := range columns {
		heads = append(heads, c.head)
	}
	fmt.Fprintln(w, strings.Join(heads, "\t"))
	for _, g := range perMechanism(results) {
		cells := []string{g.name, g.seeds(), number(g.finished())}
		for _, c := range columns {
			cells = append(cells, figure(c.metric, g.mean(c.metric)))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// mailed is a table for each mechanism of what its actors say to each other, for each subjob: means over the seeds.
func mailed(out io.Writer, results []outcome.Result) error {
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', tabwriter.AlignRight)
	for _, g := range perMechanism(results) {
		subjobs, sum, list := 0.0, measure.Mailed{Kind: "all"}, []measure.Mailed(nil)
		for _, r := range g.runs {
			all := int64(0)
			for _, of := range r.Mail {
				at := slices.IndexFunc(list, func(o measure.Mailed) bool { return o.Kind == of.Kind })
				if at < 0 {
					at, list = len(list), append(list, measure.Mailed{Kind: of.Kind})
				}
				list[at].Count, list[at].Bytes = list[at].Count+of.Count, list[at].Bytes+of.Bytes
				sum.Count, sum.Bytes, all = sum.Count+of.Count, sum.Bytes+of.Bytes, all+of.Count
			}
			if each := r.Metrics.Get(measure.MessagesPerTask); each > 0 {
				subjobs += float64(all) / each * r.Metrics.Get(measure.Subjobs)
			}
		}
		if len(list) == 0 || subjobs == 0 {
			continue
		}
		slices.SortStableFunc(list, func(a, b measure.Mailed) int { return cmp.Compare(b.Count, a.Count) })
		fmt.Fprintf(w, "\n%s\tA SUBJOB\tBYTES\tSHARE\t\n", strings.ToUpper(g.name))
		for _, of := range append([]measure.Mailed{sum}, list...) {
			fmt.Fprintf(w, "%s\t%.2f\t%.0f\t%.1f%%\t\n", of.Kind, float64(of.Count)/subjobs, float64(of.Bytes)/subjobs,
				100*float64(of.Count)/float64(sum.Count))
		}
	}
	return w.Flush()
}

// isLean reports whether the results are of a world of lean nodes, which measures less.
func isLean(results []outcome.Result) bool {
	return slices.ContainsFunc(results, func(r outcome.Result) bool { return !math.IsNaN(r.Metrics.Get(measure.LeftoverUse)) })
}

// everyMetric is one row for each metric, one column for each mechanism.
func everyMetric(out io.Writer, results []outcome.Result) error {
	groups := perMechanism(results)
	w := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	heads := []string{"METRIC"}
	for _, g := range groups {
		heads = append(heads, g.name)
	}
	fmt.Fprintln(w, strings.Join(heads, "\t"))
	var names []string
	for _, m := range measure.Table() {
		if !isLean(results) {
			names = append(names, m.Name)
		}
	}
	for i := range results { // those of a negotiation, and of groups of jobs
		for _, m := range results[i].Metrics {
			if !slices.Contains(names, m.Name) {
				names = append(names, m.Name)
			}
		}
	}
	for _, name := range names {
		cells := []string{name}
		for _, g := range groups {
			cells = append(cells, figure(name, g.mean(name)))
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

// findings says how the expectations came out: below a table, or on the error stream where the answer is for programs.
func (a *app) findings(findings []outcome.Finding) {
	out := a.Out
	if !slices.Contains([]string{"table", "wide"}, a.Format) {
		out = a.Err
	}
	if len(findings) > 0 {
		fmt.Fprintln(out)
	}
	for _, f := range findings {
		word := "ok  "
		switch {
		case f.Open:
			word = "open"
		case !f.OK:
			word = "FAIL"
		}
		line := word + "  " + f.Text
		if f.Seen != "" {
			line += "   (" + f.Seen + ")"
		}
		fmt.Fprintln(out, terminal.Line(line))
	}
}
