// Command scale measures how Sluice grows: what a thousand jobs cost and what a million do, in one run, and whether that is
// within what it has to be. It prints a table; docs/benchmarks.md has the last one and says what the rows are. It exits 0
// whatever it finds: only what keeps it from measuring is an error.
//
//	go run ./bench/scale                    all rows, at most 15 minutes on two cores
//	go run ./bench/scale -only sold,step    some
//	go run ./bench/scale -quick             ten times smaller, about two minutes: says that it works, not how fast
//	go run ./bench/scale -write             all rows; docs/benchmarks.md and bench/scale/baseline.json become what it finds
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/bench/program"
)

// settings are what was asked for.
type settings struct {
	// bin is the directory of sluice and sluice-shim; empty: they are built. before is a checkout of an older commit, with whose
	// shell this one's is compared; empty: with what the baseline says.
	bin, before string
	// profile is a directory for profiles; empty: none are made.
	profile string
	// temp is a directory of this run's own; removed at the end.
	temp string
	// sizes are how many jobs wait, from few to many, finished how many are over besides where there are such; slices and nodes
	// are the large park and the large cluster, park the slices of the one in which subjobs are sold.
	sizes               []int
	finished            int
	slices, park, nodes int
	// burst is how many jobs one round submits: enough that a collection of garbage is in each of them. rounds how often it is done, and
	// pairs where two are to differ by less than a round does from the next. sold subjobs are watched in a world.
	burst, rounds, pairs, sold int
	// subjobs that do nothing, and simulated ones.
	noops, simulated int
	// limit bounds each thing that is waited for, memory, in MiB, each process: beyond them it is given up.
	limit    time.Duration
	memory   float64
	quick    bool
	baseline results
	begin    time.Time
}

func main() { program.Main("scale", run) }

// rows in the order of the table.
func rows() []string {
	return []string{"submit", "step", "sold", "snapshot", "restart", "memory", "query", "sim", "subjob", "shell"}
}

func run(ctx context.Context) error {
	s := settings{begin: time.Now()}
	only := flag.String("only", strings.Join(rows(), ","), "which rows, with commas between")
	form := flag.String("o", "text", "how to print the table: text, markdown or json")
	base := flag.String("baseline", "bench/scale/baseline.json", "what to compare with; empty: nothing")
	write := flag.Bool("write", false, "write what was found to docs/benchmarks.md and to the baseline")
	inside := flag.String("alone", "", "measure one thing and print it as JSON: this program starts itself so, once for each large world")
	flag.StringVar(&s.bin, "bin", "", "the directory of sluice and sluice-shim; empty: build them")
	flag.StringVar(&s.before, "before", "", "a checkout of an older commit, with whose shell this one's is compared")
	flag.IntVar(&s.finished, "over", -1, "how many jobs are over, where there are such; -1: as many as wait at most")
	flag.BoolVar(&s.quick, "quick", false, "ten times smaller")
	flag.StringVar(&s.profile, "profile", "", "a directory for processor profiles of the rows that run in a process of their own (step, "+
		"sold, sim); empty: none")
	flag.DurationVar(&s.limit, "limit", time.Minute, "how long anything may take before it is given up")
	flag.Float64Var(&s.memory, "memory", 10_000, "how much memory a process may take before it is given up, in MiB")
	flag.Parse()
	if *inside != "" {
		return alone(ctx, *inside, s.limit)
	}
	s.scale()
	if s.profile != "" {
		if err := os.MkdirAll(s.profile, 0o755); err != nil {
			return err
		}
	}
	wanted := strings.Split(*only, ",")
	var errs []error
	for _, r := range wanted {
		if !slices.Contains(rows(), r) {
			errs = append(errs, fmt.Errorf("-only %q: want %s, with commas between", r, strings.Join(rows(), ", ")))
		}
	}
	if !slices.Contains([]string{"text", "markdown", "json"}, *form) {
		errs = append(errs, fmt.Errorf("-o %q: want text, markdown or json", *form))
	}
	if *write && (s.quick || len(wanted) < len(rows())) {
		errs = append(errs, errors.New("-write: a page is written of all rows in full size; leave -quick and -only out"))
	}
	if *base != "" {
		if err := s.baseline.read(*base); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, fmt.Errorf("-baseline: %w", err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	r, err := s.measure(ctx, wanted)
	if err != nil {
		return err
	}
	if *write {
		if err := r.keep(*base); err != nil {
			return err
		}
	}
	print := map[string]func() error{
		"text": func() error { return r.text(os.Stdout) }, "markdown": func() error { return r.markdown(os.Stdout) },
		"json": func() error { return r.json(os.Stdout) },
	}
	if err := print[*form](); err != nil || *form == "json" {
		return err
	}
	return r.compare(os.Stdout, &s.baseline)
}

// scale sets how large everything is.
func (s *settings) scale() {
	s.sizes, s.slices, s.park, s.nodes = []int{1000, 10_000, 100_000, 1_000_000}, 10_000, 256, 10_000
	s.burst, s.rounds, s.pairs, s.sold, s.noops, s.simulated = 6000, 5, 15, 2000, 600, 60_000
	if s.quick {
		s.sizes, s.slices, s.park, s.nodes = []int{100, 1000, 10_000, 100_000}, 1000, 24, 1000
		s.burst, s.rounds, s.pairs, s.sold, s.noops, s.simulated = 500, 3, 3, 500, 100, 5000
		s.limit = min(s.limit, 20*time.Second)
	}
	if s.finished < 0 {
		s.finished = s.sizes[len(s.sizes)-1]
	}
}

// say tells whoever waits how far it is.
func (s *settings) say(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "%6s  %s\n", time.Since(s.begin).Round(time.Second), fmt.Sprintf(format, args...))
}

// measure measures the rows that are wanted.
func (s *settings) measure(ctx context.Context, wanted []string) (r results, err error) {
	if s.temp, err = os.MkdirTemp("", "sluice-scale-"); err != nil {
		return r, err
	}
	defer func() {
		if failed := os.RemoveAll(s.temp); failed != nil {
			s.say("something is left over: %v", failed)
		}
	}()
	if s.bin == "" {
		s.bin = filepath.Join(s.temp, "bin")
		if err = build(ctx, ".", s.bin+string(filepath.Separator), "./cmd/sluice", "./cmd/sluice-shim"); err != nil {
			return r, err
		}
	}
	if s.bin, err = filepath.Abs(s.bin); err != nil {
		return r, err
	}
	var found []line
	for _, group := range []struct {
		rows []string
		do   func(context.Context, []string) ([]line, error)
	}{
		{[]string{"step"}, s.steps}, {[]string{"sold"}, s.sales}, {[]string{"sim"}, s.fleets}, {[]string{"subjob"}, s.subjob},
		{[]string{"shell"}, s.shell},
		{[]string{"submit", "snapshot", "restart", "memory", "query"}, s.live},
	} {
		group.rows = slices.DeleteFunc(group.rows, func(row string) bool { return !slices.Contains(wanted, row) })
		if len(group.rows) == 0 {
			continue
		}
		lines, err := group.do(ctx, group.rows)
		if err != nil {
			return r, fmt.Errorf("%s: %w", strings.Join(group.rows, ", "), err)
		}
		found = append(found, lines...)
	}
	slices.SortStableFunc(found, func(a, b line) int { return slices.Index(rows(), a.Row) - slices.Index(rows(), b.Row) })
	return results{
		Machine: machine(), Commit: commit(ctx), Date: time.Now().UTC().Format(time.DateOnly), Quick: s.quick,
		Took: time.Since(s.begin).Round(time.Second).String(), Lines: found,
	}, nil
}

// build runs the Go tool in a checkout.
func build(ctx context.Context, dir, out string, packages ...string) error {
	return goTool(ctx, dir, append([]string{"build", "-o", out}, packages...)...)
}

func goTool(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go %s in %s: %w: %s", strings.Join(args, " "), dir, err, out)
	}
	return nil
}

// machine says where this is: figures of two machines say nothing about each other.
func machine() string {
	model, cores := program.Processor()
	return fmt.Sprintf("%d cores (%s)", cores, model)
}

func commit(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude", "*").Output()
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(out))
}

// read reads results that were written.
func (r *results) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, r); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
