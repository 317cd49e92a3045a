package cli

import (
	"context"
	"encoding/csv"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/lab/experiment/fgd"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/scenario/play"
)

// fgdFlags are what running and checking have in common.
type fgdFlags struct {
	data, seeds string
	workloads   []string
}

func (f *fgdFlags) add(a *app, c *cobra.Command, workloads string) {
	c.Flags().StringVar(&f.data, "data", a.Getenv("SLUICE_DATA"), "the folder of published traces (SLUICE_DATA)")
	c.Flags().StringVar(&f.seeds, "seeds", "1-20", "seeds such as 1-20 or 1,3,9")
	c.Flags().StringSliceVar(&f.workloads, "workload", []string{workloads},
		"pod lists of the folder openb, each a file openb_pod_list_NAME.csv or .csv.gz, or all")
	// the flag is there
	_ = c.RegisterFlagCompletionFunc("workload", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		found, _ := fgd.Workloads(f.data) // what is not there is not proposed
		return append(found, "all"), cobra.ShellCompDirectiveNoFileComp
	})
}

func (f *fgdFlags) options() (fgd.Options, error) {
	o := fgd.Options{Dir: f.data, Workloads: f.workloads, Kinds: fgd.Policies()}
	if f.data == "" {
		return o, command.Usage("--data: want the folder of published traces; its folders are openb and, to check, fgd_expected")
	}
	found, err := fgd.Workloads(f.data)
	if err != nil {
		return o, err
	}
	if slices.Contains(f.workloads, "all") {
		o.Workloads = found
	}
	for _, w := range o.Workloads {
		if !slices.Contains(found, w) {
			return o, command.Usage("--workload %s: %s has no openb_pod_list_%s.csv.gz; it has %s, or write all", w,
				filepath.Join(f.data, "openb"), w, strings.Join(found, ", "))
		}
	}
	if len(o.Workloads) == 0 {
		return o, command.Usage("--data %s: its folder openb has no file openb_pod_list_NAME.csv.gz", f.data)
	}
	if o.Seeds, err = scenario.Seeds(f.seeds); err != nil {
		return o, command.Usage("--seeds: %w", err)
	}
	return o, nil
}

// fgdTable makes the runs, and shows on a terminal how far they are. The error of an interruption comes with what there is.
func (a *app) fgdTable(ctx context.Context, o fgd.Options) ([]fgd.Result, error) {
	if show, stop := a.simProgress(); show != nil {
		o.Progress = func(done, total int) { show(play.Progress{Done: done, Total: total}) }
		defer stop()
	}
	results, err := fgd.Table(ctx, o)
	if total := len(o.Workloads) * len(o.Kinds) * len(o.Seeds); err == nil && len(results) < total {
		err = &command.Failure{Code: command.ExitInterrupted, Err: fmt.Errorf("interrupted: %d of %d runs are done", len(results), total)}
	}
	return results, err
}

func (a *app) simRunFGDCmd() *cobra.Command {
	var f fgdFlags
	c := &cobra.Command{
		Use: "fgd", Short: "Run the published placement experiment of FGD",
		Long: `Run the placement experiment of FGD (USENIX ATC'23) on Alibaba's openb cluster: pods arrive
until 130% of the GPUs are asked for, nobody leaves, and what fits nowhere is dropped. Under
each of six planners it prints how many percent of the GPUs are allocated at the end.

The planners are those of the published tables: random (01-Random), dotproduct (02-DotProd),
clustering (03-GpuClustering), packing (04-GpuPacking), bestfit (05-BestFit), fgd (06-FGD).

Only the folder openb of the data is read: openb_node_list_gpu_node.csv.gz, and as --workload
any openb_pod_list_NAME.csv or .csv.gz that lies there, your own too. Interrupted, it prints what it has and says so.`,
		Example: "  sluice sim run fgd --data ./data\n  sluice sim run fgd --data ./data --workload all --seeds 1-10 -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o, err := f.options()
			if err != nil {
				return err
			}
			results, err := a.fgdTable(cmd.Context(), o)
			if len(results) == 0 {
				return err
			}
			if failed := a.fgdRuns(results); failed != nil {
				return failed
			}
			return err
		},
	}
	f.add(a, c, "default")
	return a.OutputAs(c, "table", "json", "csv")
}

// fgdRun is one run in the form for programs.
type fgdRun struct {
	Workload string `json:"workload"`
	Policy   string `json:"policy"`
	Seed     uint64 `json:"seed"`
	// Allocated percent of the GPUs at 130% arrived.
	Allocated float64 `json:"allocated"`
}

// fgdRuns prints runs.
func (a *app) fgdRuns(results []fgd.Result) error {
	switch a.Format {
	case "json":
		runs := make([]fgdRun, len(results))
		for i, r := range results {
			runs[i] = fgdRun{r.Workload, r.Policy, r.Seed, fourDigits(r.Curve.Last())}
		}
		return a.printJSON(runs)
	case "csv":
		w := csv.NewWriter(a.Out)
		_ = w.Write([]string{"workload", "policy", "seed", "allocated"}) // Flush reports errors
		for _, r := range results {
			_ = w.Write([]string{r.Workload, r.Policy, strconv.FormatUint(r.Seed, 10), strconv.FormatFloat(fourDigits(r.Curve.Last()), 'f',
				-1, 64)})
		}
		w.Flush()
		return w.Error()
	}
	w := tabwriter.NewWriter(a.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "WORKLOAD\tPOLICY\tSEEDS\tALLOCATED\tDEVIATION\tFRAGMENTED")
	for _, g := range fgd.Groups(results) {
		fmt.Fprintf(w, "%s\t%s\t%d\t%.2f%%\t%.2f\t%.1f%%\n", g.Workload, g.Policy, g.Seeds, g.Allocated, g.Deviation, g.Fragmented)
	}
	return w.Flush()
}

func (a *app) simCheckFGDCmd() *cobra.Command {
	var f fgdFlags
	c := &cobra.Command{
		Use: "fgd", Short: "Compare the placement experiment of FGD with its published tables",
		Long: fmt.Sprintf(`Run the placement experiment of FGD (sluice sim run fgd --help) on every workload and compare the
means over the seeds with the published means, which the folder fgd_expected of the data has.

Tested: every planner within %.1f percentage points, bestfit and fgd within %.1f; and the order
fgd > bestfit > packing, clustering > dotproduct > random wherever the published table has a pair
of it by more than two standard errors. Fragmentation at %d%% arrived is shown beside.

Exit codes: 0 all holds; 1 something does not; 130 interrupted.`, fgd.Band, fgd.NarrowBand, fgd.Knee),
		Example: "  sluice sim check fgd --data ./data",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.fgdCheck(cmd.Context(), &f) },
	}
	f.add(a, c, "all")
	return a.OutputAs(c, "table", "json")
}

// checkable are the workloads that can be compared. Of all that are there those without a published result are left out, and
// so are results whose pod list is not there; both are said. One that was asked for by name must have one.
func (a *app) checkable(asked, published []string, all bool) ([]string, error) {
	var out, unpublished, absent []string
	for _, w := range asked {
		if slices.Contains(published, w) {
			out = append(out, w)
		} else {
			unpublished = append(unpublished, w)
		}
	}
	if !all {
		if len(unpublished) > 0 {
			return nil, command.Usage("--workload %s: the published tables have no result of it; they have %s",
				strings.Join(unpublished, ","), strings.Join(published, ", "))
		}
		return out, nil
	}
	for _, w := range published {
		if !slices.Contains(asked, w) {
			absent = append(absent, w)
		}
	}
	if len(unpublished) > 0 {
		fmt.Fprintf(a.Err, "left out, for there is no published result: %s\n", strings.Join(unpublished, ", "))
	}
	if len(absent) > 0 {
		fmt.Fprintf(a.Err, "left out, for the pod list is not there: %s\n", strings.Join(absent, ", "))
	}
	if len(out) == 0 {
		return nil, errkind.Errorf(errkind.NotFound, "no pod list of the folder has a published result; the tables have %s",
			strings.Join(published, ", "))
	}
	return out, nil
}

func (a *app) fgdCheck(ctx context.Context, f *fgdFlags) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	published, err := fgd.LoadPublished(f.data)
	if err != nil {
		return err
	}
	if o.Workloads, err = a.checkable(o.Workloads, published.Workloads(), slices.Contains(f.workloads, "all")); err != nil {
		return err
	}
	results, interrupted := a.fgdTable(ctx, o)
	if len(results) == 0 {
		return interrupted
	}
	report := fgd.Compare(results, published)
	if a.Format == "json" {
		err = a.printJSON(fgdReportJSON(report))
	} else {
		err = a.fgdReport(report)
	}
	switch {
	case err != nil:
		return err
	case interrupted != nil:
		return interrupted
	case !report.OK():
		return &command.Failure{Code: command.ExitFailed, Err: errkind.Errorf(errkind.Conflict, "the published tables are not reproduced")}
	}
	return nil
}
