package forecast

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/quantity"
)

// pools say whose past scores bound a pod.
type pools uint8

const (
	// together: those of all pods.
	together pools = iota
	// byLevel: those of pods that were, when predicted, on the same side of the median of the pods' later mean use.
	byLevel
	// byQuarter: those of pods in the same quarter by the most of 3 h.
	byQuarter
	// alone: the pod's own, those of all pods while they are too few.
	alone
	// tracked: no pool; a tracker for each pod, that starts with what all pods teach. Gamma is its step.
	tracked
)

var poolNames = [...]string{"all pods", "pods of its level", "pods of its quarter", "the pod alone", "a tracker a pod"}

// Setting is one way to predict. The bound is the base times an order statistic of past ratios of peak to base.
type Setting struct {
	base  base
	pools pools
	// window is how many hours of scores are kept, 0 for all.
	window int
	// gamma is the step of the level in parts per million, 0 for a fixed one.
	gamma int64
	// hold is how many steps a bound is held before it may fall: the largest of those made in them counts.
	hold int
}

const (
	// sparse is how many steps lie between two that teach: those next to each other say the same.
	sparse = 5
	// history in hours that a prediction must have to be judged.
	history = 3
)

// expect is what a base says of every pod at every step at which it is to be predicted, 0 elsewhere; nil of a regression.
func (s *Series) expect(b base) [][]float64 {
	if b.at == nil {
		return nil
	}
	out := make([][]float64, len(s.Pods))
	for k := range s.Pods {
		p := &s.Pods[k]
		out[k] = make([]float64, s.Steps)
		for i := range s.Steps {
			if p.predicted(i) {
				out[k][i] = b.at(p, i)
			}
		}
	}
	return out
}

// predicted says whether there is a prediction at step i: with an hour of history, so that what is learned from those that
// are not judged yet is there when judging begins.
func (p *Pod) predicted(i int) bool {
	return p.judged(i, history) || i >= hour-1 && p.Use[i] > 0 && p.Use[i-hour+1] > 0
}

// through walks the series with one setting and scores each theta. Base is what expect says of the setting's.
func (s *Series) through(set Setting, base [][]float64, thetas []int64) []Score {
	w := s.start(set, base, thetas)
	w.run()
	return w.scores
}

func (w *walk) run() {
	for i := range w.Steps {
		w.learn(i - hour)
		w.predict(i)
	}
}

func (s *Series) start(set Setting, base [][]float64, thetas []int64) *walk {
	w := &walk{Series: s, set: set, thetas: thetas, scores: make([]Score, len(thetas)), base: base, group: make([][]uint8, len(s.Pods))}
	if set.base.at == nil {
		w.base = make([][]float64, len(s.Pods))
		for k := range w.base {
			w.base[k] = make([]float64, s.Steps)
		}
	}
	perStep := (len(s.Pods) + sparse - 1) / sparse
	keep := 1 << 20
	if set.window > 0 {
		keep = max(1, set.window*hour*perStep)
	}
	for range quarters + len(s.Pods) {
		w.pool = append(w.pool, &forecast.Sample{Most: keep})
	}
	for _, theta := range thetas {
		level := forecast.Level{Theta: theta, Gamma: set.gamma}
		if set.pools == tracked {
			level.Gamma = 0
		}
		w.levels = append(w.levels, level)
	}
	w.trackers = make([][]forecast.Tracker, len(s.Pods))
	for k := range s.Pods {
		w.group[k] = make([]uint8, s.Steps)
		w.held = append(w.held, make([][]int64, len(thetas)))
		for j := range thetas {
			w.held[k][j] = make([]int64, s.Steps)
		}
	}
	w.missed, w.judged = make([][]int64, len(thetas)), make([]int64, s.Steps)
	for j := range thetas {
		w.missed[j] = make([]int64, s.Steps)
	}
	return w
}

// walk goes through a series once, step by step, predicting at several thetas with what it has learned by then.
type walk struct {
	*Series
	set    Setting
	thetas []int64
	reg    regression
	// pool of all pods or of each class of them, and behind these of each pod.
	pool   []*forecast.Sample
	levels []forecast.Level
	scores []Score
	// trackers of each pod, one for each theta, once it has been predicted.
	trackers [][]forecast.Tracker
	// what was predicted, by pod and step: the base, the group, and the bounds of each theta.
	base   [][]float64
	group  [][]uint8
	held   [][][]int64
	missed [][]int64
	judged []int64
	// cuts between the classes of pods.
	cuts []float64
	// unseen pods are predicted and teach nobody else; nil: all teach. tally is where a prediction counts; nil: in scores.
	unseen []bool
	tally  func(pod, step, theta int) *Score
}

// quarters is the most classes of pods.
const quarters = 4

func (w *walk) teaches(k int) bool { return w.unseen == nil || !w.unseen[k] }

// learn from the predictions of step i, the hour after which is over.
func (w *walk) learn(i int) {
	if i < 0 {
		return
	}
	for k := range w.Pods {
		p := &w.Pods[k]
		if p.Use[i+hour] > 0 {
			for j := range w.trackers[k] {
				if bound := w.held[k][j][i]; bound > 0 {
					w.trackers[k][j].Saw(quantity.Amount(p.next[i]), quantity.Amount(bound), bound < Capacity)
				}
			}
		}
		if i%sparse != 0 || w.base[k][i] == 0 || p.Use[i+hour] == 0 || !w.teaches(k) && w.set.pools != alone {
			continue
		}
		peak := p.next[i]
		ratio := int64(float64(peak) / w.base[k][i] * forecast.One)
		if w.set.pools == alone {
			w.pool[quarters+k].Add(ratio)
		}
		if !w.teaches(k) {
			continue
		}
		w.pool[w.group[k][i]].Add(ratio)
		if w.set.base.at == nil {
			w.reg.learn(p, i, peak)
		}
	}
	if w.judged[i] > 0 {
		for j := range w.levels {
			w.levels[j].SawShare(w.missed[j][i], w.judged[i])
		}
	}
}

// predict at step i.
func (w *walk) predict(i int) {
	w.level(i)
	for k := range w.Pods {
		p := &w.Pods[k]
		if !p.predicted(i) {
			continue
		}
		if w.set.base.at == nil {
			w.base[k][i] = w.reg.at(p, i)
		}
		if w.classed() {
			w.group[k][i] = uint8(sort.SearchFloat64s(w.cuts, w.class(p, i)))
		}
		judged := p.judged(i, history)
		if judged && w.teaches(k) {
			w.judged[i]++
		}
		for j := range w.thetas {
			bound := w.bound(k, i, j)
			w.held[k][j][i] = bound
			if w.set.hold > 0 {
				bound = slices.Max(w.held[k][j][max(0, i-w.set.hold) : i+1])
			}
			if judged {
				peak, score := p.next[i], &w.scores[j]
				if w.tally != nil {
					score = w.tally(k, i, j)
				}
				score.add(bound, peak)
				if bound < peak && w.teaches(k) {
					w.missed[j][i]++
				}
			}
		}
	}
}

func (w *walk) classed() bool { return w.set.pools == byLevel || w.set.pools == byQuarter }

// class is what a pod's class goes by.
func (w *walk) class(p *Pod, i int) float64 {
	if w.set.pools == byQuarter {
		return float64(p.most(i-3*hour, i))
	}
	return mean(1).at(p, i)
}

// level finds the cuts between the classes of pods, every so often: the middle of those that teach, or their quarters.
func (w *walk) level(i int) {
	if !w.classed() || i%sparse != 0 || i < hour {
		return
	}
	var all []float64
	for k := range w.Pods {
		if w.Pods[k].Use[i] > 0 && w.teaches(k) {
			all = append(all, w.class(&w.Pods[k], i))
		}
	}
	if len(all) == 0 {
		return
	}
	slices.Sort(all)
	w.cuts = w.cuts[:0]
	parts := 2
	if w.set.pools == byQuarter {
		parts = quarters
	}
	for q := 1; q < parts; q++ {
		w.cuts = append(w.cuts, all[len(all)*q/parts])
	}
}

// bound of pod k at step i for the j-th theta, at most the whole card, which is what is left where no finite bound will do.
func (w *walk) bound(k, i, j int) int64 {
	if w.set.pools == tracked && w.trackers[k] != nil {
		bound, ok := w.trackers[k][j].Upper(quantity.Amount(w.base[k][i]))
		if !ok {
			return Capacity
		}
		return max(1, min(Capacity, int64(bound)))
	}
	l := &w.levels[j]
	switch {
	case l.Whole():
		return Capacity
	case l.Nothing():
		return 0
	}
	factor, ok := w.pool[w.group[k][i]].Upper(l.At())
	if w.set.pools == alone {
		if own, enough := w.pool[quarters+k].Upper(l.At()); enough {
			factor, ok = own, true
		}
	}
	if !ok {
		return Capacity
	}
	if w.set.pools == tracked && j == len(w.thetas)-1 {
		w.track(k)
	}
	return int64(min(float64(Capacity), math.Ceil(float64(factor)/forecast.One*w.base[k][i])))
}

// track starts the trackers of a pod, with the factors that all pods teach.
func (w *walk) track(k int) {
	for j, theta := range w.thetas {
		t := forecast.Tracker{Theta: theta, Gamma: w.set.gamma, Max: 4 * forecast.One}
		factor, _ := w.pool[0].Upper(w.levels[j].At())
		t.Start(min(factor, t.Max))
		w.trackers[k] = append(w.trackers[k], t)
	}
}

// Target is what a forecast must reach (percent).
const (
	TargetUnder = 1.0
	TargetOver  = 25.0
)

// Name of a setting for people.
func (set *Setting) Name() string {
	name := set.base.name + ", " + poolNames[set.pools]
	if set.window > 0 {
		name += fmt.Sprintf(", last %d h", set.window)
	}
	if set.gamma > 0 {
		name += fmt.Sprintf(", step %g", float64(set.gamma)/forecast.One)
	}
	if set.hold > 0 {
		name += fmt.Sprintf(", held %d min", int(Step.Minutes()*float64(set.hold)+.5))
	}
	return name
}

// Point is one point of the frontier.
type Point struct {
	// Rule in words.
	Rule string
	// Theta that was asked for, in percent; 0 for a rule that knows none.
	Theta float64
	// Chosen is on the half of the pods on which settings were chosen, zero where nothing was; Reported on the other.
	Chosen, Reported Score
}

func ruleName(hours, margin int) string {
	digits := 1
	if margin%10 > 0 {
		digits = 2
	}
	return fmt.Sprintf("most of %d h x %.*f", hours, digits, float64(margin)/100)
}
