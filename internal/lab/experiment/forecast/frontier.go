package forecast

import (
	"cmp"
	"math"
	"slices"
)

// thetas that are tried, in parts per million: the frontier.
func thetas() []int64 {
	return []int64{100_000, 70_000, 50_000, 35_000, 25_000, 20_000, 15_000, 10_000, 7_000, 5_000, 3_000}
}

// settings that are tried. There is no time of day among them: the published part of the series is less than one day, so
// that no hour comes twice; a short window is what follows the hours.
func settings() []Setting {
	bases := []base{
		constant(), most(1), most(3), most(6), power(most(3), 5), mean(3), power(mean(3), 6), power(mean(3), 3), high(1), power(high(1), 3),
		high(3), power(high(3), 5),
	}
	var all []Setting
	for _, b := range bases {
		for _, window := range []int{0, 1, 3} {
			all = append(all, Setting{base: b, pools: together, window: window})
		}
		all = append(all, Setting{base: b, gamma: 5000}, Setting{base: b, pools: byLevel}, Setting{base: b, pools: alone})
	}
	for _, b := range []base{most(1), most(3), high(1)} {
		all = append(all, Setting{base: b, pools: tracked, gamma: 2000}, Setting{base: b, pools: tracked, gamma: 20_000})
	}
	regressed := base{name: "quantile regression"}
	all = append(all, Setting{base: regressed}, Setting{base: regressed, window: 3}, Setting{base: regressed, gamma: 5000})
	for _, hold := range []int{11, 32} {
		all = append(all, Setting{base: power(mean(3), 3), hold: hold}, Setting{base: power(high(1), 3), hold: hold},
			Setting{base: most(1), hold: hold})
	}
	return all
}

// GenAI is what the series says.
type GenAI struct {
	Pods, Chosen, Reported int
	Hours                  float64
	// Published is the rules that are to be beaten, each under its own conditions, with what is published of them (percent of
	// predictions, percent) for the whole day's 144 pods.
	Published []Published
	// Setting is the one that was chosen, and Ours its frontier. Naive is that of the published kind of rules. All are judged
	// on the same predictions, those with a history of 3 h, and nothing is above the card's capacity.
	Setting     string
	Naive, Ours []Point
	// Hindsight is what no forecast can do: bounds of a kind that was fitted to what came.
	Hindsight []Point
	// Tried is every setting at theta .01, the one chosen first.
	Tried []Point
	// Rolling is the test in which nothing is chosen by what it is judged on; the rest of the settings is not.
	Rolling *Rolling
}

// Published is a rule with its published figures.
type Published struct {
	Rule        string
	Ours        Score
	Under, Over float64
}

// Met says whether the default has the target in the rolling test.
func (g *GenAI) Met() bool {
	d := &g.Rolling.Default
	return d.Predictions > 0 && d.UnderRate() <= TargetUnder && d.Over() <= TargetOver
}

// Frontier of a series.
func Frontier(s *Series) *GenAI {
	chosen, reported := s.Halves()
	g := &GenAI{Pods: len(s.Pods), Chosen: len(chosen.Pods), Reported: len(reported.Pods), Hours: Step.Hours() * float64(s.Steps)}
	for _, r := range []struct {
		hours, margin int
		under, over   float64
	}{{1, 120, 11.8, 22.0}, {3, 100, 18.1, 13.8}, {3, 120, 4.7, 36.6}, {6, 120, 1.5, 50.1}, {6, 130, .8, 62.6}} {
		g.Published = append(g.Published, Published{ruleName(r.hours, r.margin), s.Naive(r.hours, r.margin, r.hours, math.MaxInt64),
			r.under, r.over})
	}
	for _, hours := range []int{1, 3, 6} {
		for margin := 100; margin <= 160; margin += 10 {
			g.Naive = append(g.Naive, Point{
				Rule: ruleName(hours, margin), Chosen: chosen.Naive(hours, margin, history, Capacity),
				Reported: reported.Naive(hours, margin, history, Capacity),
			})
		}
	}
	g.choose(chosen, reported)
	g.Hindsight = reported.hindsight()
	g.Rolling = s.Roll()
	return g
}

// choose takes the setting that on the chosen half allocates least for the shares of misses that are wanted, and walks with
// it through the other half.
func (g *GenAI) choose(chosen, reported *Series) {
	list := thetas()
	type tried struct {
		set    Setting
		scores []Score
		cost   float64
	}
	var all []tried
	var base [][]float64
	last := ""
	for _, set := range settings() {
		if set.base.name != last {
			base, last = chosen.expect(set.base), set.base.name
		}
		t := tried{set: set, scores: chosen.through(set, base, list)}
		for _, under := range []float64{1, 2, 4, 8} {
			t.cost += overAt(t.scores, under)
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b tried) int { return cmp.Compare(a.cost, b.cost) })
	at := slices.Index(list, 10_000)
	for _, t := range all {
		g.Tried = append(g.Tried, Point{Rule: t.set.Name(), Theta: 1, Chosen: t.scores[at]})
	}
	best := all[0]
	g.Setting = best.set.Name()
	for j, score := range reported.through(best.set, reported.expect(best.set.base), list) {
		g.Ours = append(g.Ours, Point{Rule: g.Setting, Theta: float64(list[j]) / 1e4, Chosen: best.scores[j], Reported: score})
	}
}

// overAt is the over-allocation of a frontier at exactly under percent missed, on the line between the two points around it; that of the
// whole card where the frontier does not come so low.
func overAt(frontier []Score, under float64) float64 {
	sorted := slices.Clone(frontier)
	slices.SortFunc(sorted, func(a, b Score) int { return cmp.Compare(a.UnderRate(), b.UnderRate()) })
	for i, s := range sorted {
		switch {
		case s.UnderRate() < under:
			continue
		case i == 0:
			return 100
		}
		low := sorted[i-1]
		share := (under - low.UnderRate()) / (s.UnderRate() - low.UnderRate())
		return low.Over() + share*(s.Over()-low.Over())
	}
	return sorted[len(sorted)-1].Over()
}
