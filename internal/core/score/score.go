// Package score says what a variant is worth to its job and to the system (JASDA, arXiv 2510.14599, job-side and
// scheduler-side scoring). Features, weights and scores are integers in millionths; what is computed in floats is rounded
// once, so that two kinds of processor decide alike.
package score

import (
	"errors"
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/job"
)

// One is 1.0.
const One = 1_000_000

// Weights of the score: Lambda x job + (1 - Lambda) x system, the system's part with weights that add up to One.
type Weights struct {
	Lambda int64
	System System
}

// System has one number for each of the system's features, all from 0 to One: of a variant the features themselves, in
// Weights their weights.
type System struct {
	// Time is the share of the window's time that it fills, Memory the share of the slice's memory.
	Time, Memory int64
	// Residue is One less the share of the window that it makes useless: what remains beside it and is too short to sell.
	Residue int64
	// Headroom is One less the chance of excess over theta.
	Headroom int64
	// Age is how long its job has waited since it was last served, as a share of AgeFull.
	Age int64
	// Share is how little its job has had so far for its queue's weight: One for nothing, half of that for an hour of the
	// slice.
	Share int64
	// Brevity is how soon the variant gives its slice back: BrevityHalf/(BrevityHalf + duration).
	Brevity int64
	// Index is what the market's policy makes of its job on that class of slices, by octaves (Index); 0 for policies without one.
	Index int64
	// Urgency is how much the job's deadline presses on that class of slices (Urgency), 0 without one.
	Urgency int64
}

// BrevityHalf is the duration whose brevity is one half.
const BrevityHalf = 10 * time.Minute

// UrgencyHalf is the slack whose urgency is one half: as much as the default horizon. With less each window that is lost counts.
const UrgencyHalf = time.Hour

// AgeFull is the wait that counts as 1 (T_age).
const AgeFull = 20 * time.Minute

// What stands for a Lambda: Usual is that of the objective, None is 0 where the system's weights are the objective's.
const (
	Usual = -1
	None  = -2
)

// Of is the weights of an objective, by the name of its policy. Under shortest and throughput only the index counts
// (docs/adr/0031-density.md). The others' were chosen on seeds of philly-mig that the evaluation does not use
// (docs/adr/0013-negotiation.md): Lambda is the smallest with which a piece that finishes its job beats a quarter of that piece, though the
// quarter frees its slice sooner. Those of deadline were chosen by how many deadlines are missed (docs/adr/0031-density.md): nothing in a
// piece says more of that than its job's slack.
func Of(objective string) Weights {
	switch objective {
	case "shortest", "throughput":
		return Weights{System: System{Index: One}}
	case "deadline":
		return Weights{System: System{Share: One / 4, Brevity: One / 4, Urgency: One / 2}}
	}
	return Weights{Lambda: One / 4, System: System{Time: 100_000, Share: 450_000, Brevity: 450_000}}
}

// Or completes weights from the objective's: those that are left out.
func (w Weights) Or(usual Weights) Weights {
	switch {
	case w == Weights{}:
		return usual
	case w.Lambda == Usual:
		w.Lambda = usual.Lambda
	case w.Lambda == None:
		w.Lambda = 0
	}
	if w.System == (System{}) {
		w.System = usual.System
	}
	return w
}

// Job has one number for each of the job's features, all from 0 to One.
type Job struct {
	// Progress is the share of its remaining work that the variant does.
	Progress int64
	// Laxity is how pressing its deadline is, 0 without one.
	Laxity int64
	// Overhead is One less the share of the time that restore and checkpoint take.
	Overhead int64
}

// Validate lists every problem of w.
func (w Weights) Validate() error {
	var errs []error
	if w.Lambda < 0 || w.Lambda > One {
		errs = append(errs, fmt.Errorf("market: lambda is %d millionths; want 0 to 1", w.Lambda))
	}
	s := w.System
	sum := int64(0)
	for _, f := range []struct {
		name  string
		value int64
	}{{"time", s.Time}, {"memory", s.Memory}, {"residue", s.Residue}, {"headroom", s.Headroom}, {"age", s.Age}, {"share", s.Share},
		{"brevity", s.Brevity}, {"index", s.Index}, {"urgency", s.Urgency}} {
		if f.value < 0 {
			errs = append(errs, fmt.Errorf("market: the weight of %s is %d millionths; want 0 or more", f.name, f.value))
		}
		sum += f.value
	}
	if sum != One {
		errs = append(errs, fmt.Errorf("market: the system's weights add up to %d millionths; want 1", sum))
	}
	return errors.Join(errs...)
}

// Of is the system's score of a variant with these features under the weights w, which add up to One: their weighted sum in
// millionths, rounded to the nearest, 0 to One.
func (f System) Of(w System) int64 { return (f.Sum(w) + One/2) / One }

// Sum is the weighted sum in 1/One of a millionth, at most One x One. What is out of range counts as the nearest that is not. Sums of
// some features and of the others add up to that of all.
func (f System) Sum(w System) int64 {
	return unit(f.Time)*w.Time + unit(f.Memory)*w.Memory + unit(f.Residue)*w.Residue + unit(f.Headroom)*w.Headroom + unit(f.Age)*w.Age +
		unit(f.Share)*w.Share + unit(f.Brevity)*w.Brevity + unit(f.Index)*w.Index + unit(f.Urgency)*w.Urgency
}

// Total is the score of a variant that clearing compares: Lambda x job + (1 - Lambda) x the system's score of its features, in
// millionths, 0 to One for weights that Validate accepts. job is the job's own score of it, calibrated (trust.Belief). It
// is rounded once, to the nearest, and so may differ in the last digit from what the rounded parts would add up to.
func (w Weights) Total(job int64, f System) int64 { return w.TotalOf(job, f.Sum(w.System)) }

// TotalOf is Total by the sum of the system's features (System.Sum), 0 to One x One.
func (w Weights) TotalOf(job, sum int64) int64 {
	const square = One * One
	return (w.Lambda*unit(job)*One + (One-w.Lambda)*sum + square/2) / square
}

// MaxWeight bounds the weight of one variant, so that the sum of 100,000 stays below 1<<62. It is a score of One for 12.8
// hours; what is longer or better counts as this.
const MaxWeight = (1 << 62) / 100_000

// Weight is the weight of a variant of this score in clearing, 0 to MaxWeight: the score itself in millionths, or, with perTime, score x
// duration in millionths x milliseconds, so that a long variant is worth as much as the short ones that it keeps out. A duration is rounded
// down to milliseconds, but to no less than one.
func Weight(score int64, duration time.Duration, perTime bool) int64 {
	score = unit(score)
	if !perTime {
		return score
	}
	ms := max(1, duration.Milliseconds())
	if score > 0 && ms > MaxWeight/score {
		return MaxWeight
	}
	return score * ms
}

// unit is x cut to [0, One].
func unit(x int64) int64 { return min(max(x, 0), One) }

// Of is the job's own score of a variant with these features, in millionths, 0 to One.
func (f Job) Of(w job.Worth) int64 {
	return (f.Progress*w.Progress + f.Laxity*w.Laxity + f.Overhead*w.Overhead + 500) / 1000
}
