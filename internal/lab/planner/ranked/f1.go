package ranked

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

// F1 is the first of the four orders that Carastan-Santos and de Camargo learned from simulated schedules ("Obtaining
// dynamic scheduling policies with simulation and machine learning", SC'17), with EASY's reservation for the first that does
// not fit. The least of
//
//	log10(r) n + 870 log10(s)
//
// goes first, with the declared run time r in seconds (here on the class where that is shortest), n devices, and the
// submission s in seconds since the first task of the log. The constants were learned on machines of 256 cores; nothing is
// tuned to other sizes. Where n is small the order is mostly that of arrival.
func F1() planner.Kind {
	return Kind("f1", "learned order F1, log10(run) n + 870 log10(submission), with EASY's reservation (Carastan-Santos, SC'17)",
		f1Rule)
}

func f1Rule(planner.Cluster) Rule {
	begin, begun := quantity.Instant(0), false
	return Rule{Keeps: true, First: func(now quantity.Instant, e *book.Entry) int64 {
		if !begun {
			begin, begun = now, true
		}
		return f1Score(e.Shortest(), e.Task.Devices, e.Since.Sub(begin))
	}}
}

// f1Grain is the unit of scores: finer differences are none, so that the last bits of a logarithm decide nothing.
const f1Grain = 1e-6

// f1Score is in millionths; run in nanoseconds. Both times count as a second at least.
func f1Score(run int64, devices int32, submitted time.Duration) int64 {
	if run == book.Unknown {
		return run
	}
	r, s := max(1, float64(run)/1e9), max(1, submitted.Seconds())
	return int64(math.Round((float64(math.Log10(r)*float64(devices)) + float64(870*math.Log10(s))) / f1Grain))
}
