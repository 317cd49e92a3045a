package trp

import (
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

const (
	// MaxStretches bounds a profile, so that its table is at most 2080 integers: small enough to travel in a fact.
	MaxStretches = 64
	// MaxRuns bounds the recorded runs of an ensemble.
	MaxRuns = 4096
	// MaxAmount is the largest amount a profile may name: 1 PiB, exact in a float with room to spare.
	MaxAmount quantity.Amount = 1 << 50
	// MaxThetaPPM is the largest accepted chance of excess, one half: a looser one promises nothing.
	MaxThetaPPM = 500_000
)

// Compile turns a profile of a job of total units into the table that every decision uses. thetaPPM is theta, the
// accepted chance that the peak of a piece passes its slice's capacity, in parts per million: from 1 to MaxThetaPPM
// (.01 is 10000). An envelope is taken to be at that theta already.
//
// Floats end here: thresholds are rounded up to integers, once, at submission, and stored (docs/adr).
//
// An error is of kind Invalid and lists every problem of the profile, each with its place.
func Compile(p Profile, total int64, thetaPPM int64) (Table, error) {
	if err := check(p, total, thetaPPM); err != nil {
		return Table{}, err
	}
	switch p.Form {
	case Phases:
		return compilePhases(p, thetaPPM), nil
	case Ensemble:
		return compileEnsemble(p, thetaPPM), nil
	default:
		return compileEnvelope(p), nil
	}
}

// maxProblems bounds the error of a large profile that is wrong throughout.
const maxProblems = 64

// problems collects what is wrong, in order of discovery.
type problems struct {
	list []error
	more int
}

func (ps *problems) add(format string, args ...any) {
	if len(ps.list) == maxProblems {
		ps.more++
		return
	}
	ps.list = append(ps.list, fmt.Errorf(format, args...))
}

// err joins them, nil if there is none.
func (ps *problems) err() error {
	if len(ps.list) == 0 {
		return nil
	}
	list := ps.list
	if ps.more > 0 {
		list = append(list, fmt.Errorf("and %d more", ps.more))
	}
	return &errkind.Error{Kind: errkind.Invalid, Err: fmt.Errorf("memory profile: %w", errors.Join(list...))}
}

func check(p Profile, total, thetaPPM int64) error {
	var ps problems
	if thetaPPM < 1 || thetaPPM > MaxThetaPPM {
		ps.add("theta is %d parts per million; want 1 to %d (.01 is 10000)", thetaPPM, MaxThetaPPM)
	}
	if total < 1 {
		ps.add("the job's total is %d units; want at least 1", total)
	}
	switch p.Form {
	case Phases:
		checkPhases(&ps, p, total)
	case Ensemble:
		checkEnsemble(&ps, p, total, thetaPPM)
	case Envelope:
		checkEnvelope(&ps, p, total)
	default:
		ps.add("form %d is not known; want phases, an ensemble or an envelope", p.Form)
	}
	return ps.err()
}

// checkBounds looks at the ends of n stretches: rising, the last one the total.
func checkBounds(ps *problems, what string, n int, upTo func(int) int64, total int64) {
	if n == 0 {
		ps.add("%s: none given; want at least one, up to unit %d", what, total)
		return
	}
	if n > MaxStretches {
		ps.add("%s: %d given; want at most %d: join neighbours and keep the larger amount", what, n, MaxStretches)
	}
	var last int64
	for i := range n {
		if u := upTo(i); u <= last {
			ps.add("%s[%d]: ends before unit %d, where it starts at %d; ends must rise", what, i, u, last)
		} else {
			last = u
		}
	}
	if end := upTo(n - 1); end != total && total >= 1 {
		ps.add("%s[%d]: the last one ends before unit %d; want the job's total, %d", what, n-1, end, total)
	}
}

// checkAmount looks at one amount.
func checkAmount(ps *problems, where string, a quantity.Amount) {
	if a < 0 || a > MaxAmount {
		ps.add("%s is %d; want 0 to %d", where, a, int64(MaxAmount))
	}
}

func checkPhases(ps *problems, p Profile, total int64) {
	if p.Combine > Maximum {
		ps.add("combine %d is not known; want union, independent or maximum", p.Combine)
	}
	checkBounds(ps, "phases", len(p.Phases), func(i int) int64 { return p.Phases[i].UpTo }, total)
	for i, ph := range p.Phases {
		checkAmount(ps, fmt.Sprintf("phases[%d]: the mean", i), ph.Mean)
		checkAmount(ps, fmt.Sprintf("phases[%d]: the deviation", i), ph.SD)
	}
}

func checkEnvelope(ps *problems, p Profile, total int64) {
	checkBounds(ps, "envelope", len(p.Curve), func(i int) int64 { return p.Curve[i].UpTo }, total)
	for i, pt := range p.Curve {
		checkAmount(ps, fmt.Sprintf("envelope[%d]: the amount", i), pt.Amount)
	}
}

func checkEnsemble(ps *problems, p Profile, total, thetaPPM int64) {
	checkBounds(ps, "bounds", len(p.Bounds), func(i int) int64 { return p.Bounds[i] }, total)
	if len(p.Runs) > MaxRuns {
		ps.add("runs: %d given; want at most %d: keep the latest", len(p.Runs), MaxRuns)
		return
	}
	for i, run := range p.Runs {
		if len(run) != len(p.Bounds) {
			ps.add("runs[%d]: has %d peaks; want %d, one for each stretch", i, len(run), len(p.Bounds))
		}
		for j, a := range run {
			checkAmount(ps, fmt.Sprintf("runs[%d][%d]", i, j), a)
		}
	}
	if thetaPPM < 1 || thetaPPM > MaxThetaPPM {
		return
	}
	if need := LeastCleanRuns(thetaPPM); len(p.Runs) < need {
		if need > MaxRuns {
			ps.add("runs: theta of %d parts per million needs %d recorded runs and at most %d are taken; give phases or an envelope",
				thetaPPM, need, MaxRuns)
			return
		}
		ps.add("runs: %d recorded; theta of %d parts per million needs at least %d clean runs: record more, raise theta, or give phases "+
			"or an envelope", len(p.Runs), thetaPPM, need)
	}
}

// compileEnvelope takes the highest point of the curve over the stretches.
func compileEnvelope(p Profile) Table {
	t := triangle(bounds(p))
	for i := range t.Least {
		var peak quantity.Amount
		for k := range t.Least[i] {
			peak = max(peak, p.Curve[i+k].Amount)
			t.Least[i][k] = peak
		}
	}
	return t
}
