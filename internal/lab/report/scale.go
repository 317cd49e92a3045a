package report

import (
	"math"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/lab/measure"
)

// scale maps values to pixels.
type scale struct {
	from, to, low, high float64
	log                 bool
	ticks               []float64
	label               func(float64) string
	unit                string // " (h)"
}

// newScale covers from to to with about n ticks.
func newScale(a Axis, from, to, low, high float64, n int) *scale {
	s := &scale{from: from, to: to, low: low, high: high, log: a.Log}
	if a.Log {
		if s.from <= 0 || s.from > to {
			s.from = min(1, max(to, 1)/10)
		}
		s.ticks, s.label = decades(a.Unit, s.from, to)
		s.from = min(s.from, s.ticks[0])
		s.to = max(to, s.from*10)
		return s
	}
	if to <= from {
		s.to = from + 1
	}
	factor := 1.0
	switch a.Unit {
	case measure.Share:
		s.label = func(v float64) string { return short(100*v) + "%" }
	case measure.Seconds:
		var name string
		factor, name = timeUnit(max(math.Abs(s.from), math.Abs(s.to)))
		s.unit = " (" + name + ")"
		s.label = func(v float64) string { return short(v / factor) }
	default:
		s.label = short
	}
	step := nice((s.to-s.from)/factor/float64(n)) * factor
	for k := math.Ceil(s.from/step - 1e-9); k*step <= s.to+step*1e-9; k++ {
		s.ticks = append(s.ticks, k*step+0) // never -0
	}
	return s
}

// at is the pixel of a value.
func (s *scale) at(v float64) float64 {
	f := (v - s.from) / (s.to - s.from)
	if s.log {
		f = math.Log(max(v, s.from)/s.from) / math.Log(s.to/s.from)
	}
	return s.low + f*(s.high-s.low)
}

// decades are the ticks of a logarithmic axis: moments that people know, or powers of ten, from the last at or below from on.
// It has no zero: what is below the first tick lies on it.
func decades(unit measure.Unit, from, to float64) ([]float64, func(float64) string) {
	label := short
	var all []float64
	switch unit {
	case measure.Seconds:
		label = moment
		all = []float64{.001, .01, .1, 1, 10, 60, 600, 3600, 36000, 86400, 864000, 8640000}
	default:
		if unit == measure.Share {
			label = func(v float64) string { return short(100*v) + "%" }
		}
		for e := -9; e <= 12; e++ {
			all = append(all, math.Pow10(e))
		}
	}
	first := 0
	for i, t := range all {
		if t <= from {
			first = i
		}
	}
	last := first + 1
	for last < len(all) && all[last] <= to {
		last++
	}
	return all[first:last], label
}

// moment labels the ticks of decades of time, which are whole in the largest unit that they reach.
func moment(v float64) string {
	switch {
	case v >= 86400:
		return short(v/86400) + " d"
	case v >= 3600:
		return short(v/3600) + " h"
	case v >= 60:
		return short(v/60) + " min"
	default:
		return short(v) + " s"
	}
}

// nice is the least of 1, 2, 2.5, 5 times a power of ten that is at least v.
func nice(v float64) float64 {
	base := math.Pow(10, math.Floor(math.Log10(v)))
	for _, k := range []float64{1, 2, 2.5, 5} {
		if v <= k*base*(1+1e-9) {
			return k * base
		}
	}
	return 10 * base
}

// timeUnit is the unit in which a time is best said, in seconds.
func timeUnit(v float64) (float64, string) {
	switch v = math.Abs(v); {
	case v >= 3*86400:
		return 86400, "d"
	case v >= 2*3600:
		return 3600, "h"
	case v >= 120:
		return 60, "min"
	default:
		return 1, "s"
	}
}

// short is a number with at most four digits that count, for ticks; a whole one of up to seven digits is written out.
func short(v float64) string {
	if v >= 1e4 && v < 1e7 && v == math.Trunc(v) {
		return strconv.FormatFloat(v, 'f', 0, 64)
	}
	return strconv.FormatFloat(v, 'g', 4, 64)
}

// figure is a value for people: 83.2%, 4.1 min, 1.25.
func figure(v float64, unit measure.Unit) string { return figureLike(v, v, unit) }

// figureLike says v in the unit that is best for another value.
func figureLike(v, like float64, unit measure.Unit) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case unit == measure.Share:
		return digits(100*v) + "%"
	case unit == measure.Seconds:
		factor, name := timeUnit(like)
		return digits(v/factor) + " " + name
	default:
		return digits(v)
	}
}

// digits rounds to three digits that count, and never drops digits before the point.
func digits(v float64) string {
	decimals := 0
	if a := math.Abs(v); a > 0 && a < 100 {
		decimals = min(2-int(math.Floor(math.Log10(a))), 6)
	}
	text := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}
