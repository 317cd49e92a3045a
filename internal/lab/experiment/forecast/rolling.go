package forecast

import (
	"runtime"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// A forecast that is chosen on the hours, or on the pods, that it is judged on looks better than it is. The rolling test
// chooses as somebody would have had to: at the begin of each hour, for a quarter of the pods, by what the candidates did in
// the hours whose outcomes were known by then on the other three quarters. What it chose is judged on the hour that follows,
// on the quarter that took no part: neither in the choice, nor in what the candidates had learned.

const (
	// folds of the pods.
	folds = 4
	// known is how many hours lie between the hour that is judged and the last whose outcomes are known: at the begin of one the
	// predictions of the one before are still open.
	known = 2
)

// candidate is one rule with one setting: how it did by hour and fold.
type candidate struct {
	name    string
	learned bool
	// asked share of misses, in percent; 0 of a plain rule.
	asked float64
	// judged by hour and fold: with nothing learned of the fold. shown by the fold that is chosen for, hour and fold: with
	// nothing learned of either; behind them what is shown where the choice is for pods that are in none.
	judged [][folds]Score
	shown  [folds + 1][][folds]Score
}

// Rolled is one rule, or one way of choosing one, over the hours that are judged.
type Rolled struct {
	Rule string
	// Asked is the share of misses in percent that a choice, or a learned rule, was for; 0 for a plain rule.
	Asked float64
	Score
	// Worst is the largest share of misses of any hour, in percent.
	Worst float64
	// Picked is what a choice chose last, for each fold.
	Picked []string
}

// Rolling is the outcome of the rolling test.
type Rolling struct {
	// Hours that are judged, the first of them counted from 0 in the series, and all candidates.
	Hours, First, Candidates int
	// Default is the rule that the program has: a plain one. Former is the learned rule that was chosen before, on half of the
	// pods over all hours; asked for the target.
	Default, Former Rolled
	// Next is the plain rule that is chosen at the end, by all hours and pods, for the target: what the default should be.
	Next string
	// Fixed rules: the plain ones around the default, and every learned one that was asked for the target. Of these it is known
	// only afterwards which is good.
	Fixed []Rolled
	// Ways to choose, each asked for the target and for half of it.
	Ways []Rolled
}

// rollingThetas are asked of learned rules, in parts per million.
func rollingThetas() []int64 { return []int64{20_000, 15_000, 10_000, 7_000, 5_000, 3_000} }

// former is the setting that an earlier choice, on half of the pods over all hours, came to.
func former() Setting { return Setting{base: power(high(1), 3), window: 3} }

// rollingSettings are the learned rules among which is chosen.
func rollingSettings() []Setting {
	all := []Setting{former()}
	for _, b := range []base{constant(), most(3), power(most(3), 5), high(1), between(most(1), most(3))} {
		all = append(all, Setting{base: b}, Setting{base: b, window: 3}, Setting{base: b, gamma: 5000}, Setting{base: b, pools: byQuarter})
	}
	return append(all, Setting{base: most(3), pools: tracked, gamma: 2000})
}

// Roll makes the test.
func (s *Series) Roll() *Rolling {
	r := &roller{Series: s, fold: make([]int, len(s.Pods)), hours: s.Steps / hour}
	for k := range s.Pods {
		r.fold[k] = int(prng.Name("fold/"+s.Pods[k].Name) % folds)
	}
	all := append(r.plain(), r.learned()...)
	out := &Rolling{Candidates: len(all), First: history + known}
	out.Hours = max(0, r.hours-out.First)
	standard := forecast.DefaultRecent()
	shown := []string{ruleName(3, 120), ruleName(6, 120), ruleName(3, 140), ruleName(3, 150)}
	for i := range all {
		c := &all[i]
		line := func() Rolled { return r.line(c.name, c.asked, func(int, int) *candidate { return c }) }
		switch {
		case c.learned && c.asked == TargetUnder:
			out.Fixed = append(out.Fixed, line())
			if set := former(); c.name == set.Name() {
				out.Former = out.Fixed[len(out.Fixed)-1]
			}
		case !c.learned && slices.Contains(shown, c.name):
			out.Fixed = append(out.Fixed, line())
		}
		if !c.learned && c.name == ruleName(int(standard.Window.Hours()), int(standard.Margin*100/forecast.One)) {
			out.Default = line()
		}
	}
	plain := func(c *candidate) bool { return !c.learned }
	out.Next = choose(all, plain, r.hours+known, folds, TargetUnder).name
	for _, way := range []struct {
		name string
		of   func(*candidate) bool
	}{
		{"chosen of the plain rules", plain},
		{"chosen of the learned rules", func(c *candidate) bool { return c.learned }},
		{"chosen of all", func(*candidate) bool { return true }},
	} {
		for _, asked := range []float64{TargetUnder, TargetUnder / 2} {
			var picked [folds]string
			line := r.line(way.name, asked, func(hour, fold int) *candidate {
				c := choose(all, way.of, hour, fold, asked)
				picked[fold] = c.name
				return c
			})
			line.Picked = picked[:]
			out.Ways = append(out.Ways, line)
		}
	}
	return out
}

type roller struct {
	*Series
	fold  []int
	hours int
}

// line judges what pick says, hour by hour and fold by fold.
func (r *roller) line(name string, asked float64, pick func(hour, fold int) *candidate) Rolled {
	out := Rolled{Rule: name, Asked: asked}
	for h := history + known; h < r.hours; h++ {
		var of Score
		for f := range folds {
			of.join(&pick(h, f).judged[h][f])
		}
		out.Worst = max(out.Worst, of.UnderRate())
		out.join(&of)
	}
	return out
}

// choose takes the candidate that allocates least among those that missed no more than asked, or where all missed more the one
// that missed least; by what is known at the begin of an hour of the other folds.
func choose(all []candidate, of func(*candidate) bool, hour, fold int, asked float64) *candidate {
	var best *candidate
	var seen Score
	for i := range all {
		c := &all[i]
		if !of(c) {
			continue
		}
		var x Score
		for h := range hour - known + 1 {
			for g := range folds {
				if g != fold {
					x.join(&c.shown[fold][h][g])
				}
			}
		}
		good, better := x.UnderRate() <= asked, seen.UnderRate() <= asked
		if best == nil || good && !better || good == better &&
			(good && x.Over() < seen.Over() || !good && x.UnderRate() < seen.UnderRate()) {
			best, seen = c, x
		}
	}
	return best
}

// blank is a candidate without predictions.
func (r *roller) blank(name string) candidate {
	c := candidate{name: name, judged: make([][folds]Score, r.hours+1)}
	c.shown[folds] = c.judged
	for f := range folds {
		c.shown[f] = make([][folds]Score, r.hours+1)
	}
	return c
}

// plain are the most of the past hours times a margin.
func (r *roller) plain() (all []candidate) {
	for _, hours := range []int{1, 3, 6} {
		for margin := 100; margin <= 180; margin += 5 {
			c := r.blank(ruleName(hours, margin))
			rule := forecast.Recent{Window: time.Duration(hours) * time.Hour, Margin: int64(margin) * forecast.One / 100}
			for k := range r.Pods {
				p := &r.Pods[k]
				for i := range r.Steps {
					if p.judged(i, history) {
						c.judged[i/hour][r.fold[k]].add(min(Capacity, int64(rule.Upper(quantity.Amount(p.most(i-hours*hour, i))))),
							p.next[i])
					}
				}
			}
			for f := range folds {
				c.shown[f] = c.judged
			}
			all = append(all, c)
		}
	}
	return all
}

// learned are the rules that learn as they go, each at every theta. They are walked for every set of folds that they are not to
// learn from, as many at once as there are processors.
func (r *roller) learned() []candidate {
	settings, list := rollingSettings(), rollingThetas()
	all := make([]candidate, 0, len(settings)*len(list))
	bases := make([][][]float64, len(settings))
	for i := range settings {
		for _, theta := range list {
			c := r.blank(settings[i].Name())
			c.learned, c.asked = true, float64(theta)/1e4
			all = append(all, c)
		}
		bases[i] = r.expect(settings[i].base)
	}
	jobs := make(chan func())
	var crew sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		crew.Go(func() {
			for do := range jobs {
				do()
			}
		})
	}
	for i := range settings {
		for f := range folds {
			for g := f; g < folds; g++ {
				jobs <- func() { r.walk(settings[i], bases[i], all[i*len(list):(i+1)*len(list)], f, g) }
			}
		}
	}
	close(jobs)
	crew.Wait()
	return all
}

// walk goes through the series with a setting that learns nothing of two folds, which may be the same one.
func (r *roller) walk(set Setting, base [][]float64, of []candidate, f, g int) {
	w := r.start(set, base, rollingThetas())
	w.unseen = make([]bool, len(r.Pods))
	for k := range r.Pods {
		w.unseen[k] = r.fold[k] == f || r.fold[k] == g
	}
	var rest Score
	w.tally = func(k, i, j int) *Score {
		h := i / hour
		switch at := r.fold[k]; {
		case f == g && at == f:
			return &of[j].judged[h][f]
		case at == f:
			return &of[j].shown[g][h][f]
		case at == g:
			return &of[j].shown[f][h][g]
		}
		return &rest
	}
	w.run()
}

// join adds the predictions of another score.
func (s *Score) join(o *Score) {
	s.Predictions, s.Under = s.Predictions+o.Predictions, s.Under+o.Under
	s.over, s.held, s.used = s.over+o.over, s.held+o.held, s.used+o.used
}
