package fgd

import (
	"sluice.dev/sluice/internal/core/planner"
	"sluice.dev/sluice/internal/core/planner/bestfit"
	"sluice.dev/sluice/internal/core/planner/clustering"
	"sluice.dev/sluice/internal/core/planner/dotproduct"
	"sluice.dev/sluice/internal/core/planner/fgd"
	"sluice.dev/sluice/internal/core/planner/packing"
	"sluice.dev/sluice/internal/core/planner/random"
)

// Policies are the planners of the published tables, in their order.
func Policies() []planner.Kind {
	return []planner.Kind{random.Kind(), dotproduct.Kind(), clustering.Kind(), packing.Kind(), bestfit.Kind(), fgd.Kind()}
}
