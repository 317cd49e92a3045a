package fgd

import (
	"math"
	"slices"
)

const (
	// Knee is the arrived percent where fragmentation is compared: below it little is fragmented, above it little is idle.
	Knee = 90
	// Band is how far a mean may lie from the published one, in percentage points.
	Band = 0.5
	// NarrowBand is that of the two planners whose runs differ little from seed to seed: bestfit and fgd.
	NarrowBand = 0.3
)

// bandOf a policy.
func bandOf(policy string) float64 {
	if policy == "bestfit" || policy == "fgd" {
		return NarrowBand
	}
	return Band
}

// Line is one workload under one policy: our mean beside the published one, in percent.
type Line struct {
	Group
	// Published is what Allocated should be, and Difference how much more it is, in percentage points.
	Published, Difference float64
	// Band of Difference, and whether it is kept.
	Band float64
	OK   bool
	// PublishedFragmented is what Fragmented should be. It is for the reader and decides nothing.
	PublishedFragmented float64
}

// Order is one pair of policies whose order the published table has beyond its own noise: by more than two standard
// errors of the difference of the two means.
type Order struct {
	Workload, Better, Worse string
	// Lead of the better one in percentage points, ours and published.
	Lead, Published float64
	OK              bool
}

// Report compares runs with the published tables.
type Report struct {
	Lines  []Line
	Orders []Order
}

// OK says whether everything that is tested holds.
func (r *Report) OK() bool {
	for _, l := range r.Lines {
		if !l.OK {
			return false
		}
	}
	for _, o := range r.Orders {
		if !o.OK {
			return false
		}
	}
	return true
}

// pairs whose order is tested, the better one first. Packing against clustering is a tie in the published tables.
func pairs() [][2]string {
	return [][2]string{
		{"fgd", "bestfit"}, {"bestfit", "packing"}, {"bestfit", "clustering"}, {"packing", "dotproduct"},
		{"clustering", "dotproduct"}, {"dotproduct", "random"},
	}
}

// Group is the runs of one workload under one policy: means over the seeds in percent.
type Group struct {
	Workload, Policy string
	Seeds            int
	// Allocated at 130% arrived, with its standard deviation; Fragmented at 90%.
	Allocated, Deviation, Fragmented float64
}

// Groups of results, in the order in which they first come.
func Groups(results []Result) []Group {
	type runs struct{ allocated, fragmented sample }
	all := map[cell]*runs{}
	var order []cell
	for _, r := range results {
		c := cell{r.Workload, r.Policy}
		if all[c] == nil {
			order = append(order, c)
			all[c] = &runs{}
		}
		all[c].allocated = append(all[c].allocated, r.Curve.Last())
		all[c].fragmented = append(all[c].fragmented, r.Curve.Fragmented[Knee])
	}
	var groups []Group
	for _, c := range order {
		x := all[c]
		groups = append(groups, Group{c.workload, c.policy, len(x.allocated), x.allocated.mean(), x.allocated.deviation(),
			x.fragmented.mean()})
	}
	return groups
}

// Compare makes the report. What the published tables have not is left out.
func Compare(results []Result, tables Published) *Report {
	report := &Report{}
	means := map[cell]float64{}
	var workloads []string
	for _, g := range Groups(results) {
		theirs := tables[cell{g.Workload, g.Policy}]
		if theirs == nil {
			continue
		}
		if !slices.Contains(workloads, g.Workload) {
			workloads = append(workloads, g.Workload)
		}
		means[cell{g.Workload, g.Policy}] = g.Allocated
		l := Line{
			Group: g, Published: theirs.allocated.mean(), Difference: g.Allocated - theirs.allocated.mean(),
			Band: bandOf(g.Policy), PublishedFragmented: theirs.fragmented.mean(),
		}
		l.OK = math.Abs(l.Difference) <= l.Band
		report.Lines = append(report.Lines, l)
	}
	for _, w := range workloads {
		for _, p := range pairs() {
			report.order(w, p[0], p[1], means, tables)
		}
	}
	return report
}

// order tests one pair, if both were run and the published table has it.
func (r *Report) order(workload, better, worse string, means map[cell]float64, tables Published) {
	x, y := cell{workload, better}, cell{workload, worse}
	above, ran := means[x]
	below, ran2 := means[y]
	if !ran || !ran2 {
		return
	}
	a, b := tables[x].allocated, tables[y].allocated
	lead := a.mean() - b.mean()
	if lead > 2*math.Hypot(a.standardError(), b.standardError()) {
		r.Orders = append(r.Orders, Order{workload, better, worse, above - below, lead, above > below})
	}
}

// sample is one figure over seeds.
type sample []float64

func (s sample) mean() float64 {
	sum := 0.0
	for _, x := range s {
		sum += x
	}
	return sum / float64(len(s))
}

// deviation is the standard deviation; 0 of a single value.
func (s sample) deviation() float64 {
	if len(s) < 2 {
		return 0
	}
	mean, sum := s.mean(), 0.0
	for _, x := range s {
		sum += (x - mean) * (x - mean)
	}
	return math.Sqrt(sum / float64(len(s)-1))
}

// standardError of the mean.
func (s sample) standardError() float64 { return s.deviation() / math.Sqrt(float64(len(s))) }
