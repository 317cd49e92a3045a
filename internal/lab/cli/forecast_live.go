package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/terminal"
	histories "sluice.dev/sluice/internal/lab/history/all"
	"sluice.dev/sluice/internal/lab/live"
	"sluice.dev/sluice/internal/lab/live/kubernetes"
)

// liveFlags are those of `sluice forecast --live`.
type liveFlags struct {
	live, once bool
	record     string
	every      time.Duration
	kubernetes bool
	cluster    kubernetes.Options
}

const liveHelp = `--live watches a cluster as it runs, for as long as it is left running: each minute it asks Slurm
(sacct, squeue, scontrol show node, scontrol show reservation; it submits and changes nothing),
and keeps what is new in the directory of --record, a file a day. So it knows what Slurm forgets:
when nodes were down, and when a lost job ended. It answers when a whole day is recorded, and
again with each day more. Started again it goes on; what was missed meanwhile does not count as
idle. --once answers from what is recorded so far, and watches nothing; so does
sluice forecast DIR.

With --kubernetes it watches a Kubernetes cluster in place of Slurm: it lists and watches Pods and
nodes, and calls nothing else (docs/forecast.md has the ClusterRole). A Pod that comes and goes
between two looks is in the record too. Without --kubeconfig it uses the Pod's own account, or else
what kubectl would use.

`

func (f *liveFlags) flags(flags *pflag.FlagSet) {
	flags.BoolVar(&f.live, "live", false, "watch the Slurm that runs here, or --kubernetes, and answer each day")
	flags.BoolVar(&f.once, "once", false, "with --live: answer from what is recorded so far")
	flags.StringVar(&f.record, "record", "", "with --live: the directory of the record (default forecast in the state directory, with "+
		"--kubernetes forecast-kubernetes)")
	flags.DurationVar(&f.every, "every", time.Minute, "with --live: how long from look to look")
	flags.BoolVar(&f.kubernetes, "kubernetes", false, "with --live: watch a Kubernetes cluster, reading only")
	flags.StringVar(&f.cluster.Kubeconfig, "kubeconfig", "", "with --kubernetes: the cluster, as kubectl reads it (default: the Pod's own "+
		"account, KUBECONFIG, ~/.kube/config)")
	flags.StringVar(&f.cluster.Context, "context", "", "with --kubernetes: which context of that file (default: its current one)")
}

// args says what is wrong with a command line.
func (f *forecastFlags) args(cmd *cobra.Command, args []string) error {
	if done, err := f.checkFlags.args(cmd, args); done {
		return err
	}
	if !f.kubernetes {
		for _, name := range []string{"kubeconfig", "context"} {
			if cmd.Flags().Changed(name) {
				return command.Usage("--%s: it goes with --live --kubernetes", name)
			}
		}
	}
	if !f.live {
		for _, name := range []string{"once", "record", "every", "kubernetes"} {
			if cmd.Flags().Changed(name) {
				return command.Usage("--%s: it goes with --live", name)
			}
		}
		return f.prometheus.files(cmd, args)
	}
	if len(args) > 0 {
		return command.Usage("%s: --live reads no files: leave one out", args[0])
	}
	if f.prometheus.url != "" {
		return command.Usage("--prometheus: --live asks none: leave one out")
	}
	if f.every < 10*time.Second || f.every > 10*time.Minute || f.every%time.Second != 0 {
		return command.Usage("--every %s: want whole seconds, 10s to 10m", f.every)
	}
	return nil
}

// dir is where the record is kept.
func (f *liveFlags) dir(getenv func(string) string) (string, error) {
	if f.record != "" {
		return f.record, nil
	}
	name := "forecast"
	if f.kubernetes {
		name = "forecast-kubernetes"
	}
	if dir := getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "sluice", name), nil
	}
	if dir := getenv("HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, ".local", "state", "sluice", name), nil
	}
	return "", command.Usage("--record: want a directory: neither XDG_STATE_HOME nor HOME says where state is kept")
}

// watchForecast watches, or answers once.
func watchForecast(a *app, cmd *cobra.Command, f *forecastFlags) error {
	path, err := f.dir(a.Getenv)
	if err != nil {
		return err
	}
	if f.once {
		files, wrong := live.Files(path)
		if wrong != nil {
			return wrong
		}
		f.Files = asFiles(files)
		return a.forecastAnswer(cmd.Context(), f)
	}
	ctx, cancel := context.WithCancel(cmd.Context())
	defer cancel()
	var source live.Source
	if f.kubernetes {
		if source, err = kubernetes.Open(ctx, f.cluster); err != nil {
			return err
		}
	}
	d, err := live.Open(path)
	if err != nil {
		return err
	}
	if !f.kubernetes {
		source = live.NewSlurm(d)
	}
	if err := d.Belongs(source.Name()); err != nil {
		return errors.Join(err, d.Close())
	}
	tell, looked := liveProgress(a.App, d)
	answer := func(ctx context.Context, files []live.File) {
		once := *f // an answer uses a request up
		once.Files = asFiles(files)
		if err := a.forecastAnswer(ctx, &once); err != nil && ctx.Err() == nil {
			tell("no answer: " + err.Error())
		}
	}
	w := live.Watch{Source: source, Dir: d, Every: f.every, Tell: tell, Looked: looked, Answer: answer}
	w.Run(ctx)
	fmt.Fprintf(a.Err, "stopped: %s; the same command goes on with it\n", recorded(d))
	return d.Close()
}

// asFiles are the files of a record as a forecast takes them.
func asFiles(record []live.File) (out []histories.File) {
	for _, f := range record {
		out = append(out, histories.File{Name: f.Path, Open: f.Open})
	}
	return out
}

// recorded says how long the record is.
func recorded(d *live.Dir) string {
	n := d.Length().Truncate(time.Minute)
	text := fmt.Sprintf("%d min", n/time.Minute%60)
	if n >= time.Hour {
		text = fmt.Sprintf("%d h %s", n/time.Hour%24, text)
	}
	if days := n / (24 * time.Hour); days > 0 {
		text = fmt.Sprintf("%d d %s", days, text)
	}
	return text + " recorded in " + d.Path()
}

// liveProgress says how long the record is: on a terminal in place, elsewhere each hour. Both functions may be called at once.
func liveProgress(a *command.App, d *live.Dir) (tell func(string), looked func()) {
	var mu sync.Mutex
	var line *terminal.Live
	if terminal.Is(a.RawErr) {
		line = terminal.NewLive(a.RawErr)
	}
	tell = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if line != nil {
			line.Clear()
		}
		fmt.Fprintln(a.Err, "sluice forecast: "+text)
	}
	hour := time.Duration(-1)
	looked = func() {
		mu.Lock()
		defer mu.Unlock()
		status := recorded(d) + ", the next answer comes with the next whole day"
		if d.Days() == 0 {
			status = recorded(d) + ", the first answer needs a day"
		}
		if line != nil {
			line.Show(status)
		} else if now := d.Length() / time.Hour; now != hour {
			hour = now
			fmt.Fprintln(a.Err, status)
		}
	}
	return tell, looked
}
