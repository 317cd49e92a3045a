// Package all is the ordered table of planners. Adding one is a line here, or one in the table of those that it is like.
package all

import (
	"slices"

	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/conservative"
	"sluice.dev/sluice/internal/lab/planner/easy"
	"sluice.dev/sluice/internal/lab/planner/fcfs"
	"sluice.dev/sluice/internal/lab/planner/fgd"
	"sluice.dev/sluice/internal/lab/planner/greedy"
	"sluice.dev/sluice/internal/lab/planner/place"
	"sluice.dev/sluice/internal/lab/planner/preempt"
	"sluice.dev/sluice/internal/lab/planner/ranked"
)

// Kinds in the order they are shown; the first is the default.
func Kinds() []planner.Kind {
	return slices.Concat(
		[]planner.Kind{fcfs.Kind(), greedy.Skip(), easy.Kind(), conservative.Kind()},
		place.Kinds(), []planner.Kind{fgd.Kind()},
		ranked.Kinds(),
		[]planner.Kind{greedy.StaticMIG()}, preempt.Kinds(),
	)
}
