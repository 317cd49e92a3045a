// Package outcome is what came of a scenario: the result of a run, what a scenario expects, and how that compares.
package outcome

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/lab/measure"
)

// Finished is how many jobs finished: a metric of expectations beside those of package measure.
const Finished = "finished"

// Result is the outcome of one run: a scenario under one mechanism with one seed.
type Result struct {
	measure.Run
	// Finished counts jobs of the whole run, warm-up included; Live those without a final state at its end.
	Finished, Live int64
	// Partial says that the run was ended before the scenario was over: At is how far it came.
	Partial bool
	At      quantity.Instant
	// Broken lists the invariants that an independent witness found broken; empty unless something is very wrong.
	Broken []string
	// Told are the jobs that had a predicted wait and began, Sooner and Later those of them that did so outside their range.
	Told, Sooner, Later int64
	// Recording of where and when jobs ran, and the distribution of the waits; nil if not asked for.
	Recording *measure.Recording
	Waits     []measure.Point
	// Fates of explicit jobs, by name.
	Fates map[string]Fate
	// Strains are each live node's final account of its host's memory, and of what it did about it since it last came up.
	Strains []status.Strain
	// Reclaims are what was decided about subjobs for guests, in order: the newest of each node, since it last came up. Its times are of
	// its node's clock, from the beginning of the scenario.
	Reclaims []status.ReclaimStep
	// Mail is what actors said to each other, the most frequent kind first; nil if it was not asked for.
	Mail []measure.Mailed
}

// Fate is what became of an explicit job.
type Fate struct {
	// Began and Ended are Never if it did not.
	Began, Ended quantity.Instant
	Pieces       int64
	State        job.State
}
