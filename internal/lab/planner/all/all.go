// Package all is the ordered table of planners. Adding one is a folder and a line here.
package all

import (
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/bestfit"
	"sluice.dev/sluice/internal/lab/planner/clustering"
	"sluice.dev/sluice/internal/lab/planner/conservative"
	"sluice.dev/sluice/internal/lab/planner/dotproduct"
	"sluice.dev/sluice/internal/lab/planner/easy"
	"sluice.dev/sluice/internal/lab/planner/fcfs"
	"sluice.dev/sluice/internal/lab/planner/fgd"
	"sluice.dev/sluice/internal/lab/planner/migrate"
	"sluice.dev/sluice/internal/lab/planner/packing"
	"sluice.dev/sluice/internal/lab/planner/random"
	"sluice.dev/sluice/internal/lab/planner/skip"
	"sluice.dev/sluice/internal/lab/planner/staticmig"
)

// Kinds in the order they are shown; the first is the default.
func Kinds() []planner.Kind {
	return []planner.Kind{
		fcfs.Kind(), skip.Kind(), easy.Kind(), conservative.Kind(),
		bestfit.Kind(), random.Kind(), dotproduct.Kind(), clustering.Kind(), packing.Kind(), fgd.Kind(),
		staticmig.Kind(), migrate.Kind(),
	}
}
