package fgd

import (
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/fgd"
	"sluice.dev/sluice/internal/lab/planner/place"
)

// Policies are the planners of the published tables, in their order.
func Policies() []planner.Kind {
	return []planner.Kind{place.Random(), place.DotProduct(), place.Clustering(), place.Packing(), place.BestFit(), fgd.Kind()}
}
