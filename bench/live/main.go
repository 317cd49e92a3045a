// Command live measures a real daemon on loopback with simulated slices: how long a submission takes to be durable, how
// long a job takes from its submission to its start and its end, what a no-op subjob costs beside bare starts of the same
// programs, how many no-ops end in a second beside xargs, GNU parallel and Slurm in the same run, and how long a round takes in which 100
// agents bid over the API. It prints lines in Go's benchmark format, one for every repetition, so
// that benchstat compares two runs, and comments that say what was not measured. docs/benchmarks.md explains the figures.
//
//	go run ./bench/live -bin bin
//	go run ./bench/live -bin bin -only noop -pairs 7
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"sluice.dev/sluice/bench/daemon"
	"sluice.dev/sluice/bench/program"
)

// settings are what was asked for.
type settings struct {
	// bin is the directory of sluice and sluice-shim, absolute.
	bin string
	// temp is a directory of this run's own; removed at the end.
	temp string
	// slots is how many no-ops run at once, everywhere. processes is how many no-ops one measurement is. units is how many
	// of them an items job has that is cut as it is meant to be. pairs is how often everything is done, in turn.
	slots, processes, units, pairs int
	// submissions of one measurement with one client; many clients make four times as many together.
	submissions int
	// singles is how many jobs are submitted one after another to an idle daemon.
	singles int
	// profile is a file for a profile of no-op subjobs; empty for none.
	profile string
	// agents bid in a live round, and rounds is how many of them are waited for.
	agents, rounds int
}

func main() {
	s := settings{}
	only := flag.String("only", "submit,single,subjob,noop,round",
		"what to measure: submit, single, subjob, noop, round, resident, hopeless, with commas between")
	flag.StringVar(&s.bin, "bin", "bin", "the directory of sluice and sluice-shim")
	flag.IntVar(&s.slots, "slots", 4, "how many no-ops run at once")
	flag.IntVar(&s.processes, "n", 300, "no-op processes of one measurement")
	flag.IntVar(&s.units, "units", 3000, "units of the items job, each a no-op process")
	flag.IntVar(&s.pairs, "pairs", 5, "how often everything is measured, in turn")
	flag.IntVar(&s.submissions, "submissions", 200, "submissions of one client; 64 clients make four times as many together")
	flag.IntVar(&s.singles, "singles", 20, "jobs one after another on an idle daemon")
	flag.StringVar(&s.profile, "profile", "", "with subjob: a file for a profile of one more measurement, by perf(1)")
	flag.IntVar(&s.agents, "agents", 100, "external jobs with an agent each in a live round")
	flag.IntVar(&s.rounds, "rounds", 100, "live rounds of one measurement")
	flag.Parse()
	program.Main("live", func(ctx context.Context) error { return run(ctx, s, strings.Split(*only, ",")) })
}

// check lists all that is wrong with the flags.
func (s *settings) check(parts []string) error {
	var errs []error
	for _, n := range []struct {
		name      string
		value     int
		low, high int
	}{
		{"slots", s.slots, 1, 64}, {"n", s.processes, 1, 1000}, {"units", s.units, 1, 1_000_000}, {"pairs", s.pairs, 1, 100},
		{"submissions", s.submissions, 64, 2000}, {"singles", s.singles, 1, 1000}, {"agents", s.agents, 1, 1000},
		{"rounds", s.rounds, 1, 10_000},
	} {
		if n.value < n.low || n.value > n.high {
			errs = append(errs, fmt.Errorf("-%s %d: want %d to %d", n.name, n.value, n.low, n.high))
		}
	}
	for _, p := range parts {
		if !slices.Contains([]string{"submit", "single", "subjob", "noop", "round", "resident", "hopeless"}, p) {
			errs = append(errs, fmt.Errorf("-only %q: want submit, single, subjob, noop, round, resident or hopeless", p))
		}
	}
	for _, name := range []string{"sluice", "sluice-shim"} {
		if _, err := os.Stat(filepath.Join(s.bin, name)); err != nil {
			errs = append(errs, fmt.Errorf("-bin: %w; build them with make build", err))
		}
	}
	return errors.Join(errs...)
}

func run(ctx context.Context, s settings, parts []string) (err error) {
	if s.bin, err = filepath.Abs(s.bin); err != nil {
		return err
	}
	if err = s.check(parts); err != nil {
		return err
	}
	if s.temp, err = os.MkdirTemp("", "sluice-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.temp)) }()
	fmt.Printf("# %d cores, %s/%s, %d slots, %d pairs\n", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, s.slots, s.pairs)
	var b book
	for _, part := range []struct {
		name string
		do   func(context.Context, *settings, *book) error
	}{{"submit", submissions}, {"single", singles}, {"subjob", subjobs}, {"noop", noops}, {"round", rounds}, {"resident", residents},
		{"hopeless", hopeless}} {
		if slices.Contains(parts, part.name) {
			if err := part.do(ctx, &s, &b); err != nil {
				return fmt.Errorf("%s: %w", part.name, err)
			}
		}
	}
	b.summary(os.Stdout)
	return nil
}

// up starts a daemon with s.slots simulated slices.
func (s *settings) up(ctx context.Context) (*daemon.Daemon, error) { return s.upWith(ctx, s.slots) }

// upWith starts a daemon with so many simulated slices and a data directory of its own, and waits until it shows them.
func (s *settings) upWith(ctx context.Context, slots int, flags ...string) (*daemon.Daemon, error) {
	dir, err := os.MkdirTemp(s.temp, "daemon-")
	if err != nil {
		return nil, err
	}
	d, err := daemon.Start(daemon.Options{Bin: s.bin, Dir: dir, GPUs: "sim:custom,mem=256Mi" + strings.Repeat("+256Mi", slots-1),
		Flags: flags})
	if err != nil {
		return nil, err
	}
	return d, d.AwaitSlices(ctx, slots)
}
