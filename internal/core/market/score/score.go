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
}

// AgeFull is the wait that counts as 1 (T_age).
const AgeFull = 20 * time.Minute

// Default weights.
var Default = Weights{Lambda: One / 2, System: System{Time: 200_000, Memory: 200_000, Residue: 100_000, Headroom: 0, Age: 500_000}}

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
	}{{"time", s.Time}, {"memory", s.Memory}, {"residue", s.Residue}, {"headroom", s.Headroom}, {"age", s.Age}} {
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

// Of is the job's own score of a variant with these features.
func (f Job) Of(w job.Worth) int64 {
	return (f.Progress*w.Progress + f.Laxity*w.Laxity + f.Overhead*w.Overhead + 500) / 1000
}
