package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	"sluice.dev/sluice/internal/lab/cli/forecaster"
	histories "sluice.dev/sluice/internal/lab/history/all"
	"sluice.dev/sluice/internal/lab/history/prometheus"
	"sluice.dev/sluice/internal/lab/history/slurm"
	"sluice.dev/sluice/internal/lab/history/utilization"
	"sluice.dev/sluice/internal/lab/live"
	"sluice.dev/sluice/internal/lab/report"
)

// forecastFlags are those of `sluice forecast`: what is asked, and the files that the command alone opens.
type forecastFlags struct {
	forecaster.Request
	liveFlags
	checkFlags
	jobs, html string
	prometheus prometheusFlags
}

// ForecastCommand is `sluice forecast`.
func ForecastCommand(run *command.App, past func(context.Context) (string, status.History, error)) *cobra.Command {
	a := &app{run}
	var f forecastFlags
	c := &cobra.Command{
		Use: "forecast [FILE...]", Short: "Say from a cluster's log what its idle time is worth, before anything is installed",
		Long: `Say how many GPU-hours of a cluster lie idle in gaps that something could use, how much of
that becomes kept work under Sluice and under what costs nothing (preempt and requeue, a
checkpoint on notice, workers that pull units from a queue, Slurm's arrays with --time-min,
backfill of whole jobs), and what users would wait for it. Where the gain over the best that
is free is under 3 points of the idle time it says "don't install", and why.

The files are what the scheduler has written down, in any order and number, gzipped or not:
Slurm's accounting with its nodes and reservations (below: how to dump them), what a Prometheus
has kept of a Kubernetes cluster, logs in the Standard Workload Format of the Parallel Workloads
Archive, or tables of jobs as those of Philly, Helios, openb (with its nodes) and Batsim. What was
measured by nvidia-smi, dcgmi dmon or DCGM's exporter stands beside it, or for itself. Nothing
is written but the page of --html and the record of --live, and nothing is sent anywhere: with
--prometheus questions go to that address alone.

The gaps are exact. What is kept of them is played in the simulator that all of Sluice's
evaluations use: up to 8 stretches of 3 days of the last four weeks, on 16 devices each that
stand for all. The same files and seed give the same answer, on every machine.

Without --jobs five kinds of backlog are played that are stated in the answer. FILE of --jobs is
a list of jobs as in a scenario (docs/scenarios.md), such as

  - {at: 0s, name: scan, items: {total: 1000, perItem: 10s}, startup: 20s, memory: 8Gi}

` + liveHelp + checkHelp + slurm.Help(time.Now()) + "\n" + prometheus.Help() + "\n" + utilization.Help(),
		Example: "  sluice forecast sacct.txt.gz nodes.txt reservations.txt\n  sluice forecast jobs.swf.gz\n" +
			"  sluice forecast philly.csv --gpus 800 --grace 2m --html forecast.html\n" +
			"  sluice forecast jobs.swf --jobs mine.yml -o json\n  sluice forecast kube.json.gz\n" +
			"  sluice forecast --prometheus http://prometheus:9090 --since 28d\n" +
			"  sluice forecast --live --record /var/lib/forecast -o json\n" +
			"  sluice forecast --live --kubernetes --context gpus --record /var/lib/forecast\n" +
			"  sluice forecast --check before.json --backlog training",
		Args: f.args,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.check != "" {
				return checkForecast(cmd.Context(), run, &f.checkFlags, past)
			}
			return a.forecast(cmd, args, &f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.jobs, "jobs", "", "a file with your own backlog: a list of jobs as in a scenario")
	flags.StringVar(&f.html, "html", "", "also write the answer as one page with pictures to this file")
	f.Flags(flags)
	f.prometheus.add(flags)
	f.liveFlags.flags(flags)
	f.checkFlags.flags(flags)
	return a.OutputAs(c, "text", "json")
}

func (a *app) forecast(cmd *cobra.Command, files []string, f *forecastFlags) error {
	if err := f.Check(); err != nil {
		return command.Usage("%w", err)
	}
	if f.html != "" { // an answer takes minutes
		if info, err := os.Stat(filepath.Dir(f.html)); err != nil || !info.IsDir() {
			return command.Usage("--html %s: there is no directory %s: make it, or name another", f.html, filepath.Dir(f.html))
		}
	}
	if f.jobs != "" {
		text, err := os.ReadFile(f.jobs)
		if err != nil {
			return command.Usage("--jobs: %w", err)
		}
		f.Jobs = &forecaster.Jobs{File: f.jobs, Text: string(text)}
	}
	if f.live {
		return watchForecast(a, cmd, f)
	}
	for _, path := range files {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			record, err := live.Files(path)
			if err != nil {
				return err
			}
			f.Files = append(f.Files, asFiles(record)...)
			continue
		}
		f.Files = append(f.Files, histories.At(path))
	}
	return a.forecastAnswer(cmd.Context(), f)
}

// forecastAnswer prints the answer to a request.
func (a *app) forecastAnswer(ctx context.Context, f *forecastFlags) error {
	show, stop := a.forecastProgress()
	if f.live { // it has a line of its own
		show = func(string, int, int) {}
	}
	defer stop()
	more, err := f.prometheus.source(ctx, show)
	if err != nil {
		return err
	}
	f.Workers, f.More, f.Progress = runtime.GOMAXPROCS(0), more, show
	f.Files = watchReading(ctx, f.Files, func(done, total int) { show("MB of the files", done, total) })
	answer, err := f.Answer(ctx)
	stop()
	if ctx.Err() != nil {
		return &command.Failure{Code: command.ExitInterrupted, Err: fmt.Errorf("interrupted: no answer")}
	}
	if err != nil {
		return err
	}
	write := answer.Text
	if a.Format == "json" {
		write = func(w io.Writer) error { return forecaster.JSON(w, answer) }
	}
	err = write(a.Out)
	if f.html != "" { // behind the answer, which is not lost where there is no room for a page
		if wrong := report.Create(f.html, answer.HTML); wrong != nil {
			err = errors.Join(err, fmt.Errorf("--html: %w", wrong))
		}
	}
	return err
}

// forecastProgress shows on a terminal how many of what are done, or what is done if total is negative; stop clears the line.
func (a *app) forecastProgress() (show func(what string, done, total int), stop func()) {
	if !terminal.Is(a.RawErr) {
		return func(string, int, int) {}, func() {}
	}
	line := terminal.NewLive(a.RawErr)
	return func(what string, done, total int) {
		if total >= 0 {
			what = fmt.Sprintf("%d of %d %s", done, total, what)
		}
		line.Show(what)
	}, line.Clear
}
