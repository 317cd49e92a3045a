package forecast

import (
	"math"
	"slices"
)

// base is a rule for how much a pod is likely to use in the next hour, up to a factor that is learned. at says it for the
// pod at step i from samples up to i; nil for a regression, which learns as it goes. All are in bytes to some power; the factor takes care
// of the rest.
type base struct {
	name string
	at   func(p *Pod, i int) float64
}

// power flattens a base: with a power below 1 a pod that uses much is expected to come back to what pods use.
func power(b base, tenths int) base {
	name := b.name + " ^." + string(rune('0'+tenths))
	return base{name, func(p *Pod, i int) float64 { return math.Pow(b.at(p, i), float64(tenths)/10) }}
}

// between two bases lies their geometric mean.
func between(a, b base) base {
	return base{a.name + " and " + b.name, func(p *Pod, i int) float64 { return math.Sqrt(a.at(p, i) * b.at(p, i)) }}
}

func constant() base { return base{"constant", func(*Pod, int) float64 { return 1 }} }

func most(hours int) base {
	return base{"most of " + string(rune('0'+hours)) + " h", func(p *Pod, i int) float64 { return float64(p.most(i-hours*hour, i)) }}
}

func mean(hours int) base {
	return base{"mean of " + string(rune('0'+hours)) + " h", func(p *Pod, i int) float64 {
		sum, n := int64(0), int64(0)
		for _, u := range p.Use[max(0, i+1-hours*hour) : i+1] {
			if u > 0 {
				sum += u
				n++
			}
		}
		return float64(sum) / float64(n)
	}}
}

func high(hours int) base {
	seen := make([]int64, 0, 9*hour)
	return base{"90% of " + string(rune('0'+hours)) + " h", func(p *Pod, i int) float64 {
		seen = seen[:0]
		for _, u := range p.Use[max(0, i+1-hours*hour) : i+1] {
			if u > 0 {
				seen = append(seen, u)
			}
		}
		slices.Sort(seen)
		return float64(seen[(len(seen)-1)*9/10])
	}}
}

// features of a pod for regression: what it uses now, how that compares with before, and what it used lately; in GiB.
func features(p *Pod, i int) [5]float64 {
	const gib = 1 << 30
	level, m := float64(p.Use[i])/gib, mean(3).at(p, i)/gib
	return [5]float64{1, level - m, m, float64(p.most(i-hour, i)) / gib, float64(p.most(i-3*hour, i)) / gib}
}

// regression is linear quantile regression on level and trend (Koenker and Bassett 1978), learned online by the
// subgradient of its loss, one step for each outcome, with a step that falls with their number.
type regression struct {
	weights [5]float64
	n       int
}

// quantile that is regressed; the factor takes it to the one that is wanted.
const quantile = .9

func (r *regression) at(p *Pod, i int) float64 {
	x, sum := features(p, i), 0.0
	for j, w := range r.start() {
		sum += w * x[j]
	}
	return max(1, sum)
}

// start is the weights: before any outcome, the most of an hour.
func (r *regression) start() *[5]float64 {
	if r.n == 0 {
		r.weights = [5]float64{3: 1}
	}
	return &r.weights
}

func (r *regression) learn(p *Pod, i int, peak int64) {
	x := features(p, i)
	miss := float64(peak)/(1<<30) - r.at(p, i)
	slope := quantile
	if miss < 0 {
		slope = quantile - 1
	}
	r.n++
	rate := .005 / math.Sqrt(1+float64(r.n)/100)
	for j := range r.weights {
		scale := 25.0 // the features are some 25 GiB large, but for the first
		if j == 0 {
			scale = 1
		}
		r.weights[j] += rate * slope * x[j] / scale
	}
}
