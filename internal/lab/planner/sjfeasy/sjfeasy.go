// Package sjfeasy is shortest job first with EASY's reservation: the shortest that does not fit is kept a place, and longer ones
// behind it start if that does not delay it. It is SJF-EASY of Srinivasan et al., "Characterization of backfilling strategies
// for parallel job scheduling" (ICPP workshops 2002): wide tasks are served in their turn, long ones may still wait for ever.
package sjfeasy

import (
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/ranked"
)

// Kind is the kind.
func Kind() planner.Kind {
	return ranked.Kind("sjf-easy", "shortest job first, with EASY's reservation for the shortest that does not fit (Srinivasan et al., "+
		"ICPP'02)",
		func(planner.Cluster) ranked.Rule { return ranked.Rule{First: ranked.Shortest, Keeps: true} })
}
