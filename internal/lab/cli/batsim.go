package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/lab/experiment/batsim"
)

func (a *app) simCheckBatsimCmd() *cobra.Command {
	var data string
	c := &cobra.Command{
		Use: "batsim", Short: "Compare backfilling, start by start, with the Batsim simulator",
		Long: `Replay the 801 jobs of Batsim's example medium_late on 32 hosts under easy and conservative,
and compare when each job starts with what Batsim says, to the microsecond.

Batsim's reservations name hosts, ours a number of hosts. A start that differs is explained
if it is Batsim's once reservations name hosts and nothing else changes. It ends with exit
code 1 if a difference remains.

Only the folder backfill_ref of the data is read: medium_late_easy_out_jobs.csv.gz and
medium_late_conservative_out_jobs.csv.gz, in the form of the PREFIX_jobs.csv that Batsim writes.`,
		Example: "  sluice sim check batsim --data ./data\n  sluice sim check batsim --data ./data -o json",
		Args:    cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if data == "" {
				return command.Usage("--data: want the folder of published traces; its folder is backfill_ref")
			}
			lines, err := batsim.Check(data)
			if err != nil {
				return err
			}
			if err := a.batsimReport(lines); err != nil {
				return err
			}
			return batsimVerdict(lines)
		},
	}
	c.Flags().StringVar(&data, "data", a.Getenv("SLUICE_DATA"), "the folder of published traces (SLUICE_DATA)")
	return a.OutputAs(c, "table", "json")
}

// batsimLine is one scheduler in the form for programs; times are in seconds.
type batsimLine struct {
	Planner           string             `json:"planner"`
	Jobs              int                `json:"jobs"`
	Equal             int                `json:"equal"`
	Explained         int                `json:"explained"`
	EqualByHost       int                `json:"equalByHost"`
	Unexplained       []batsimDifference `json:"unexplained"`
	MeanWait          float64            `json:"meanWait"`
	PublishedMeanWait float64            `json:"publishedMeanWait"`
	Cause             string             `json:"cause,omitempty"`
	OK                bool               `json:"ok"`
}

type batsimDifference struct {
	Job       string  `json:"job"`
	Published float64 `json:"published"`
	Ours      float64 `json:"ours"`
	ByHost    float64 `json:"byHost"`
}

func (a *app) batsimReport(lines []batsim.Line) error {
	if a.Format == "json" {
		out := []batsimLine{}
		for _, l := range lines {
			j := batsimLine{
				Planner: l.Planner, Jobs: l.Jobs, Equal: l.Equal, Explained: l.Explained, EqualByHost: l.EqualByHost,
				Unexplained: []batsimDifference{},
				MeanWait:    l.MeanWait.Seconds(), PublishedMeanWait: l.PublishedMeanWait.Seconds(), OK: l.OK(),
			}
			if l.Explained > 0 {
				j.Cause = batsim.Cause
			}
			for _, d := range l.Unexplained {
				j.Unexplained = append(j.Unexplained, batsimDifference{d.Job, d.Published.Seconds(), d.Ours.Seconds(), d.ByHost.Seconds()})
			}
			out = append(out, j)
		}
		return a.printJSON(out)
	}
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PLANNER\tJOBS\tEQUAL STARTS\tEXPLAINED\tUNEXPLAINED\tMEAN WAIT\tBATSIM'S")
	for _, l := range lines {
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%.2fs\t%.2fs\n", l.Planner, l.Jobs, l.Equal, l.Explained, len(l.Unexplained),
			l.MeanWait.Seconds(), l.PublishedMeanWait.Seconds())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "\nWhat explains: %s.\n", batsim.Cause)
	for _, l := range lines {
		fmt.Fprintf(a.Out, "%s: with reservations that name hosts, and nothing else changed, %d of %d starts are Batsim's.\n", l.Planner,
			l.EqualByHost, l.Jobs)
		if d := l.First; d != nil {
			fmt.Fprintf(a.Out, "    The first that differs is job %s: Batsim %.6fs, %s %.6fs, with named hosts %.6fs.\n", d.Job,
				d.Published.Seconds(), l.Planner, d.Ours.Seconds(), d.ByHost.Seconds())
		}
		for _, d := range l.Unexplained {
			fmt.Fprintf(a.Out, "    Unexplained: job %s: Batsim %.6fs, %s %.6fs, with named hosts %.6fs.\n", d.Job, d.Published.Seconds(),
				l.Planner, d.Ours.Seconds(), d.ByHost.Seconds())
		}
	}
	return nil
}

func batsimVerdict(lines []batsim.Line) error {
	for _, l := range lines {
		if !l.OK() {
			return &command.Failure{Code: command.ExitFailed, Err: fmt.Errorf("%s: %d of %d jobs start at a time that nothing explains",
				l.Planner, l.Jobs-l.EqualByHost, l.Jobs)}
		}
	}
	return nil
}
