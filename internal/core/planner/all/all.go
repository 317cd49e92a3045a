// Package all is the ordered table of planners. Adding one is a folder and a line here.
package all

import (
	"sluice.dev/sluice/internal/core/planner"
	"sluice.dev/sluice/internal/core/planner/bestfit"
	"sluice.dev/sluice/internal/core/planner/clustering"
	"sluice.dev/sluice/internal/core/planner/conservative"
	"sluice.dev/sluice/internal/core/planner/dotproduct"
	"sluice.dev/sluice/internal/core/planner/easy"
	"sluice.dev/sluice/internal/core/planner/fcfs"
	"sluice.dev/sluice/internal/core/planner/fgd"
	"sluice.dev/sluice/internal/core/planner/migrate"
	"sluice.dev/sluice/internal/core/planner/packing"
	"sluice.dev/sluice/internal/core/planner/random"
	"sluice.dev/sluice/internal/core/planner/skip"
	"sluice.dev/sluice/internal/core/planner/staticmig"
)

// Kinds in the order they are shown; the first is the default.
func Kinds() []planner.Kind {
	return []planner.Kind{
		fcfs.Kind(), skip.Kind(), easy.Kind(), conservative.Kind(),
		bestfit.Kind(), random.Kind(), dotproduct.Kind(), clustering.Kind(), packing.Kind(), fgd.Kind(),
		staticmig.Kind(), migrate.Kind(),
	}
}

// Live finds a kind that may serve a live cluster.
func Live(name string) (planner.Kind, error) { return planner.Live(Kinds(), name) }
