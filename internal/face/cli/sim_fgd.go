package cli

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/face/experiment/fgd"
	"sluice.dev/sluice/internal/face/scenario"
)

// fgdFlags are what running and checking have in common.
type fgdFlags struct {
	data, seeds string
	workloads   []string
}

func (f *fgdFlags) add(a *app, c *cobra.Command, workloads string) {
	c.Flags().StringVar(&f.data, "data", a.Getenv("SLUICE_DATA"), "the folder of published traces (SLUICE_DATA)")
	c.Flags().StringVar(&f.seeds, "seeds", "1-20", "seeds such as 1-20 or 1,3,9")
	c.Flags().StringSliceVar(&f.workloads, "workload", []string{workloads}, "pod lists: "+strings.Join(fgd.Workloads(), ", ")+", or all")
	_ = c.RegisterFlagCompletionFunc("workload", cobra.FixedCompletions(append(fgd.Workloads(), "all"), cobra.ShellCompDirectiveNoFileComp)) // the flag is there
}

func (f *fgdFlags) options() (fgd.Options, error) {
	o := fgd.Options{Dir: f.data, Workloads: f.workloads, Kinds: fgd.Policies()}
	if f.data == "" {
		return o, usage("--data: want the folder of published traces; its folders are openb and, to check, fgd_expected")
	}
	if slices.Contains(f.workloads, "all") {
		o.Workloads = fgd.Workloads()
	}
	for _, w := range o.Workloads {
		if !slices.Contains(fgd.Workloads(), w) {
			return o, usage("--workload %s: there is none of that name; choose among %s, or all", w, strings.Join(fgd.Workloads(), ", "))
		}
	}
	var err error
	if o.Seeds, err = scenario.Seeds(f.seeds); err != nil {
		return o, usage("--seeds: %w", err)
	}
	return o, nil
}

// fgdTable makes the runs, and shows on a terminal how far they are. The error of an interruption comes with what there is.
func (a *app) fgdTable(ctx context.Context, f *fgdFlags) ([]fgd.Result, error) {
	o, err := f.options()
	if err != nil {
		return nil, err
	}
	if show, stop := a.simProgress(); show != nil {
		o.Progress = func(done, total int) { show(scenario.Progress{Done: done, Total: total}) }
		defer stop()
	}
	results, err := fgd.Table(ctx, o)
	if total := len(o.Workloads) * len(o.Kinds) * len(o.Seeds); err == nil && len(results) < total {
		err = &failure{ExitInterrupted, fmt.Errorf("interrupted: %d of %d runs are done", len(results), total)}
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

Only the folder openb of the data is read. Interrupted, it prints what it has and says so.`,
		Example: "  sluice sim run fgd --data ./data\n  sluice sim run fgd --data ./data --workload all --seeds 1-10 -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			results, err := a.fgdTable(cmd.Context(), &f)
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
	return a.outputAs(c, "table", "json", "csv")
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
	switch a.format {
	case "json":
		runs := make([]fgdRun, len(results))
		for i, r := range results {
			runs[i] = fgdRun{r.Workload, r.Policy, r.Seed, fourDigits(r.Curve.Last())}
		}
		return a.printJSON(runs)
	case "csv":
		w := csv.NewWriter(a.Out)
		_ = w.Write([]string{"workload", "policy", "seed", "allocated"}) // Flush says what went wrong
		for _, r := range results {
			_ = w.Write([]string{r.Workload, r.Policy, strconv.FormatUint(r.Seed, 10), strconv.FormatFloat(fourDigits(r.Curve.Last()), 'f', -1, 64)})
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

// fourDigits rounds a percent for programs.
func fourDigits(x float64) float64 { return math.Round(x*1e4) / 1e4 }

func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.Out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
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
	return a.outputAs(c, "table", "json")
}

func (a *app) fgdCheck(ctx context.Context, f *fgdFlags) error {
	if f.data == "" {
		_, err := f.options()
		return err
	}
	published, err := fgd.LoadPublished(f.data)
	if err != nil {
		return err
	}
	results, interrupted := a.fgdTable(ctx, f)
	if len(results) == 0 {
		return interrupted
	}
	report := fgd.Compare(results, published)
	if a.format == "json" {
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
		return &failure{ExitFailed, errkind.Errorf(errkind.Conflict, "the published tables are not reproduced")}
	}
	return nil
}
