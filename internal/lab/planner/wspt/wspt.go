// Package wspt is weighted shortest processing time first, Smith's rule (Naval Research Logistics Quarterly 1956): who waits is
// served by declared run time / weight, the least first, and who does not fit is passed over. The weight is that of the
// task's queue. On one device, with everybody there and the truth declared, no order has a smaller sum of weight x
// completion. Where all weights are alike it is sjf.
package wspt

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/ranked"
)

// Kind is the kind.
func Kind() planner.Kind {
	return ranked.Kind("wspt", "weighted shortest first: by declared run time / weight of the queue (Smith's rule, NRLQ 1956)",
		func(planner.Cluster) ranked.Rule { return ranked.Rule{First: rank} })
}

// rank in nanoseconds for a unit of weight.
func rank(_ quantity.Instant, e *book.Entry) int64 {
	run := e.Shortest()
	if run == book.Unknown {
		return run
	}
	return run / max(1, e.Task.Weight)
}
