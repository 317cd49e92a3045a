package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"sluice.dev/sluice/internal/lab/measure"
)

// Ours, beside the planners.
const (
	sja   = "sja"
	jasda = "jasda"
)

// mine says whether a mechanism is one of ours, under whatever policy.
func mine(mechanism string) bool {
	return strings.HasPrefix(mechanism, sja) || strings.HasPrefix(mechanism, jasda)
}

// decisive are the metrics by which mechanisms are judged on this page. The wait until a job first starts is none of them: whoever cuts
// jobs shortens it by that alone.
func decisive() []string {
	return []string{measure.CompletionMean, measure.CompletionPerWork, measure.BoundShare}
}

// judged are all metrics of which it is known which way is better.
func judged() (out []string) {
	for _, m := range measure.Table() {
		if m.Better != measure.Neither {
			out = append(out, m.Name)
		}
	}
	return out
}

// What is said of two mechanisms, where the interval does not hold no difference.
const (
	alike  = "no difference seen"
	better = "better"
	worse  = "worse"
)

// verdict is what is said of a mechanism: "sja is better".
func verdict(mechanism, how string) string {
	if how == alike {
		return alike
	}
	return mechanism + " is " + how
}

// by is how the values of a metric are compared: by difference for shares, else by ratio.
func by(metric, own, other string) string {
	if measure.About(metric).Unit == measure.Share {
		return own + " - " + other
	}
	return own + " / " + other
}

// compare gives a mechanism's value against another's, seed by seed, with its interval: by difference for shares, else by ratio.
func compare(metric string, own, other []float64) (text, how string) {
	about := measure.About(metric)
	d := measure.Difference(own, other)
	text = fmt.Sprintf("%s (%s to %s)", signed(metric, d.Mean), signed(metric, d.Low), signed(metric, d.High))
	if about.Unit != measure.Share {
		d = measure.Difference(logs(own), logs(other))
		text = fmt.Sprintf("%.2f (%.2f to %.2f)", math.Exp(d.Mean), math.Exp(d.Low), math.Exp(d.High))
	}
	if math.IsNaN(d.Mean) {
		text = "-" // one of them is 0 throughout, or was not measured
	}
	switch {
	case math.IsNaN(d.Low) || d.Low <= 0 && d.High >= 0:
		return text, alike
	case (d.Mean > 0) == (about.Better == measure.Higher):
		return text, better
	}
	return text, worse
}

// logs of values that are above 0; NaN of the others, which leaves them out.
func logs(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, v := range values {
		out[i] = math.Log(v)
		if v <= 0 {
			out[i] = math.NaN()
		}
	}
	return out
}

// best is the baseline with the best mean of a metric, of all but some.
func (r *result) best(x float64, metric string, except []string) (name string, values []float64) {
	sign := 1.0
	if measure.About(metric).Better == measure.Lower {
		sign = -1
	}
	top := math.Inf(-1)
	for _, m := range r.Names() {
		if mine(m) || slices.Contains(except, m) {
			continue
		}
		v := r.Values(x, m, metric)
		if e := sign * measure.Mean(v).Mean; e > top {
			name, values, top = m, v, e
		}
	}
	return name, values
}

// mean of values, as text.
func mean(metric string, values []float64) string { return value(metric, measure.Mean(values).Mean) }
