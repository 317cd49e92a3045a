package cli

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/lab/forecast"
	"sluice.dev/sluice/internal/lab/history"
	histories "sluice.dev/sluice/internal/lab/history/all"
	"sluice.dev/sluice/internal/lab/history/slurm"
	"sluice.dev/sluice/internal/lab/report"
)

// forecastFlags are those of `sluice forecast`.
type forecastFlags struct {
	jobs, zone, hours, html string
	gpus                    int
	grace                   time.Duration
	seed                    uint64
	quick, anonymize        bool
}

// ForecastCommand is `sluice forecast`.
func ForecastCommand(run *command.App) *cobra.Command {
	a := &app{run}
	var f forecastFlags
	c := &cobra.Command{
		Use: "forecast FILE...", Short: "Say from a cluster's log what its idle time is worth, before anything is installed",
		Long: `Say how many GPU-hours of a cluster lie idle in gaps that something could use, how much of
that becomes kept work under Sluice and under what costs nothing (preempt and requeue, a
checkpoint on notice, workers that pull units from a queue, Slurm's arrays with --time-min,
backfill of whole jobs), and what users would wait for it. Where the gain over the best that
is free is under 3 points of the idle time it says "don't install", and why.

The files are what the scheduler has written down, in any order and number, gzipped or not:
Slurm's accounting with its nodes and reservations (below: how to dump them), logs in the
Standard Workload Format of the Parallel Workloads Archive, or tables of jobs as those of Philly,
Helios, openb (with its nodes) and Batsim. Nothing is sent anywhere, and nothing is written but
the page of --html.

The gaps are exact. What is kept of them is played in the simulator that all of Sluice's
evaluations use: up to 8 stretches of 3 days, on 16 devices each that stand for all. The same
files and seed give the same answer, on every machine.

Without --jobs five kinds of backlog are played that are stated in the answer. FILE of --jobs is
a list of jobs as in a scenario (docs/scenarios.md), such as

  - {at: 0s, name: scan, items: {total: 1000, perItem: 10s}, startup: 20s, memory: 8Gi}

` + slurm.Help(time.Now()),
		Example: "  sluice forecast sacct.txt.gz nodes.txt reservations.txt\n  sluice forecast jobs.swf.gz\n" +
			"  sluice forecast philly.csv --gpus 800 --grace 2m --html forecast.html\n  sluice forecast jobs.swf --jobs mine.yml -o json",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.forecast(cmd, args, &f) },
	}
	flags := c.Flags()
	flags.StringVar(&f.jobs, "jobs", "", "a file with your own backlog: a list of jobs as in a scenario")
	flags.StringVar(&f.zone, "zone", "UTC", "the time zone of clocks in the files that name none")
	flags.StringVar(&f.hours, "hours", "", "the time zone of the hours of day that are shown (default that of --zone)")
	flags.StringVar(&f.html, "html", "", "also write the answer as one page with pictures to this file")
	flags.IntVar(&f.gpus, "gpus", 0, "how many GPUs there are, for a log that does not say where jobs ran; 0: as many as it says")
	flags.DurationVar(&f.grace, "grace", forecast.Notice, "how long before its device is taken a filler is told (your GraceTime)")
	flags.Uint64Var(&f.seed, "seed", 1, "draws the devices that are played, and the intervals")
	flags.BoolVar(&f.quick, "quick", false, "leave out what each assumption is worth")
	flags.BoolVar(&f.anonymize, "anonymize", false, "hash the names of partitions and kinds of GPUs, with a key that is thrown away")
	return a.OutputAs(c, "text", "json")
}

func (a *app) forecast(cmd *cobra.Command, files []string, f *forecastFlags) error {
	o := forecast.Options{Table: mechanisms(), Notice: f.grace, Seed: f.seed, Workers: runtime.GOMAXPROCS(0), Quick: f.quick}
	if f.grace < 0 || f.grace > time.Hour {
		return command.Usage("--grace %s: want 0s to 1h", f.grace)
	}
	if f.gpus < 0 {
		return command.Usage("--gpus %d: want 1 or more, or 0 for what the log says", f.gpus)
	}
	zone, err := time.LoadLocation(f.zone)
	if err != nil {
		return command.Usage("--zone %s: it is no time zone that is known here; want a name such as Europe/Berlin, or UTC", f.zone)
	}
	shown := zone
	if f.hours != "" {
		if shown, err = time.LoadLocation(f.hours); err != nil {
			return command.Usage("--hours %s: it is no time zone that is known here; want a name such as Europe/Berlin, or UTC", f.hours)
		}
	}
	if f.jobs != "" {
		if o.Backlogs, err = ownJobs(f.jobs); err != nil {
			return err
		}
	}
	show, stop := a.forecastProgress()
	defer stop()
	var clocks *time.Location // nil: nobody has said, which the answer tells where it matters
	if cmd.Flags().Changed("zone") {
		clocks = zone
	}
	h, err := histories.Read(history.Options{Zone: clocks, GPUs: f.gpus}, files...)
	if err != nil {
		return err
	}
	log := forecast.Recorded(h)
	log.Zone, o.Progress = shown, show
	answer, err := forecast.Forecast(cmd.Context(), log, o)
	stop()
	if cmd.Context().Err() != nil {
		return &command.Failure{Code: command.ExitInterrupted, Err: fmt.Errorf("interrupted: no answer")}
	}
	if err != nil {
		return err
	}
	if f.anonymize {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // it never fails
		answer.Anonymize(key)
	}
	if f.html != "" {
		if err := report.Create(f.html, func(w io.Writer) error { return answer.HTML(w) }); err != nil {
			return err
		}
	}
	if a.Format == "json" {
		return a.printJSON(answer)
	}
	return answer.Text(a.Out)
}

// ownJobs reads the backlog of a file.
func ownJobs(file string) ([]forecast.Backlog, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, command.Usage("--jobs: %w", err)
	}
	own, err := forecast.Own(file, string(text))
	return []forecast.Backlog{own}, err
}

// forecastProgress shows on a terminal how many runs are done; stop clears the line.
func (a *app) forecastProgress() (show func(done, total int), stop func()) {
	if !terminal.Is(a.RawErr) {
		return nil, func() {}
	}
	line := terminal.NewLive(a.RawErr)
	return func(done, total int) { line.Show(fmt.Sprintf("%d of %d runs", done, total)) }, line.Clear
}
