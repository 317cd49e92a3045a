package scenario

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/strict"
	"sluice.dev/sluice/internal/lab/planner"
)

// lent says what of a scenario does not go with its pools. zones, slices and classes are how many there are.
func lent(o strict.Object, zones int, w Window, slices, classes int) {
	for _, key := range []string{"host", "memory"} {
		if x := o.Get(key); x.Given() {
			x.Wrong("is of nodes that are always there; leave it or the pools out")
		}
	}
	pools := o.Get("pools")
	if zones > 1 {
		pools.Wrong("lend to one zone, and there are %d; leave cluster.zones or the pools out", zones)
	}
	if w.Limit == quantity.Never {
		pools.Wrong("need a window with a limit: jobs may wait for ever for room at a host")
	}
	if slices > MaxSlices || classes > planner.MaxClasses {
		pools.Wrong("and nodes have %d slices of %d kinds; want at most %d of %d", slices, classes, MaxSlices, planner.MaxClasses)
	}
}
