package submit

import (
	"strconv"

	"sluice.dev/sluice/internal/core/indices"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/edge/config"
	"sluice.dev/sluice/internal/edge/strict"
)

// taskFailures is how many subjobs in a row may end without progress where the units are tasks. Tasks differ: one may take many times as
// long as those before it, and after each subjob that was too short for it the next gets more time.
const taskFailures = 10

// tasksOf are the values of a job of n tasks, at most parallel at once (0: all). What people give comes behind them, and replaces them.
func tasksOf(unit string, n, parallel int) []strict.Set {
	if parallel == 0 || parallel > n {
		parallel = n
	}
	return []strict.Set{
		{Path: "spec.items.total", Value: strconv.Itoa(n)},
		{Path: "spec.items.unit", Value: unit},
		{Path: "spec.items.parallelism", Value: strconv.Itoa(min(parallel, config.MaxParallelism))},
		{Path: "spec.onItemFailure", Value: "skip"},
		{Path: "spec.maxFailures", Value: strconv.Itoa(taskFailures)},
	}
}

// arrayTasks are the values of a job whose tasks are those of --array.
func arrayTasks(text string) ([]strict.Set, error) {
	l, err := indices.Parse(text)
	if err != nil {
		return nil, command.Usage("--array %s: %w", text, err)
	}
	return tasksOf("task", len(l.IDs), l.Parallel), nil
}
