package slurm

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"sluice.dev/sluice/bench/sample"
)

// Contest is how many no-op jobs a second a head's machines do, beside a Slurm of as many nodes, as it comes and tuned.
type Contest struct {
	// Dir has a folder for each Slurm.
	Dir string
	// Nodes of each Slurm, with so many CPUs.
	Nodes, CPUs int
	// Jobs of one measurement; Slurm gets a fifth. Turns is how often all of them are measured, one after another.
	Jobs, Turns int
	// Name of ours, and Run does a number of jobs, each a process of its own: how long it took from the first order to the known end of
	// the last.
	Name string
	Run  func(ctx context.Context, jobs int) (time.Duration, error)
}

// Rate is a line of a contest.
type Rate struct {
	// Name of who it is, Target of ours beside it (empty: none), and Measured, in words.
	Name, Target, Measured string
}

// contender does a number of no-op jobs, as Contest.Run.
type contender struct {
	name string
	jobs int
	run  func(context.Context, int) (time.Duration, error)
}

// Hold holds the contest. The first line is ours; where there is no Slurm it is alone, and it is printed what is missing.
func (c Contest) Hold(ctx context.Context) (rates []Rate, err error) {
	all := []contender{{c.Name, c.Jobs, c.Run}}
	for _, tuned := range []bool{false, true} {
		name := "Slurm"
		if tuned {
			name = "Slurm, tuned"
		}
		s, failed := Start(ctx, Options{Dir: filepath.Join(c.Dir, strings.ReplaceAll(strings.ToLower(name), ", ", "-")), Nodes: c.Nodes,
			CPUs: c.CPUs, Tuned: tuned})
		if failed != nil {
			fmt.Printf("# %s: skipped: %v\n", name, failed)
			continue
		}
		defer func() { err = errors.Join(err, s.Stop()) }()
		all = append(all, contender{name + ", `sbatch` for each", max(1, c.Jobs/5), s.Jobs},
			contender{name + ", `sbatch --array`", max(1, c.Jobs/5), s.Array})
	}
	done := make([][]float64, len(all)) // jobs a second, by turn
	for range c.Turns {
		for i, x := range all {
			took, failed := x.run(ctx, x.jobs)
			if failed != nil {
				return nil, fmt.Errorf("%s: %w", x.name, failed)
			}
			done[i] = append(done[i], float64(x.jobs)/took.Seconds())
			fmt.Printf("# %s: %d in %v, %.3g/s\n", x.name, x.jobs, took.Round(time.Millisecond), done[i][len(done[i])-1])
		}
	}
	for i, x := range all {
		v := sample.Ordered(done[i])
		r := Rate{Name: x.name, Measured: fmt.Sprintf("%.3g (%.3g to %.3g)", sample.Median(v), v[0], v[len(v)-1])}
		if i > 0 {
			ratios := make([]float64, len(v))
			for k := range ratios { // of one turn, so that what slowed the machine for a while slowed both
				ratios[k] = done[0][k] / done[i][k]
			}
			ratios = sample.Ordered(ratios)
			r.Measured += fmt.Sprintf("; Sluice does %.3g (%.3g to %.3g) times as many", sample.Median(ratios), ratios[0],
				ratios[len(ratios)-1])
			if !strings.Contains(x.name, "tuned") {
				r.Target = "20 times as many"
			}
		}
		rates = append(rates, r)
	}
	return rates, nil
}

// NoOps is a file of n jobs, called so and numbered, of one unit each that does nothing.
func NoOps(name string, n int) string {
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
