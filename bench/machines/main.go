// Command machines measures a head and machines that have joined it, as real daemons of this machine: no-op jobs beside Slurm with as many
// slurmd, how long an award takes until its process has started over a network with a delay, what a subjob costs of that network, how
// much a head does of 200 machines, whose subjobs are models, and what a job costs that waited ahead, beside a unit of one job and bare
// starts. docs/benchmarks.md explains the figures.
//
//	go run ./bench/machines -bin bin
//	go run ./bench/machines -bin bin -only noop,award -write docs/benchmarks.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/bench/page"
	"sluice.dev/sluice/bench/program"
)

// settings are what was asked for.
type settings struct {
	// bin is the directory of sluice and sluice-shim, absolute; temp is this run's own, and memory another one, in memory.
	bin, temp, memory string
	// machines that join, with so many slices each, where they are real daemons.
	machines, slices int
	// jobs of one measurement of no-ops; Slurm gets a fifth. pairs is how often all of them are measured, in turn.
	jobs, pairs int
	// ahead is how many jobs wait before the first of them may start.
	ahead int
	// singles is how many jobs are submitted one after another, each over delay in each direction.
	singles int
	delay   time.Duration
	// fleet is how many machines with fleetSlices each are models, and for is how long they work.
	fleet, fleetSlices int
	length             time.Duration
}

// part is one thing that is measured; it returns its lines of the table.
type part struct {
	name string
	do   func(context.Context, *settings) ([]row, error)
}

var parts = []part{{"noop", noops}, {"award", awards}, {"wire", wires}, //nolint:gochecknoglobals // read-only
	{"fleet", fleets}, {"ahead", aheads}}

// row is a line of the table.
type row struct{ what, target, measured string }

func main() { program.Main("machines", run) }

func run(ctx context.Context) (err error) {
	var s settings
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	only := flag.String("only", strings.Join(names, ","), "what to measure, with commas between")
	write := flag.String("write", "", "put the table between the marks of this page")
	profile := flag.String("profile", "", "write a profile of this process's processor time to this file")
	flag.StringVar(&s.bin, "bin", "bin", "the directory of sluice and sluice-shim")
	flag.IntVar(&s.machines, "machines", 9, "machines that join, as real daemons")
	flag.IntVar(&s.slices, "slices", 2, "slices of each")
	flag.IntVar(&s.jobs, "jobs", 600, "no-op jobs of one measurement")
	flag.IntVar(&s.pairs, "pairs", 3, "how often no-ops are measured, in turn")
	flag.IntVar(&s.ahead, "jobs-ahead", 500, "no-op jobs that wait before the first may start")
	flag.IntVar(&s.singles, "singles", 100, "jobs one after another, for award to start")
	flag.DurationVar(&s.delay, "delay", time.Millisecond, "what the network delays in each direction, for award to start")
	flag.IntVar(&s.fleet, "fleet", 200, "machines that are models")
	flag.IntVar(&s.fleetSlices, "fleet-slices", 8, "slices of each")
	flag.DurationVar(&s.length, "for", 30*time.Second, "how long these work")
	flag.Parse()
	asked := strings.Split(*only, ",")
	for _, name := range asked {
		if !slices.Contains(names, name) {
			err = errors.Join(err, fmt.Errorf("-only %q: want %s", name, strings.Join(names, ", ")))
		}
	}
	for _, n := range []int{s.machines, s.slices, s.jobs / 5, s.ahead, s.pairs, s.singles, s.fleet, s.fleetSlices,
		int(s.length / time.Second)} {
		if n < 1 {
			err = errors.Join(err, errors.New("every number is at least 1, -jobs at least 5, -for at least 1s"))
			break
		}
	}
	if s.bin, _ = filepath.Abs(s.bin); err == nil {
		_, err = os.Stat(filepath.Join(s.bin, "sluice-shim"))
	}
	if err != nil {
		return err
	}
	if s.temp, err = os.MkdirTemp("", "sluice-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.temp)) }()
	if s.memory, err = os.MkdirTemp("/dev/shm", "sluice-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.memory)) }()
	var rows []row
	err = program.Profiled(*profile, func() error {
		for _, p := range parts {
			if !slices.Contains(asked, p.name) {
				continue
			}
			more, failed := p.do(ctx, &s)
			if failed != nil {
				return fmt.Errorf("%s: %w", p.name, failed)
			}
			rows = append(rows, more...)
		}
		return nil
	})
	if err != nil {
		return err
	}
	text := page.Row("what", "target", "measured") + "\n|---|---|---|\n"
	for _, r := range rows {
		text += page.Row(r.what, r.target, r.measured) + "\n"
	}
	fmt.Print(text)
	if *write == "" {
		return nil
	}
	return page.Between(*write, "machines", text)
}
