package report

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"sluice.dev/sluice/internal/lab/measure"
)

// Study is a set of simulated runs that are shown together.
type Study struct {
	Title string
	// About says what is shown, in a few sentences.
	About string
	// Notes say what the figures are based on: what was composed of what, what is missing. A paragraph each; the page folds them.
	Notes []string
	Rows  []Row
}

// Row is one run. Rows that differ in seed alone are averaged; those of one seed are compared in pairs.
type Row struct {
	Scenario, Mechanism string
	Seed                uint64
	// Params are the settings that were swept, in an order that is the same for all rows; none otherwise.
	Params  []Param
	Metrics measure.Metrics
	// Waits is the distribution of waits, and Spans the history, of runs that are to be drawn; nil of others.
	Waits []measure.Point
	Spans *measure.Recording
}

// Param is a swept setting, such as load 0.9.
type Param struct {
	Name  string
	Value float64
}

// at names the scenario with its settings: "small load=0.9".
func (r *Row) at() string { return placeName(r.Scenario, r.Params) }

func placeName(scenario string, params []Param) string {
	var b strings.Builder
	b.WriteString(scenario)
	for _, p := range params {
		fmt.Fprintf(&b, " %s=%s", p.Name, strconv.FormatFloat(p.Value, 'g', -1, 64))
	}
	return b.String()
}

// Runs are the rows in the form in which they are stored; the scenario carries its settings, so that it stays one of its
// own.
func (s *Study) Runs() []measure.Run {
	runs := make([]measure.Run, 0, len(s.Rows))
	for i := range s.Rows {
		r := &s.Rows[i]
		runs = append(runs, measure.Run{Scenario: r.at(), Mechanism: r.Mechanism, Seed: r.Seed, Metrics: r.Metrics})
	}
	return runs
}

// JSON writes the runs; see measure.WriteJSON.
func (s *Study) JSON(w io.Writer) error { return measure.WriteJSON(w, s.Runs()) }

// CSV writes the runs; see measure.WriteCSV.
func (s *Study) CSV(w io.Writer) error { return measure.WriteCSV(w, s.Runs()) }

// group is the rows of one scenario with one setting of its parameters.
type group struct {
	name     string
	scenario string
	params   []Param
	rows     []*Row
}

// groups in the order in which they first come.
func (s *Study) groups() []*group {
	var list []*group
	byName := map[string]*group{}
	for i := range s.Rows {
		r := &s.Rows[i]
		g := byName[r.at()]
		if g == nil {
			g = &group{name: r.at(), scenario: r.Scenario, params: r.Params}
			byName[g.name] = g
			list = append(list, g)
		}
		g.rows = append(g.rows, r)
	}
	return list
}

// mechanisms in the order in which they first come.
func mechanisms(rows []*Row) []string {
	var names []string
	for _, r := range rows {
		if !slices.Contains(names, r.Mechanism) {
			names = append(names, r.Mechanism)
		}
	}
	return names
}

// seeds that occur, in rising order.
func (g *group) seeds() []uint64 {
	var seeds []uint64
	for _, r := range g.rows {
		seeds = append(seeds, r.Seed)
	}
	slices.Sort(seeds)
	return slices.Compact(seeds)
}

// values of a metric under a mechanism, one for each of the group's seeds; NaN where there was no such run.
func (g *group) values(mechanism, metric string) []float64 {
	seeds := g.seeds()
	out := make([]float64, len(seeds))
	for i := range out {
		out[i] = math.NaN()
	}
	for _, r := range g.rows {
		if r.Mechanism == mechanism {
			i, _ := slices.BinarySearch(seeds, r.Seed)
			out[i] = r.Metrics.Get(metric)
		}
	}
	return out
}

// metrics that occur, in the order in which they first come.
func metrics(rows []*Row) []string {
	var names []string
	seen := map[string]bool{}
	for _, r := range rows {
		for _, m := range r.Metrics {
			if !seen[m.Name] {
				seen[m.Name] = true
				names = append(names, m.Name)
			}
		}
	}
	return names
}

// leading reports for each mechanism whether it is the best by a metric or does not differ from the best: the paired 95% interval of their
// difference holds 0. With one seed only the best itself leads. None does where all would, nor by a metric without better and worse.
func (g *group) leading(names []string, metric string) []bool {
	lead := make([]bool, len(names))
	sign := 1.0
	switch measure.About(metric).Better {
	case measure.Neither:
		return lead
	case measure.Lower:
		sign = -1
	default: // higher is better
	}
	best := -1
	var top float64
	for i, name := range names {
		if m := sign * measure.Mean(g.values(name, metric)).Mean; m > top && best >= 0 || best < 0 && !math.IsNaN(m) {
			best, top = i, m
		}
	}
	if best < 0 {
		return lead
	}
	for i, name := range names {
		d := measure.Difference(g.values(names[best], metric), g.values(name, metric))
		lead[i] = i == best || d.Mean == 0 || d.N > 1 && d.Low <= 0 && d.High >= 0
	}
	if !slices.Contains(lead, false) {
		clear(lead)
	}
	return lead
}

// sweep is a parameter with the groups along it: all else is the same.
type sweep struct {
	param  string
	name   string // of equal results
	groups []*group
}

// sweeps finds every line of at least two groups that differ in one parameter alone.
func (s *Study) sweeps() []*sweep {
	var list []*sweep
	byName := map[string]*sweep{}
	for _, g := range s.groups() {
		for i, p := range g.params {
			rest := placeName(g.scenario, slices.Delete(slices.Clone(g.params), i, i+1))
			key := p.Name + "\x00" + rest
			w := byName[key]
			if w == nil {
				w = &sweep{param: p.Name, name: rest}
				byName[key] = w
				list = append(list, w)
			}
			w.groups = append(w.groups, g)
		}
	}
	list = slices.DeleteFunc(list, func(w *sweep) bool { return len(w.groups) < 2 })
	for _, w := range list {
		slices.SortStableFunc(w.groups, func(a, b *group) int { return cmp.Compare(a.at(w.param), b.at(w.param)) })
	}
	return list
}

// at is where a group lies on a parameter.
func (g *group) at(param string) float64 {
	for _, p := range g.params {
		if p.Name == param {
			return p.Value
		}
	}
	return math.NaN()
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
