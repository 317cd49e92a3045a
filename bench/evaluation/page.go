package main

import (
	_ "embed"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	pages "sluice.dev/sluice/bench/page"
	"sluice.dev/sluice/bench/sweep"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
)

//go:embed evaluation.md.tmpl
var text string

// page is docs/evaluation.md under way.
type page struct {
	*pages.Page
	// Base is the scenario, Traced says that it is made of published traces.
	Base   string
	Traced bool
	Seeds  []uint64
	Done   []result
}

// write makes the page and its figures.
func write(s *sweep.Settings, done []result) error {
	out, err := pages.New(s.Out, "evaluation")
	if err != nil {
		return err
	}
	name, _ := base(s, false)
	return out.Write(text, template.FuncMap{
		"few": func() int { return fewSeeds }, "load": func() string { return usualLoad },
		"ours":     func() []string { return []string{sja, jasda} },
		"decisive": decisive, "stopping": stopping, "join": strings.Join, "titles": titles, "better": func(metric string) string {
			if measure.About(metric).Better == measure.Higher {
				return "more is better"
			}
			return "less is better"
		}, "by": by, "comparisons": func(metrics []string, own, other string) (list []string) {
			for _, m := range metrics {
				list = append(list, measure.About(m).Title+": "+by(m, own, other))
			}
			return list
		}, "percent": func(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) },
		"second": func(d time.Duration) time.Duration { return d.Round(time.Second) },
		"costs":  costs, "isMain": func(r result) bool { return r.Name == mainStudy },
	}, &page{out, name, s.Data != "", s.Seeds, done})
}

// By is a study by its name, nil if it was not run.
func (p *page) By(name string) *result {
	i := slices.IndexFunc(p.Done, func(r result) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return &p.Done[i]
}

// Main is the study that answers who is better, nil if it was not run.
func (p *page) Main() *result { return p.By(mainStudy) }

func titles(metrics []string) (list []string) {
	for _, m := range metrics {
		list = append(list, measure.About(m).Title)
	}
	return list
}

// Pictures draws the figures of a study: metrics over its setting, and at every point its pairs of metrics against each other. It returns
// what shows each.
func (p *page) Pictures(r *result) ([]string, error) {
	var all []pages.Picture
	draw := func(name string, c *report.Chart) { all = append(all, pages.Picture{Name: name, Chart: c}) }
	for _, metric := range r.Charts {
		draw(r.Name+"-"+metric, r.chart(metric))
	}
	for _, pair := range r.Frontier {
		for i, x := range r.Xs() {
			draw(fmt.Sprintf("%s-%s-%s", r.Name, pair[1], r.pointName(i, x)), r.against(pair, i, x))
		}
	}
	return p.DrawAll(all)
}

// Table are the rows of each point; those that did exactly the same share one.
func (r *result) Table() (all []string) {
	for i, x := range r.Xs() {
		var rows []string
		who := map[string]string{}
		for _, m := range r.Names() {
			var cells []string
			for _, metric := range r.Columns() {
				cells = append(cells, estimate(metric, r.Mean(x, m, metric)))
			}
			row := strings.Join(cells, " | ")
			if who[row] == "" {
				rows = append(rows, row)
				who[row] = m
			} else {
				who[row] += ", " + m
			}
		}
		for _, row := range rows {
			all = append(all, pages.Row(r.pointName(i, x), who[row], row))
		}
	}
	return all
}

// Columns are the study's, and where jobs did not finish those that say so: a mechanism that turns jobs away has shorter waits.
func (r *result) Columns() []string {
	out := slices.Clone(r.study.Table)
	for _, metric := range []string{measure.Rejected, measure.Failed, measure.Unfinished} {
		if slices.ContainsFunc(r.Rows, func(w report.Row) bool { return w.Metrics.Get(metric) > 0 }) {
			out = append(out, metric)
		}
	}
	return out
}

// pointName is how the page calls a point: by its label, where it is one of the study's.
func (r *result) pointName(i int, x float64) string {
	if i < len(r.Points) {
		return r.Points[i].Label
	}
	return short(x)
}

// peers are the baselines that figures show beside ours: what clusters run, and the best known orders that know lengths, without
// and with stopping work. The table has the others.
func peers() []string { return []string{"easy", "sjf-easy", "srpt"} }

// chart is a metric over the setting, a line for each of ours and of their peers.
func (r *result) chart(metric string) *report.Chart {
	about := measure.About(metric)
	c := &report.Chart{Title: r.Title + ": " + strings.ToLower(about.Title), X: report.Axis(r.Axis),
		Y: report.Axis{Label: about.Title, Unit: about.Unit,
			Log: about.Unit != measure.Share && r.Spread(metric)}}
	for _, m := range r.Names() {
		if !mine(m) && !slices.Contains(peers(), m) {
			continue
		}
		s := report.Series{Name: m}
		for _, x := range r.Xs() {
			e := r.Mean(x, m, metric)
			if !math.IsNaN(e.Mean) {
				s.Dots = append(s.Dots, report.Dot{X: x, Y: e.Mean, Low: e.Low, High: e.High})
			}
		}
		c.Series = append(c.Series, s)
	}
	return c
}

// against is every mechanism at one point by two metrics.
func (r *result) against(pair [2]string, i int, x float64) *report.Chart {
	axis := func(metric string) report.Axis {
		about := measure.About(metric)
		return report.Axis{Label: about.Title, Unit: about.Unit, Better: about.Better}
	}
	c := &report.Chart{Kind: report.Points, X: axis(pair[0]), Y: axis(pair[1])}
	c.Title = fmt.Sprintf("%s %s: %s over %s", r.Axis.Label, r.pointName(i, x), strings.ToLower(c.Y.Label), strings.ToLower(c.X.Label))
	for _, m := range r.Names() {
		dot := report.Dot{X: r.Mean(x, m, pair[0]).Mean, Y: r.Mean(x, m, pair[1]).Mean}
		c.Series = append(c.Series, report.Series{Name: m, Dots: []report.Dot{dot}})
	}
	return c
}

// short is a number with as many digits as a reader wants.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// value of a metric for people.
func value(metric string, v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case measure.About(metric).Unit == measure.Seconds && math.Abs(v) >= 60:
		return time.Duration(v * float64(time.Second)).Round(time.Second).String()
	case measure.About(metric).Unit == measure.Seconds:
		return fmt.Sprintf("%.1fs", v)
	case measure.About(metric).Unit == measure.Share:
		return fmt.Sprintf("%.2f%%", 100*v)
	case math.Abs(v) >= 100:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

func signed(metric string, v float64) string {
	if v > 0 {
		return "+" + value(metric, v)
	}
	return value(metric, v)
}

// estimate is a mean with half of its interval.
func estimate(metric string, e measure.Estimate) string {
	if math.IsNaN(e.Low) || e.High == e.Low {
		return value(metric, e.Mean)
	}
	return value(metric, e.Mean) + " ± " + value(metric, e.High-e.Mean)
}
