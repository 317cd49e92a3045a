package ranked

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

// SJF is shortest job first: waiting tasks are served by declared run time, on the class where that is shortest, and those that do not fit
// are skipped. Nothing is stopped and nothing reserved: wide and long tasks may wait for ever. On one device, with all tasks present and
// the truth declared, no order has a smaller mean completion (Smith, Naval Research Logistics Quarterly 1956).
func SJF() planner.Kind {
	return Kind("sjf", "shortest job first: by declared run time, whoever does not fit is passed over (Smith, NRLQ 1956)",
		func(planner.Cluster) Rule { return Rule{First: Shortest} })
}

// SJFEasy is shortest job first with EASY's reservation: the shortest that does not fit is kept a place, and longer ones
// behind it start if that does not delay it. It is SJF-EASY of Srinivasan et al., "Characterization of backfilling strategies
// for parallel job scheduling" (ICPP workshops 2002): wide tasks are served in their turn, long ones may still wait for ever.
func SJFEasy() planner.Kind {
	return Kind("sjf-easy", "shortest job first, with EASY's reservation for the shortest that does not fit (Srinivasan et al., "+
		"ICPP'02)",
		func(planner.Cluster) Rule { return Rule{First: Shortest, Keeps: true} })
}

// EasySJBF is EASY with shortest-job backfill (Tsafrir, Etsion and Feitelson, "Backfilling using system-generated
// predictions rather than user runtime estimates", TPDS 2007): tasks start in the order of arrival, the first that does not
// fit has a reservation, and those that may overtake it are tried by declared run time, the shortest first. So nobody waits
// for ever.
func EasySJBF() planner.Kind {
	return Kind("easy-sjbf", "EASY backfilling, the shortest first behind the reservation (Tsafrir et al., TPDS 2007)",
		func(planner.Cluster) Rule { return Rule{First: Earliest, Behind: Shortest, Keeps: true} })
}

// WSPT is weighted shortest processing time first, Smith's rule (Naval Research Logistics Quarterly 1956): waiting tasks are served by
// declared run time
// weight, the least first, and those that do not fit are skipped. The weight is that of the task's queue. On one device, with all tasks
// present and the truth declared, no order has a smaller sum of weight x completion. With equal weights it is sjf.
func WSPT() planner.Kind {
	return Kind("wspt", "weighted shortest first: by declared run time / weight of the queue (Smith's rule, NRLQ 1956)",
		func(planner.Cluster) Rule { return Rule{First: perWeight} })
}

// perWeight ranks in nanoseconds for a unit of weight.
func perWeight(_ quantity.Instant, e *book.Entry) int64 {
	run := e.Shortest()
	if run == book.Unknown {
		return run
	}
	return run / max(1, e.Task.Weight)
}

// SAF is smallest area first with EASY's reservation for the first that does not fit. The area is declared run time x
// devices, as in Carastan-Santos, de Camargo, Trystram and Zrigui, "One can only gain by replacing EASY backfilling: a simple
// scheduling policies case study" (CCGrid 2019). Their processors are all alike; here a device counts with its class' part of a
// whole GPU, and the area is that of the class where it is smallest, so that a task that needs a large slice comes behind one
// that runs as long on a small slice.
func SAF() planner.Kind {
	return Kind("saf", "smallest area first, declared run time x devices, with EASY's reservation (Carastan-Santos et al., "+
		"CCGrid'19)",
		func(c planner.Cluster) Rule {
			return Rule{Keeps: true, First: func(_ quantity.Instant, e *book.Entry) int64 { return area(c.Classes, e) }}
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

// Kinds in the order they are shown.
func Kinds() []planner.Kind {
	return []planner.Kind{SJF(), SJFEasy(), EasySJBF(), WSPT(), SAF(), F1(), WFP3()}
}
