// Package all is the ordered table of planners. Adding one is a folder and a line here.
package all

import (
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/bestfit"
	"sluice.dev/sluice/internal/lab/planner/clustering"
	"sluice.dev/sluice/internal/lab/planner/conservative"
	"sluice.dev/sluice/internal/lab/planner/dotproduct"
	"sluice.dev/sluice/internal/lab/planner/easy"
	"sluice.dev/sluice/internal/lab/planner/easysjbf"
	"sluice.dev/sluice/internal/lab/planner/f1"
	"sluice.dev/sluice/internal/lab/planner/fcfs"
	"sluice.dev/sluice/internal/lab/planner/fgd"
	"sluice.dev/sluice/internal/lab/planner/las"
	"sluice.dev/sluice/internal/lab/planner/migrate"
	"sluice.dev/sluice/internal/lab/planner/packing"
	"sluice.dev/sluice/internal/lab/planner/random"
	"sluice.dev/sluice/internal/lab/planner/saf"
	"sluice.dev/sluice/internal/lab/planner/sjf"
	"sluice.dev/sluice/internal/lab/planner/sjfeasy"
	"sluice.dev/sluice/internal/lab/planner/skip"
	"sluice.dev/sluice/internal/lab/planner/srpt"
	"sluice.dev/sluice/internal/lab/planner/staticmig"
	"sluice.dev/sluice/internal/lab/planner/wfp3"
	"sluice.dev/sluice/internal/lab/planner/wspt"
)

// Kinds in the order they are shown; the first is the default.
func Kinds() []planner.Kind {
	return []planner.Kind{
		fcfs.Kind(), skip.Kind(), easy.Kind(), conservative.Kind(),
		bestfit.Kind(), random.Kind(), dotproduct.Kind(), clustering.Kind(), packing.Kind(), fgd.Kind(),
		sjf.Kind(), sjfeasy.Kind(), easysjbf.Kind(), wspt.Kind(), saf.Kind(), f1.Kind(), wfp3.Kind(),
		staticmig.Kind(), migrate.Kind(), srpt.Kind(), las.Kind(),
	}
}
