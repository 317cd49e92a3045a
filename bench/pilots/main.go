// Command pilots measures what a head does on pilots of a real Slurm of its own: no-op jobs beside the same as batch jobs, how much of a
// gap that ends in a reservation becomes committed work, what of the leftover of a replayed trace does, and what the hosts' jobs lose.
// docs/benchmarks.md explains the figures.
//
//	go run ./bench/pilots -bin bin
//	go run ./bench/pilots -bin bin -only replay -data ../shared/data -write docs/benchmarks.md
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
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
	// bin is the directory of sluice and sluice-shim, absolute; temp is this run's own.
	bin, temp string
	// jobs of one measurement of no-ops; Slurm gets a fifth. pairs is how often all of them are measured, in turn.
	jobs, pairs int
	// data is the folder of traces, stretch what is played of one.
	data    string
	stretch stretch
}

// part is one thing that is measured; it returns its lines of the table between the page's marks of that name.
type part struct {
	name, marks string
	do          func(context.Context, *settings) ([]row, error)
}

var parts = []part{{"noop", "pilots", noops}, {"gaps", "pilots", gaps}, {"replay", "replay", replay}} //nolint:gochecknoglobals // read-only

// row is a line of the table.
type row struct{ what, target, measured string }

func main() { program.Main("pilots", run) }

func run(ctx context.Context) (err error) {
	var s settings
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	only := flag.String("only", "noop,gaps", "what to measure, with commas between: "+strings.Join(names, ", "))
	write := flag.String("write", "", "put the tables between the marks of this page")
	flag.StringVar(&s.bin, "bin", "bin", "the directory of sluice and sluice-shim")
	flag.IntVar(&s.jobs, "jobs", 400, "no-op jobs of one measurement")
	flag.IntVar(&s.pairs, "pairs", 3, "how often no-ops are measured, in turn")
	flag.StringVar(&s.data, "data", "../shared/data", "the folder of traces, for replay")
	flag.DurationVar(&s.stretch.from, "from", 25*24*time.Hour, "where the replayed stretch of the trace begins")
	flag.DurationVar(&s.stretch.length, "stretch", 4*time.Hour, "how long it is")
	flag.Float64Var(&s.stretch.speed, "speed", 12, "how many times as fast it is played")
	flag.IntVar(&s.stretch.nodes, "nodes", 12, "nodes of the replay")
	flag.Parse()
	asked := strings.Split(*only, ",")
	for _, name := range asked {
		if !slices.Contains(names, name) {
			err = errors.Join(err, fmt.Errorf("-only %q: want %s", name, strings.Join(names, ", ")))
		}
	}
	if s.jobs < 5 || s.pairs < 1 {
		err = errors.Join(err, errors.New("-jobs is at least 5, -pairs at least 1"))
	}
	if s.stretch.length <= 0 || s.stretch.speed <= 0 || s.stretch.nodes < 1 {
		err = errors.Join(err, errors.New("-stretch, -speed and -nodes are more than 0"))
	}
	if s.bin, _ = filepath.Abs(s.bin); err == nil {
		_, err = os.Stat(filepath.Join(s.bin, "sluice-shim"))
	}
	if err != nil {
		return err
	}
	if s.temp, err = os.MkdirTemp("/var/tmp", "sluice-bench-"); err != nil { // subjobs have a /tmp of their own
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.temp)) }()
	tables := map[string][]row{}
	for _, p := range parts {
		if !slices.Contains(asked, p.name) {
			continue
		}
		more, failed := p.do(ctx, &s)
		if failed != nil {
			return fmt.Errorf("%s: %w", p.name, failed)
		}
		tables[p.marks] = append(tables[p.marks], more...)
	}
	for _, marks := range slices.Sorted(maps.Keys(tables)) {
		text := page.Row("what", "target", "measured") + "\n|---|---|---|\n"
		for _, r := range tables[marks] {
			text += page.Row(r.what, r.target, r.measured) + "\n"
		}
		if fmt.Print(text); *write != "" {
			if err = page.Between(*write, marks, text); err != nil {
				return err
			}
		}
	}
	return nil
}
