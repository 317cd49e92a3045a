// Incentives plays the market with owners who lie and writes docs/incentives.md with what each lie gains: `make incentives`.
// The same seeds give the same page on every machine.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"sluice.dev/sluice/bench/program"
)

func main() { program.Main("incentives", run) }

// settings of the study.
type settings struct {
	out string
	// seeds of every cell of the tables, and many of the ones that are about the default market.
	seeds, many uint64
	workers     int
	// known are the honest games that were played.
	known map[string][]*outcome
}

func run(ctx context.Context) error {
	s := settings{known: map[string][]*outcome{}}
	flag.StringVar(&s.out, "out", "docs", "folder to write incentives.md and incentives/*.svg to")
	flag.Uint64Var(&s.seeds, "seeds", 8, "seeds of every cell, at least 3")
	flag.Uint64Var(&s.many, "many", 30, "seeds of what is said of the default market")
	flag.IntVar(&s.workers, "workers", runtime.GOMAXPROCS(0), "games at once; it has no influence on the results")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "Incentives plays the market with owners who lie and writes docs/incentives.md.\n\n"+
			"  go run ./bench/incentives                                   all of it (about 5 minutes on two cores)\n"+
			"  go run ./bench/incentives -seeds 50 -many 300               for narrow intervals\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if s.seeds < 3 || s.many < s.seeds || s.workers < 1 || flag.NArg() > 0 {
		flag.Usage()
		return errors.New("want at least 3 seeds, as -many as that or more, and a worker")
	}
	r, err := s.study(ctx, os.Stderr)
	if err != nil {
		return err
	}
	return r.write(&s)
}

// results of the study.
type results struct {
	// table has a row for each lie and a column for each mechanism; final is the default market on many seeds.
	table [][]cell
	final []cell
	// honest is what each mechanism costs all owners, against calibration without prices, where nobody lies.
	honest []cell
	// crowds are shares of liars in the default market, by lie.
	crowds [][]cell
	// responses of the search, in the default market and without prices.
	responses, unpaid []cell
}

// crowd are the numbers of liars of ten owners.
func crowd() []int { return []int{1, 3, 5} }

// teller says how far the study is.
type teller struct {
	to    io.Writer
	begin time.Time
}

func (t teller) say(format string, args ...any) {
	fmt.Fprintf(t.to, "%6s  %s\n", time.Since(t.begin).Round(time.Second), fmt.Sprintf(format, args...))
}

func (s *settings) study(ctx context.Context, progress io.Writer) (*results, error) {
	r, tell := &results{}, teller{progress, time.Now()}
	for _, part := range []func(context.Context, *results, teller) error{s.truths, s.tables, s.finals} {
		if err := part(ctx, r, tell); err != nil {
			return nil, err
		}
	}
	var err error
	tell.say("best response to the default")
	if r.responses, err = s.search(ctx, shipped()); err != nil {
		return nil, err
	}
	tell.say("best response without prices")
	if r.unpaid, err = s.search(ctx, mechanisms()[unpaid]); err != nil {
		return nil, err
	}
	tell.say("done")
	return r, nil
}

// truths is what each mechanism costs where nobody lies, against calibration without prices.
func (s *settings) truths(ctx context.Context, r *results, tell teller) error {
	free, err := s.honest(ctx, mechanisms()[unpaid], 0, s.seeds)
	if err != nil {
		return err
	}
	for _, m := range mechanisms() {
		tell.say("all honest: %s", m.name)
		own, failed := s.honest(ctx, m, 0, s.seeds)
		if failed != nil {
			return failed
		}
		r.honest = append(r.honest, compare(m.name, "honest", 0, free, own))
	}
	return nil
}

// tables are every lie in every mechanism, and in the default with more and more liars.
func (s *settings) tables(ctx context.Context, r *results, tell teller) error {
	for _, lie := range lies() {
		var row, many []cell
		for _, m := range mechanisms() {
			tell.say("%s: %s", lie.name, m.name)
			c, err := s.compared(ctx, m, lie, lie.liars, 0, s.seeds)
			if err != nil {
				return err
			}
			row = append(row, c)
		}
		for _, n := range crowd() {
			if at := slices.IndexFunc(row, func(c cell) bool { return c.mechanism == shipped().name && c.liars == n }); at >= 0 {
				many = append(many, row[at])
				continue
			}
			tell.say("%s: %d of %d owners", lie.name, n, owners)
			c, err := s.compared(ctx, shipped(), lie, n, 0, s.seeds)
			if err != nil {
				return err
			}
			many = append(many, c)
		}
		r.table, r.crowds = append(r.table, row), append(r.crowds, many)
	}
	return nil
}

// finals are every lie in the default, on many seeds of their own.
func (s *settings) finals(ctx context.Context, r *results, tell teller) error {
	for _, lie := range lies() {
		tell.say("%s: the default on %d seeds", lie.name, s.many)
		c, err := s.compared(ctx, shipped(), lie, lie.liars, finalSeeds, s.many)
		if err != nil {
			return err
		}
		r.final = append(r.final, c)
	}
	return nil
}
