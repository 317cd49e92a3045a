package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
)

// frontiers draws at every point of a study its pairs of metrics against each other.
func (p *page) frontiers(r *result) error {
	for _, pair := range r.frontier {
		for i, x := range r.xs() {
			file := fmt.Sprintf("%s-%s-%s.svg", r.name, pair[1], r.pointName(i, x))
			c := r.against(pair, i, x)
			if err := report.Create(filepath.Join(p.dir, file), c.SVG); err != nil {
				return err
			}
			p.say("![%s](evaluation/%s)\n", c.Title, file)
		}
	}
	return nil
}

// against is every mechanism at one point by two metrics.
func (r *result) against(pair [2]string, i int, x float64) *report.Chart {
	axis := func(metric string) report.Axis {
		about := measure.About(metric)
		return report.Axis{Label: about.Title, Unit: about.Unit, Better: about.Better}
	}
	c := &report.Chart{Kind: report.Points, X: axis(pair[0]), Y: axis(pair[1])}
	c.Title = fmt.Sprintf("%s %s: %s over %s", r.axis.Label, r.pointName(i, x), strings.ToLower(c.Y.Label), strings.ToLower(c.X.Label))
	for _, m := range r.names() {
		dot := report.Dot{X: measure.Mean(r.values(x, m, pair[0])).Mean, Y: measure.Mean(r.values(x, m, pair[1])).Mean}
		c.Series = append(c.Series, report.Series{Name: m, Dots: []report.Dot{dot}})
	}
	return c
}
