package fgd

import (
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/bestfit"
	"sluice.dev/sluice/internal/lab/planner/clustering"
	"sluice.dev/sluice/internal/lab/planner/dotproduct"
	"sluice.dev/sluice/internal/lab/planner/fgd"
	"sluice.dev/sluice/internal/lab/planner/packing"
	"sluice.dev/sluice/internal/lab/planner/random"
)

// Policies are the planners of the published tables, in their order.
func Policies() []planner.Kind {
	return []planner.Kind{random.Kind(), dotproduct.Kind(), clustering.Kind(), packing.Kind(), bestfit.Kind(), fgd.Kind()}
}
