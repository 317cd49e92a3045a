package report

import (
	"math"

	"sluice.dev/sluice/internal/lab/measure"
)

// headline are the metrics that are shown first and plotted; the rest is in the long table.
func headline() []string {
	return []string{
		measure.BoundShare, measure.UsefulUtilization, measure.Utilization, measure.WaitMean, measure.WaitP95, measure.CompletionMean,
		measure.CompletionOverBound, measure.CompletionPerWork, measure.SlowdownMean, measure.MemoryExcessRate, measure.OverheadShare,
		measure.LostShare, measure.Unsellable,
	}
}

// shown are the headline metrics that some row has.
func shown(rows []*Row) (list []string) {
	for _, name := range headline() {
		for _, r := range rows {
			if !math.IsNaN(r.Metrics.Get(name)) {
				list = append(list, name)
				break
			}
		}
	}
	return list
}

// Bars charts a metric by mechanism, mean over seeds with its 95% interval, for the rows of one scenario and setting, which
// at names ("small load=0.9"); nil if there are none.
func (s *Study) Bars(at, metric string) *Chart {
	for _, g := range s.groups() {
		if g.name == at {
			return g.bars(metric)
		}
	}
	return nil
}

func (g *group) bars(metric string) *Chart {
	info := measure.About(metric)
	c := &Chart{Title: info.Title, Kind: Bars, Y: Axis{Label: info.Title, Unit: info.Unit}}
	for _, name := range mechanisms(g.rows) {
		e := measure.Mean(g.values(name, metric))
		c.Series = append(c.Series, Series{Name: name, Dots: []Dot{{Y: e.Mean, Low: e.Low, High: e.High}}})
	}
	return c
}

// Lines charts a metric over a swept parameter, one line for each mechanism: a chart for each setting of what else varies.
func (s *Study) Lines(param, metric string) []*Chart {
	var list []*Chart
	for _, w := range s.sweeps() {
		if w.param == param {
			list = append(list, w.lines(metric))
		}
	}
	return list
}

func (w *sweep) lines(metric string) *Chart {
	info := measure.About(metric)
	c := &Chart{Title: info.Title + ", " + w.name, X: Axis{Label: w.param}, Y: Axis{Label: info.Title, Unit: info.Unit}}
	var rows []*Row
	for _, g := range w.groups {
		rows = append(rows, g.rows...)
	}
	for _, name := range mechanisms(rows) {
		line := Series{Name: name}
		for _, g := range w.groups {
			e := measure.Mean(g.values(name, metric))
			line.Dots = append(line.Dots, Dot{X: g.at(w.param), Y: e.Mean, Low: e.Low, High: e.High})
		}
		c.Series = append(c.Series, line)
	}
	return c
}

// waits charts the distribution of waits: at each share the mean over seeds. Nil if no row has one.
func (g *group) waits() *Chart {
	c := &Chart{Title: "Waits: share of jobs that waited at most", Kind: Steps, X: Axis{Label: "wait", Unit: measure.Seconds, Log: true},
		Y: Axis{Label: "share of jobs", Unit: measure.Share}}
	for _, name := range mechanisms(g.rows) {
		var sum []float64
		var shares []measure.Point
		n := 0
		for _, r := range g.rows {
			if r.Mechanism != name || len(r.Waits) == 0 || shares != nil && len(r.Waits) != len(shares) {
				continue
			}
			if shares == nil {
				shares, sum = r.Waits, make([]float64, len(r.Waits))
			}
			for i, p := range r.Waits {
				sum[i] += p.Seconds
			}
			n++
		}
		if n == 0 {
			continue
		}
		line := Series{Name: name, Dots: []Dot{{Y: 0}}}
		for i, p := range shares {
			line.Dots = append(line.Dots, Dot{X: sum[i] / float64(n), Y: p.Share})
		}
		c.Series = append(c.Series, line)
	}
	if len(c.Series) == 0 {
		return nil
	}
	return c
}
