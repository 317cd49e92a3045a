package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/edge/config"
)

// The jobs of every row: all kinds but external, in several queues, with memory from 2 to 10 GiB that is flat or changes with
// progress, some with deadlines, priorities and templates, under random names. They differ so much that a market which looks
// at one of each sort has looked at nothing; a row with one sort of job would measure that.

const (
	// queues the jobs are in, and shapes they come in.
	queues = 8
	shapes = 96
	// seed of all that is drawn.
	seed = 20261122
)

// queueName is the name of a queue.
func queueName(i int) string { return fmt.Sprintf("q%d", i%queues) }

// queueFile is what `sluice up --config` is told of the queues.
func queueFile() string {
	var s strings.Builder
	s.WriteString("queues:\n")
	for i := range queues {
		fmt.Fprintf(&s, "  - {name: %s, weight: %d}\n", queueName(i), 1+i%3)
	}
	return s.String()
}

// jobFile is one document of a job file: shape i under a name.
func jobFile(i int, name string) string {
	draw := prng.New(seed, 1, uint64(i%shapes))
	units, minutes := 200+10*draw.IntN(180), 20+draw.IntN(220)
	per := time.Duration(minutes) * time.Minute / time.Duration(units)
	var s strings.Builder
	fmt.Fprintf(&s, "apiVersion: sluice.dev/v1alpha1\nkind: Job\nmetadata: {name: %s}\nspec:\n  queue: %s\n  command: [/bin/sleep, "+
		"\"60\"]\n", name, queueName(draw.IntN(queues)))
	rigid := false
	switch k := draw.IntN(8); {
	case k < 4:
		fmt.Fprintf(&s, "  items: {total: %d, perItem: %v, grid: 10, parallelism: %d}\n", units, per, 1+draw.IntN(4))
	case k < 7:
		fmt.Fprintf(&s, "  steps: {total: %d, perStep: %v, every: 10, restore: %ds, checkpoint: %ds}\n", units, per, 1+draw.IntN(4),
			1+draw.IntN(3))
	default:
		rigid = true
		fmt.Fprintf(&s, "  rigid: {walltime: %dm}\n", 5+draw.IntN(50))
	}
	mean := 2048 + 256*draw.IntN(30)
	if rigid || draw.IntN(3) == 0 {
		fmt.Fprintf(&s, "  memory: %dMi\n", mean)
	} else {
		fmt.Fprintf(&s, "  memory: {phases: [{upTo: %d, mean: %dMi, sd: %dMi}, {mean: %dMi, sd: %dMi}]}\n", units/2, mean*2/3, mean/50,
			mean, mean/40)
	}
	if draw.IntN(4) == 0 {
		fmt.Fprintf(&s, "  deadline: 2036-%02d-01T00:00:00Z\n", 1+draw.IntN(12))
	}
	if draw.IntN(4) == 0 {
		fmt.Fprintf(&s, "  priority: %d\n", draw.IntN(5))
	}
	if draw.IntN(4) == 0 {
		fmt.Fprintf(&s, "  template: t%d\n", draw.IntN(12))
	}
	return s.String()
}

// jobName is the random name of job i of a set.
func jobName(set string, i int) string {
	draw := prng.New(seed, 2, prng.Name(set), uint64(i))
	return fmt.Sprintf("%s-%012x", set, draw.Uint64()>>16)
}

// names are the names of n jobs of a set, sorted as in a snapshot. The order tells nothing of the jobs otherwise.
func names(set string, n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = jobName(set, i)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// specs are the shapes as the gate is told of them; without names.
func specs() ([]job.Spec, error) {
	list := make([]job.Spec, shapes)
	for i := range list {
		s, _, err := config.ParseJob("shape", []byte(jobFile(i, "shape")))
		if err != nil {
			return nil, err
		}
		list[i] = *s
		list[i].Name = ""
	}
	return list, nil
}

// specOf is shape i under a name, as it is submitted.
func specOf(all []job.Spec, i int, name string) *job.Spec {
	s := all[i%len(all)]
	s.Name = job.ID(name)
	return &s
}
