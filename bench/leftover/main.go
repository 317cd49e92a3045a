// Leftover runs the studies of docs/leftover.md and writes it, with its figures: `make leftover`. The same seeds give the same page on
// every machine.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/template"
	"time"

	pages "sluice.dev/sluice/bench/page"
	"sluice.dev/sluice/bench/play"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/report"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
)

func main() {
	play.Main("leftover", "1-5", "folder of published traces; without it leftover-logs is left out", write)
}

//go:embed leftover.md.tmpl
var text string

// page is docs/leftover.md under way.
type page struct {
	*pages.Page
	*play.Settings
	ctx      context.Context
	progress io.Writer
}

// write makes the page and its figures.
func write(ctx context.Context, s *play.Settings, progress io.Writer) error {
	out, err := pages.New(s.Out, "leftover")
	if err != nil {
		return err
	}
	return out.Write(text, template.FuncMap{
		"beside": beside, "workers": workers, "rivals": rivals, "bars": bars, "scans": scans, "ours": ours, "peers": peers,
		"every": every, "best": best, "finest": finest, "columns": columns, "table": table, "against": against,
		"mean":  func(o play.Outcome, name, metric string) string { return value(metric, o.Mean(name, metric).Mean) },
		"plain": func(o play.Outcome, name, metric string) float64 { return o.Mean(name, metric).Mean },
		"ends": func(o play.Outcome, name string) string {
			return fmt.Sprintf("%.1f%% (%.2f%%)", 100*o.Mean(name, measure.LeftoverUseful).Mean, 100*o.Mean(name, measure.LostWork).Mean)
		},
		"est": func(o play.Outcome, name, metric string) string { return estimate(metric, o.Mean(name, metric)) },
		"diff": func(o, from play.Outcome, name, metric string) string {
			return points(measure.Difference(o.Values(name, metric), from.Values(name, metric)))
		},
		"later": func(o, from play.Outcome, name string) string {
			d := measure.Difference(o.Values(name, measure.CompletionMean), from.Values(name, measure.CompletionMean))
			return fmt.Sprintf("%+.1f min (%+.1f to %+.1f)", d.Mean/60, d.Low/60, d.High/60)
		},
	}, &page{out, s, ctx, progress})
}

// At plays a scenario with replacements.
func (p *page) At(label, name string, mechanisms []string, sets ...any) (play.Outcome, error) {
	return p.Play(p.ctx, p.progress, label, name, mechanisms, pages.Names(sets...))
}

// columns of a table of mechanisms.
func columns() []string {
	return []string{measure.LeftoverUseful, measure.LostWork, measure.HostDelayMean, measure.OverheadShare, measure.Unfinished,
		measure.CompletionMean}
}

// table has a row for each mechanism of a point.
func table(o play.Outcome, names []string) (rows []string) {
	for _, name := range names {
		cells := []string{name}
		for _, c := range columns() {
			cells = append(cells, estimate(c, o.Mean(name, c)))
		}
		rows = append(rows, pages.Row(cells))
	}
	return rows
}

// peers of the scenarios with notice.
func peers() []string {
	return []string{"checkpoint", "time-min", "deadline", "workers:10s", "workers:1m", "workers:10m", "pilot", "sjf", "requeue", "nothing"}
}

// rivals are those of the peers that fill anything.
func rivals() []string { return peers()[:len(peers())-1] }

// bars are those that are drawn.
func bars() []string {
	return ours("checkpoint", "time-min", "workers:10s", "workers:1m", "workers:10m", "pilot", "sjf", "requeue")
}

// workers of every size of unit.
func workers() (names []string) {
	for _, name := range peers() {
		if strings.HasPrefix(name, "workers") {
			names = append(names, name)
		}
	}
	return names
}

// scans is a backlog of independent units alone, each job of which needs so long to start.
func scans(startup string) string {
	return "workload={jobs: [{at: 0s, name: scan, count: 90, every: 5s, items: {total: 20000, perItem: 1s, grid: 10}, startup: " +
		startup + ", memory: 8Gi}]}"
}

func ours(others ...any) []string { return append([]string{"sja", "jasda"}, pages.Names(others...)...) }

// intervals of checkpoint, in minutes.
func intervals() []int { return []int{1, 2, 5, 10, 20} }

// every is the mechanism that leaves a checkpoint after so many minutes; those of all intervals without one.
func every(minutes ...int) (names []string) {
	if len(minutes) == 0 {
		minutes = intervals()
	}
	for _, n := range minutes {
		names = append(names, fmt.Sprintf("checkpoint:%dm", n))
	}
	return names
}

// best is the interval with the most useful time, the first of equals; finest the size of unit.
func best(o play.Outcome) string   { return most(o, every()) }
func finest(o play.Outcome) string { return most(o, workers()) }

func most(o play.Outcome, names []string) string {
	return slices.MaxFunc(names, func(a, b string) int {
		if o.Mean(a, measure.LeftoverUseful).Mean > o.Mean(b, measure.LeftoverUseful).Mean {
			return 1
		}
		return -1
	})
}

// beside says of a point how the better of ours compares with the best of what is free.
func beside(where string, o play.Outcome) string {
	var free []string
	for name := range o {
		if !slices.Contains(ours(), name) {
			free = append(free, name)
		}
	}
	slices.Sort(free)
	own, peer := most(o, ours()), most(o, free)
	d := measure.Difference(o.Values(own, measure.LeftoverUseful), o.Values(peer, measure.LeftoverUseful))
	verdict, interval := "more than", ""
	if math.IsNaN(d.Low) { // of one seed
		d.Low, d.High = d.Mean, d.Mean
	} else {
		interval = fmt.Sprintf(", %+.2f to %+.2f", 100*d.Low, 100*d.High)
	}
	switch {
	case d.High < 0:
		verdict = "**less than**"
	case d.Low <= 0:
		verdict = "**no more than**"
	}
	return fmt.Sprintf("%s %s keeps %s of it, %s %s with %s (%+.2f points%s)", where, own,
		value(measure.LeftoverUseful, o.Mean(own, measure.LeftoverUseful).Mean), verdict, peer,
		value(measure.LeftoverUseful, o.Mean(peer, measure.LeftoverUseful).Mean), 100*d.Mean, interval)
}

// Bars draws the useful time of each mechanism.
func (p *page) Bars(o play.Outcome, names []string) (string, error) {
	c := &report.Chart{Title: "Leftover time that was useful, ends known or noticed", Kind: report.Bars,
		Y: report.Axis{Label: "share of the gaps", Unit: measure.Share}}
	for _, name := range names {
		c.Series = append(c.Series, report.Series{Name: name, Dots: []report.Dot{dot(0, o, name)}})
	}
	return p.Draw("leftover", c)
}

// Lines draws the useful time over the interval of the programs' checkpoints: under checkpoint, as played, and under ours.
func (p *page) Lines(played play.Outcome) (string, error) {
	own := [3]report.Series{{Name: "sja"}, {Name: "jasda"}, {Name: "checkpoint"}}
	for i, n := range intervals() {
		name, x := every()[i], float64(n)
		o, err := p.At(name, "leftover-unannounced", ours(), fmt.Sprintf("workload.synthetic.saves=%dm", n))
		if err != nil {
			return "", err
		}
		for k, d := range []report.Dot{dot(x, o, "sja"), dot(x, o, "jasda"), dot(x, played, name)} {
			own[k].Dots = append(own[k].Dots, d)
		}
	}
	return p.Draw("unannounced", &report.Chart{
		Title: "Leftover time that was useful, without notice", X: report.Axis{Label: "minutes of work between two checkpoints", Log: true},
		Y: report.Axis{Label: "share of the gaps", Unit: measure.Share}, Series: own[:],
	})
}

func dot(x float64, o play.Outcome, name string) report.Dot {
	e := o.Mean(name, measure.LeftoverUseful)
	return report.Dot{X: x, Y: e.Mean, Low: e.Low, High: e.High}
}

// against compares ours with peers, seed by seed.
func against(o play.Outcome, peers []string) (rows []string) {
	for _, name := range ours() {
		for _, peer := range peers {
			d := measure.Difference(o.Values(name, measure.LeftoverUseful), o.Values(peer, measure.LeftoverUseful))
			lost, theirs := o.Mean(name, measure.LostWork).Mean, o.Mean(peer, measure.LostWork).Mean
			text := "-"
			if theirs >= .0005 {
				text = fmt.Sprintf("%+.0f%%", 100*(lost/theirs-1))
			}
			rows = append(rows, pages.Row(name, peer, points(d), text))
		}
	}
	return rows
}

// points of a share, with their interval.
func points(e measure.Estimate) string {
	if math.IsNaN(e.Low) {
		return fmt.Sprintf("%+.2f", 100*e.Mean)
	}
	return fmt.Sprintf("%+.2f (%+.2f to %+.2f)", 100*e.Mean, 100*e.Low, 100*e.High)
}

// value of a metric for people.
func value(metric string, v float64) string {
	switch about := measure.About(metric); {
	case math.IsNaN(v):
		return "-"
	case metric == outcome.Finished || about.Unit == measure.Plain:
		return fmt.Sprintf("%.0f", v)
	case about.Unit == measure.Share:
		return fmt.Sprintf("%.1f%%", 100*v)
	case v < 1e-6:
		return "0"
	}
	return time.Duration(v * float64(time.Second)).Round(time.Second).String()
}

// estimate is a mean with half of its interval.
func estimate(metric string, e measure.Estimate) string {
	if math.IsNaN(e.Low) || value(metric, e.High-e.Mean) == value(metric, 0) {
		return value(metric, e.Mean)
	}
	return value(metric, e.Mean) + " ± " + value(metric, e.High-e.Mean)
}
