package forecast

import (
	"math"
	"slices"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/quantity"
)

// pools say whose past scores bound a pod.
type pools uint8

const (
	// together: those of all pods.
	together pools = iota
	// byLevel: those of pods that were, when predicted, on the same side of the median of what pods then used in the mean.
	byLevel
	// alone: the pod's own, those of all pods while they are too few.
	alone
	// tracked: no pool; a tracker for each pod, that starts with what all pods teach. Gamma is its step.
	tracked
)

var poolNames = [...]string{"all pods", "pods of its level", "the pod alone", "a tracker a pod"}

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
	for i := range s.Steps {
		w.learn(i - hour)
		w.predict(i)
	}
	return w.scores
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
	for range 2 + len(s.Pods) {
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
	// pool of all pods or of the low level, of the high level, and of each pod.
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
	// middle of what pods use in the mean.
	middle float64
}

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
		if i%sparse != 0 || w.base[k][i] == 0 || p.Use[i+hour] == 0 {
			continue
		}
		peak := p.next[i]
		ratio := int64(float64(peak) / w.base[k][i] * forecast.One)
		w.pool[w.group[k][i]].Add(ratio)
		if w.set.pools == alone {
			w.pool[2+k].Add(ratio)
		}
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
		if w.set.pools == byLevel && mean(1).at(p, i) > w.middle {
			w.group[k][i] = 1
		}
		judged := p.judged(i, history)
		if judged {
			w.judged[i]++
		}
		for j := range w.thetas {
			bound := w.bound(k, i, j)
			w.held[k][j][i] = bound
			if w.set.hold > 0 {
				bound = slices.Max(w.held[k][j][max(0, i-w.set.hold) : i+1])
			}
			if judged {
				peak := p.next[i]
				w.scores[j].add(bound, peak)
				if bound < peak {
					w.missed[j][i]++
				}
			}
		}
	}
}

// level finds the middle of what pods use, every so often.
func (w *walk) level(i int) {
	if w.set.pools != byLevel || i%sparse != 0 || i < hour {
		return
	}
	var means []float64
	for k := range w.Pods {
		if w.Pods[k].Use[i] > 0 {
			means = append(means, mean(1).at(&w.Pods[k], i))
		}
	}
	slices.Sort(means)
	if n := len(means); n > 0 {
		w.middle = means[n/2]
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
		if own, enough := w.pool[2+k].Upper(l.At()); enough {
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
