package main

import (
	"fmt"
	"slices"
	"strings"

	pages "sluice.dev/sluice/bench/page"
	"sluice.dev/sluice/bench/sweep"
	"sluice.dev/sluice/internal/lab/measure"
	planners "sluice.dev/sluice/internal/lab/planner/all"
)

// Against are the rows of both of ours at each point of a study, beside the best baseline but some.
func (r *result) Against(metric string, except []string) (rows []string) {
	for i, x := range r.Xs() {
		for _, m := range []string{sja, jasda} {
			own := r.Values(x, m, metric)
			best, values := r.best(x, metric, except)
			text, how := compare(metric, own, values)
			rows = append(rows, pages.Row(r.pointName(i, x), m, mean(metric, own), best, mean(metric, values), text, verdict(m, how)))
		}
	}
	return rows
}

// Ours are the rows of jasda against sja, wherever both ran.
func (p *page) Ours() (rows []string) {
	for i := range p.Done {
		r := &p.Done[i]
		for j, x := range r.Xs() {
			if len(r.Values(x, jasda, measure.WaitMean)) == 0 || len(r.Values(x, sja, measure.WaitMean)) == 0 {
				continue
			}
			cells := []string{r.Name, r.pointName(j, x)}
			for _, metric := range decisive() {
				cells = append(cells, said(metric, r.Values(x, jasda, metric), r.Values(x, sja, metric)))
			}
			rows = append(rows, pages.Row(cells))
		}
	}
	return rows
}

// said is a comparison with what it shows, if it shows anything.
func said(metric string, own, other []float64) string {
	text, how := compare(metric, own, other)
	return strings.TrimSuffix(text+", "+how, ", "+alike)
}

// stopping are the baselines that stop running work.
func stopping() (names []string) {
	for _, k := range planners.Kinds() {
		if k.Preempts {
			names = append(names, k.Name)
		}
	}
	return names
}

// Lost are the rows of every point of every study at which the best baseline is better than one of ours, in the metrics that matter most.
func (p *page) Lost(m string) (rows []string) {
	for i := range p.Done {
		r := &p.Done[i]
		for j, x := range r.Xs() {
			for _, metric := range decisive() {
				own := r.Values(x, m, metric)
				best, values := r.best(x, metric, nil)
				if len(own) == 0 || len(values) == 0 {
					continue
				}
				if text, how := compare(metric, own, values); how == worse {
					rows = append(rows, pages.Row(r.Name, r.pointName(j, x), measure.About(metric).Title, mean(metric, own), best,
						mean(metric, values), text))
				}
			}
		}
	}
	return rows
}

// WorseThanPlanners are rows for each study and metric in which the best planner is better than jasda somewhere, but for the metrics that
// matter most.
func (p *page) WorseThanPlanners() []string {
	return p.worse(func(r *result, x float64, metric string) []float64 {
		if slices.Contains(decisive(), metric) {
			return nil
		}
		_, values := r.best(x, metric, nil)
		return values
	})
}

// WorseThanSJA are rows for each study and metric in which sja is better than jasda somewhere.
func (p *page) WorseThanSJA() []string {
	return p.worse(func(r *result, x float64, metric string) []float64 { return r.Values(x, sja, metric) })
}

func (p *page) worse(others func(r *result, x float64, metric string) []float64) (rows []string) {
	for i := range p.Done {
		r := &p.Done[i]
		for _, metric := range judged() {
			var points []string
			for j, x := range r.Xs() {
				own, values := r.Values(x, jasda, metric), others(r, x, metric)
				if len(own) == 0 || len(values) == 0 {
					continue
				}
				if text, how := compare(metric, own, values); how == worse {
					points = append(points, r.pointName(j, x)+": "+text)
				}
			}
			if len(points) > 0 {
				rows = append(rows, pages.Row(r.Name, measure.About(metric).Title, strings.Join(points, "; ")))
			}
		}
	}
	return rows
}

// usual is the point of a study that is the default, -1 if it has none.
func (r *result) usual() int {
	return slices.IndexFunc(r.Points, func(q sweep.Point) bool { return r.Usual != "" && q.Label == r.Usual })
}

// Default is the name of the point that is the default, empty if there is none.
func (r *result) Default() string {
	if at := r.usual(); at >= 0 {
		return r.pointName(at, r.Points[at].X)
	}
	return ""
}

// AgainstDefault are the rows of the other points, compared with the default seed by seed.
func (r *result) AgainstDefault() (rows []string) {
	base := r.Points[r.usual()].X
	for i, x := range r.Xs() {
		if x == base {
			continue
		}
		cells := []string{r.pointName(i, x)}
		for _, metric := range r.Paired {
			cells = append(cells, said(metric, r.Values(x, jasda, metric), r.Values(base, jasda, metric)))
		}
		rows = append(rows, pages.Row(cells))
	}
	return rows
}

// costs are the metrics of what negotiating costs.
func costs() []string {
	return []string{measure.Awards, measure.Rounds, measure.VariantsPerAward, measure.MessagesPerAward, measure.Subjobs,
		measure.MessagesPerTask}
}

// Costs are the rows of what negotiating costs jasda at every point, beside what sja's signals cost.
func (r *result) Costs() (rows []string) {
	for i, x := range r.Xs() {
		jobs, waits, spans := r.Values(x, jasda, measure.Jobs), r.Values(x, jasda, measure.WaitMean), r.Values(x, jasda, measure.Makespan)
		for j := range jobs {
			jobs[j] *= waits[j] / spans[j]
		}
		cells := []string{r.pointName(i, x), fmt.Sprintf("%.0f", measure.Mean(jobs).Mean)}
		for _, metric := range costs() {
			cells = append(cells, mean(metric, r.Values(x, jasda, metric)))
		}
		rows = append(rows, pages.Row(cells, mean(measure.MessagesPerTask, r.Values(x, sja, measure.MessagesPerTask))))
	}
	return rows
}
