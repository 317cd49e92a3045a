package main

import (
	"fmt"
	"math"
	"strings"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
	"sluice.dev/sluice/internal/lab/swarm/fluid"
)

// least is where an axis of rare things begins: fewer than one of 100,000 tasks is not seen with as many of them.
const least = 1e-5

// rare says how a share that is nearly 1 is drawn: what is left of it, in decades.
func rare(metric string) (label string, ok bool) {
	switch metric {
	case measure.PlacedShare:
		return "tasks not placed (10⁻⁵ or fewer: at the bottom)", true
	case measure.ZoneFairness:
		return "unevenness of zones, 1 - Jain", true
	}
	return "", false
}

// axis of a metric, and how a value is drawn on it.
func axis(metric string) (report.Axis, func(float64) float64) {
	about := measure.About(metric)
	a := report.Axis{Label: strings.ToLower(about.Title), Unit: about.Unit, Better: about.Better}
	if label, ok := rare(metric); ok {
		a.Label, a.Unit, a.Log, a.Better = label, measure.Plain, true, measure.Lower
		return a, func(v float64) float64 { return max(least, 1-v) }
	}
	if metric == measure.MessagesPerTask {
		a.Label = "messages per task"
	}
	return a, func(v float64) float64 { return v }
}

// chart is a metric over the setting: laminar, the theory, and the peers, those first that are named.
func (r *result) chart(metric string) *report.Chart {
	y, drawn := axis(metric)
	y.Log = y.Log || r.Spread(metric)
	c := &report.Chart{Title: r.Title + ": " + y.Label, X: report.Axis(r.Axis), Y: y}
	if i := strings.Index(c.Title, " ("); i > 0 {
		c.Title = c.Title[:i]
	}
	for _, m := range first(r.Names()) {
		s := report.Series{Name: m}
		for _, x := range r.Xs() {
			if e := r.Mean(x, m, metric); !math.IsNaN(e.Mean) && (!y.Log || drawn(e.Mean) > 0) {
				low, high := drawn(e.Low), drawn(e.High)
				if y.Log && low <= 0 { // there is no such place in decades
					low = drawn(e.Mean)
				}
				s.Dots = append(s.Dots, report.Dot{X: x, Y: drawn(e.Mean), Low: min(low, high), High: max(low, high)})
			}
		}
		c.Series = append(c.Series, s)
	}
	if s := r.model(metric, drawn); len(s.Dots) > 0 && len(c.Series) > 0 {
		c.Series = append(c.Series[:1:1], append([]report.Series{s}, c.Series[1:]...)...)
	}
	return c
}

// model is what the theory says of a metric, without dots if it says nothing.
func (r *result) model(metric string, drawn func(float64) float64) report.Series {
	s := report.Series{Name: theory}
	for _, x := range r.Xs() {
		f, ok := r.solved[x]
		if !ok {
			break
		}
		var v float64
		switch metric {
		case measure.PlacedShare:
			v = f.Placed
		case measure.HopsMean:
			v = f.Hops
		case measure.LeftoverUse:
			v = f.Use
		default:
			return s
		}
		s.Dots = append(s.Dots, report.Dot{X: x, Y: drawn(v), Low: math.NaN(), High: math.NaN()})
	}
	return s
}

// solve works out what the theory says of every point, the same model once.
func (r *result) solve(model func(*fluid.Model) fluid.Figures) {
	if r.Theory.Vary == "" {
		return
	}
	r.solved = map[float64]fluid.Figures{}
	for _, x := range r.Xs() {
		m := r.study.model(x)
		r.solved[x] = model(&m)
	}
}

// against is every mechanism at one point: what is not placed over a cost of placing it.
func (r *result) against(metric string, x float64) *report.Chart {
	a, cost := axis(metric)
	a.Log = r.Spread(metric)
	y, missed := axis(measure.PlacedShare)
	at := ""
	for _, p := range r.Points {
		if p.X == x {
			at = p.Label
		}
	}
	c := &report.Chart{Kind: report.Points, X: a, Y: y, Title: fmt.Sprintf("%s %s: not placed over %s", r.Title, at, a.Label)}
	for _, m := range r.Names() {
		if v := r.mean(x, m, metric); !math.IsNaN(v) && m != "omniscient" { // it needs no message and no time, and is no peer
			dot := report.Dot{X: cost(v), Y: missed(r.mean(x, m, measure.PlacedShare))}
			c.Series = append(c.Series, report.Series{Name: m, Dots: []report.Dot{dot}})
		}
	}
	return c
}
