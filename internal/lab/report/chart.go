package report

import "sluice.dev/sluice/internal/lab/measure"

// Chart is a plot: lines over a parameter, steps of a distribution, or, with one dot for each series, bars or points.
type Chart struct {
	Title string
	Kind  ChartKind
	// X is not drawn for bars; Y is the value.
	X, Y   Axis
	Series []Series
}

// ChartKind says how the dots of a series are joined.
type ChartKind uint8

// The kinds of charts.
const (
	Lines ChartKind = iota
	Steps
	Bars
	// Points are measured two ways, and the best of them are joined: those that no other betters in both.
	Points
)

// Axis of a chart.
type Axis struct {
	Label string
	Unit  measure.Unit
	// Log draws decades, from the smallest value above 0 on; what is 0 lies at the beginning.
	Log bool
	// Better says which end is the good one; points alone ask.
	Better measure.Better
}

// Series is the values of one mechanism.
type Series struct {
	Name string
	Dots []Dot
}

// Dot is a value with its interval, whose ends are NaN if there is none.
type Dot struct{ X, Y, Low, High float64 }

// Measures of a chart, in pixels.
const (
	chartWidth  = 560
	chartHeight = 300 // of the frame
	chartLeft   = 74
	chartRight  = 20  // of bars
	chartNames  = 124 // of lines, whose names stand there
	chartTop    = 40
	barStep     = 24
	barLabel    = 130
)
