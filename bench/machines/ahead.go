package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/bench/daemon"
	"sluice.dev/sluice/bench/sample"
	"sluice.dev/sluice/bench/subjob"
)

// aheadMachines have a slice each, as pilots have. Eight times as many units as jobs are one job's, which takes about as long.
const (
	aheadMachines = 3
	unitsAhead    = 8
)

// way is a way to have no-ops done, and what came of it, turn by turn.
type way struct {
	name string
	// number of no-ops of one turn, in so many jobs: the files of a way are made by the turn.
	number, jobs int
	file         func(name string, n int) string
	rates        []float64
	// each is what a no-op costs: processor time of the head, of its machines and of what they start, and syncs of the journals of both.
	each [5][]float64
}

// noOp is the file of a job of n units, of which each is a process.
func noOp(name string, n int, script string) string {
	return fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s}
spec:
  items: {total: %d, perItem: 10ms, parallelism: %d}
  memory: 16Mi
  command: [sh, -c, '%s']
  grace: 1s
`, name, n, aheadMachines, script)
}

// aheads are no-op jobs that wait before the first of them may start, on machines of a slice each; in the same run, in turn, the same jobs
// with a word in their logs, the units of one job, and bare starts of the same two programs.
func aheads(ctx context.Context, s *settings) (rows []row, err error) {
	ways := []*way{
		{name: "a job each", number: s.ahead, jobs: s.ahead, file: func(name string, _ int) string { return noOp(name, 1, ":") }},
		{name: "a job each, which writes a word", number: s.ahead, jobs: s.ahead,
			file: func(name string, _ int) string { return noOp(name, 1, "echo word") }},
		{name: "units of one job, a process each", number: unitsAhead * s.ahead, jobs: 1, file: func(name string, n int) string {
			return noOp(name, n, "i=$SLUICE_FROM; while [ $i -lt $SLUICE_TO ]; do /bin/true; i=$((i+1)); done")
		}},
	}
	bare := &way{name: "bare starts of supervisor and command, as many at once"}
	for range s.pairs {
		for _, w := range ways {
			if err = w.turn(ctx, s); err != nil {
				return nil, fmt.Errorf("%s: %w", w.name, err)
			}
		}
		rate, err := subjob.Bare(ctx, subjob.Settings{Bin: s.bin, Slots: aheadMachines, Subjobs: s.ahead})
		if err != nil {
			return nil, err
		}
		bare.rates = append(bare.rates, rate)
	}
	of := fmt.Sprintf("no-ops a second, %d waiting ahead, %d machines of a slice: ", s.ahead, aheadMachines)
	for _, w := range append(ways, bare) {
		rows = append(rows, row{of + w.name, "", w.beside(ways[0])})
	}
	for _, w := range ways {
		rows = append(rows, row{"what each costs, " + w.name, "", w.costs()})
	}
	return rows, nil
}

// beside is a way's rate, and that of another as a multiple of it, turn by turn.
func (w *way) beside(first *way) string {
	text := func(v []float64) string {
		v = sample.Ordered(v)
		return fmt.Sprintf("%.3g (%.3g to %.3g)", sample.Median(v), v[0], v[len(v)-1])
	}
	if w == first {
		return text(w.rates)
	}
	var ratios []float64
	for i := range w.rates { // of one turn, so that what slowed the machine for a while slowed both
		ratios = append(ratios, first.rates[i]/w.rates[i])
	}
	return text(w.rates) + "; " + first.name + " " + text(ratios) + " times as many"
}

func (w *way) costs() string {
	var of [5]float64
	for i, v := range w.each {
		of[i] = sample.Median(sample.Ordered(v))
	}
	return fmt.Sprintf("processor time: head %.2f ms, machines %.2f ms, what they start %.2f ms; syncs of journals: head %.2f, "+
		"machines %.2f", of[0], of[1], of[2], of[3], of[4])
}

// turn does a way's no-ops once, on machines of its own.
func (w *way) turn(ctx context.Context, s *settings) (err error) {
	one := *s
	one.machines, one.slices = aheadMachines, 1
	at, err := one.newWorld()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, at.close()) }()
	if err = at.join(ctx, &one, at.address); err != nil {
		return err
	}
	giveBack, err := at.head.Drain(ctx, "")
	if err != nil {
		return err
	}
	for i := 0; i < w.jobs; {
		var files string
		for end := min(i+inACall, w.jobs); i < end; i++ {
			files += w.file(fmt.Sprintf("noop-%d", i), w.number) + "---\n"
		}
		if err = at.head.Send(ctx, files); err != nil {
			return err
		}
	}
	before, err := at.spent(ctx)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err = giveBack(); err != nil {
		return err
	}
	if err = at.head.Completed(ctx, w.jobs); err != nil {
		return err
	}
	took := time.Since(begin)
	after, err := at.spent(ctx)
	if err != nil {
		return err
	}
	w.rates = append(w.rates, float64(w.number)/took.Seconds())
	for i := range w.each {
		w.each[i] = append(w.each[i], (after[i]-before[i])/float64(w.number))
	}
	fmt.Printf("# %s: %d in %v, %.3g/s\n", w.name, w.number, took.Round(time.Millisecond), w.rates[len(w.rates)-1])
	return nil
}

// spent is what the head, its machines and what they started have used since they were started, in the order of way.each.
func (w *world) spent(ctx context.Context) (sum [5]float64, err error) {
	u, err := w.used()
	if err != nil {
		return sum, err
	}
	sum[0], sum[1], sum[2] = sample.Milliseconds(u.head), sample.Milliseconds(u.machines), sample.Milliseconds(u.started)
	for i, d := range append([]*daemon.Daemon{w.head}, w.machines...) {
		syncs, err := d.Metrics(ctx, "sluice_journal_append_seconds_count")
		if err != nil {
			return sum, err
		}
		sum[3+min(i, 1)] += syncs[""]
	}
	return sum, nil
}
