// Package saf is smallest area first with EASY's reservation for the first that does not fit. The area is declared run time x
// devices, as in Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling: a simple
// scheduling policies case study" (CCGrid 2019). Their processors are all alike; here a device counts with its class' part of a
// whole GPU, and the area is that of the class where it is smallest, so that a task that needs a large slice comes behind one
// that runs as long on a small slice.
package saf

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/ranked"
)

// Kind is the kind.
func Kind() planner.Kind {
	return ranked.Kind("saf", "smallest area first, declared run time x devices, with EASY's reservation (Carastan-Santos et al., "+
		"CCGrid'19)",
		func(c planner.Cluster) ranked.Rule {
			return ranked.Rule{Keeps: true, First: func(_ quantity.Instant, e *book.Entry) int64 { return area(c.Classes, e) }}
		})
}

// area of a task in nanoseconds of a whole GPU, on the class where it is smallest. A class without a weight counts as a whole one.
func area(classes []planner.Class, e *book.Entry) int64 {
	least := int64(book.Unknown)
	if e.Task.Run == nil {
		return least
	}
	for m := e.Task.Classes; m != 0; m &= m - 1 {
		c := bits.TrailingZeros32(m)
		weight := classes[c].Weight
		if weight == 0 {
			weight = planner.Whole
		}
		least = min(least, quantity.MulDiv(e.Run(c), int64(e.Task.Devices)*int64(e.Task.Share)*weight, planner.Whole*planner.Whole))
	}
	return least
}
