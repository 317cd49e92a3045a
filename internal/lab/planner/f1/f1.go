// Package f1 is the first of the four orders that Carastan-Santos and de Camargo learned from simulated schedules ("Obtaining
// dynamic scheduling policies with simulation and machine learning", SC'17), with EASY's reservation for the first that does
// not fit. The least of
//
//	log10(r) n + 870 log10(s)
//
// goes first, with the declared run time r in seconds (here on the class where that is shortest), n devices, and the
// submission s in seconds since the first task of the log. The constants were learned on machines of 256 cores; nothing is
// tuned to other sizes. Where n is small the order is mostly that of arrival.
package f1

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
	"sluice.dev/sluice/internal/lab/planner/ranked"
)

// Kind is the kind.
func Kind() planner.Kind {
	return ranked.Kind("f1", "learned order F1, log10(run) n + 870 log10(submission), with EASY's reservation (Carastan-Santos, SC'17)",
		rule)
}

func rule(planner.Cluster) ranked.Rule {
	begin, begun := quantity.Instant(0), false
	return ranked.Rule{Keeps: true, First: func(now quantity.Instant, e *book.Entry) int64 {
		if !begun {
			begin, begun = now, true
		}
		return score(e.Shortest(), e.Task.Devices, e.Since.Sub(begin))
	}}
}

// grain is the unit of scores: finer differences are none, so that the last bits of a logarithm decide nothing.
const grain = 1e-6

// score in millionths; run in nanoseconds. Both times count as a second at least.
func score(run int64, devices int32, submitted time.Duration) int64 {
	if run == book.Unknown {
		return run
	}
	r, s := max(1, float64(run)/1e9), max(1, submitted.Seconds())
	return int64(math.Round((float64(math.Log10(r)*float64(devices)) + float64(870*math.Log10(s))) / grain))
}
