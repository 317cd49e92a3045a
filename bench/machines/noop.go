package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"sluice.dev/sluice/bench/sample"
	"sluice.dev/sluice/bench/slurm"
)

// contender runs a number of no-op jobs, each a process of its own, and returns how long it took from the first order to the known end of
// the last.
type contender struct {
	name string
	jobs int
	run  func(context.Context, int) (time.Duration, error)
}

// noops are no-op jobs a second of our machines, and of Slurm on as many nodes, as it comes and tuned.
func noops(ctx context.Context, s *settings) (rows []row, err error) {
	all := []contender{{"Sluice", s.jobs, s.own}}
	for _, tuned := range []bool{false, true} {
		name := "Slurm"
		if tuned {
			name = "Slurm, tuned"
		}
		c, failed := slurm.Start(ctx, slurm.Options{Dir: filepath.Join(s.temp, strings.ReplaceAll(strings.ToLower(name), ", ", "-")),
			Nodes: s.machines, CPUs: s.slices, Tuned: tuned})
		if failed != nil {
			fmt.Printf("# %s: skipped: %v\n", name, failed)
			continue
		}
		defer func() { err = errors.Join(err, c.Stop()) }()
		all = append(all, contender{name + ", `sbatch` for each", max(1, s.jobs/5), c.Jobs},
			contender{name + ", `sbatch --array`", max(1, s.jobs/5), c.Array})
	}
	rates := make([][]float64, len(all))
	for range s.pairs {
		for i, c := range all {
			took, err := c.run(ctx, c.jobs)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			rates[i] = append(rates[i], float64(c.jobs)/took.Seconds())
			fmt.Printf("# %s: %d in %v, %.3g/s\n", c.name, c.jobs, took.Round(time.Millisecond), rates[i][len(rates[i])-1])
		}
	}
	for i, c := range all {
		v := sample.Ordered(rates[i])
		r := row{fmt.Sprintf("no-op jobs a second, %d machines of %d slices: %s", s.machines, s.slices, c.name), "",
			fmt.Sprintf("%.3g (%.3g to %.3g)", sample.Median(v), v[0], v[len(v)-1])}
		if i > 0 {
			ratios := make([]float64, len(v))
			for k := range ratios { // of one turn, so that what slowed the machine for a while slowed both
				ratios[k] = rates[0][k] / rates[i][k]
			}
			ratios = sample.Ordered(ratios)
			r.measured += fmt.Sprintf("; Sluice does %.3g (%.3g to %.3g) times as many", sample.Median(ratios), ratios[0],
				ratios[len(ratios)-1])
			if !strings.Contains(c.name, "tuned") {
				r.target = "20 times as many"
			}
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// own submits n jobs of one no-op each, in one file, to a head whose machines are ready, and waits for the last commit.
func (s *settings) own(ctx context.Context, n int) (took time.Duration, err error) {
	w, err := s.newWorld()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err = w.join(ctx, s, w.address); err != nil {
		return 0, err
	}
	before, err := w.used()
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err = w.head.Send(ctx, noopFile("noop", n)); err != nil {
		return 0, err
	}
	if err = w.head.Completed(ctx, n); err != nil {
		return 0, err
	}
	took = time.Since(begin)
	after, err := w.used()
	if err != nil {
		return 0, err
	}
	each := func(d time.Duration) float64 { return sample.Milliseconds(d) / float64(n) }
	fmt.Printf("# Sluice: ms of processor time a job: head %.2f, machines %.2f, what they start %.2f\n", each(after.head-before.head),
		each(after.machines-before.machines), each(after.started-before.started))
	claims, err := w.head.Metrics(ctx, "sluice_claims_settled_total")
	if err == nil && int(claims["committed"]) != n {
		err = fmt.Errorf("%d jobs had %v claims that were committed, want one each", n, claims["committed"])
	}
	return took, err
}

// noopFile is n jobs of one unit each that does nothing.
func noopFile(name string, n int) string {
	files := make([]string, n)
	for i := range files {
		files[i] = fmt.Sprintf(`apiVersion: sluice.dev/v1alpha1
kind: Job
metadata: {name: %s-%d}
spec:
  items: {total: 1, perItem: 10ms}
  memory: 16Mi
  command: [/bin/true]
  grace: 1s
`, name, i)
	}
	return strings.Join(files, "---\n")
}
