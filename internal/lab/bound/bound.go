// Package bound says what no schedule can pass: upper bounds on the useful work that a cluster can complete in a window of
// time, and a lower bound on the mean time to completion. A result is then also a share of what is possible.
//
// The bounds are allowed what no scheduler is: they know every job in advance, stop and move work at will, and pay nothing
// for it: no restore, no checkpoint, no start, no memory excess. So a share of 1 is out of reach. All of them are of the
// same problem:
//
//   - a job runs on the classes where its part fits, at its speed there, on at most Width slices at once;
//   - the parts of a divisible job (its phases) are done in any order;
//   - a job that is Whole counts only if all of it is done within the window. Exact keeps to that; the linear program and
//     the area count what is done of it, and leave out only jobs that can not end in time even alone.
//
// What a job has done before the window begins is not known here: a job submitted earlier may have any part of its work left,
// up to all. Only what is done within the window counts, of a whole job too: a job that ran half before it counts half.
package bound

import (
	"math"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// MaxClasses of slices.
const MaxClasses = planner.MaxClasses

// Class is a kind of slice.
type Class struct {
	Name  string
	Count int
	// Speed in thousandths of the reference GPU, for jobs that name none of their own.
	Speed  int64
	Memory quantity.Amount
}

// Speeds of a job on every class, in thousandths of the reference; 0 where it can not run.
type Speeds [MaxClasses]int64

// Job is what the bounds see of a job.
type Job struct {
	Submit quantity.Instant
	Parts  []Part
	// Width is how many slices it can be on at once, at least 1.
	Width int
	// Whole: what is not finished counts nothing.
	Whole bool
}

// Part is work that runs at the same speeds throughout, whichever the piece.
type Part struct {
	// Work at speed 1000, over all slices of a gang.
	Work   time.Duration
	Speeds Speeds
}

// Window is [From, To).
type Window struct{ From, To quantity.Instant }

// length in seconds.
func (w Window) length() float64 { return w.To.Sub(w.From).Seconds() }

// holds says whether a job is submitted in the window.
func (w Window) holds(j *Job) bool { return w.From <= j.Submit && j.Submit < w.To }

// Options bound the size of the linear program.
type Options struct {
	// Buckets of time; default 12. Work is taken to be there from the start of the bucket in which it comes.
	Buckets int
	// Types of work; default 40. With more kinds of speeds than that, kinds that differ little are taken for one with the
	// faster speed on each class.
	Types int
}

// Result has bounds on the useful work in the window, in seconds of the reference GPU. Exact <= LP <= Area, but for errors
// of rounding of one in 10^6.
type Result struct {
	// Area is the least of all the work that could count and of the cluster's time, each class at the best speed of any job.
	Area float64
	// LP is the value of the linear program by type and bucket, as its own dual solution proves it.
	LP float64
	// Exact is by enumeration of the finished jobs, 0 where the scenario is too large for it.
	Exact float64
	// Completion is what the mean time from submission to completion is at least, in seconds, of the Completing jobs that are submitted in
	// the window and can run somewhere, if all are run to their end, however long that takes. Of at most 8 whole jobs with one slice
	// each, on at most 2 slices, it is the least there is without interruption.
	Completion float64
	Completing int
	Size       Size
	// How says in words what was solved.
	How string
}

// Best is the smallest of the upper bounds.
func (r *Result) Best() float64 {
	if r.Size.Subsets > 0 {
		return r.Exact
	}
	return r.LP
}

// Size is how large the programs were.
type Size struct {
	// Jobs that could count, Types and Buckets they were put into; Step is the grid of speeds that took, in thousandths.
	Jobs, Types, Buckets int
	Step                 int64
	// Variables, Rows and Pivots of the linear program.
	Variables, Rows, Pivots int
	// Subsets of whole jobs that Exact looked at.
	Subsets int
}

// bestOf is the best speed of the part on classes that have a slice.
func (p *Part) bestOf(classes []Class) int64 {
	best := int64(0)
	for c, class := range classes {
		if class.Count > 0 {
			best = max(best, p.Speeds[c])
		}
	}
	return best
}

func speed(permille int64) float64 { return float64(permille) / 1000 }

// counts is the part of a job that could count: its parts cut down to what can be done in the window. A job submitted
// before the window may come into it with any part of its work, so it is not Whole any more; ok is false if nothing counts.
func (j Job) counts(classes []Class, w Window) (_ Job, ok bool) {
	j.Width = max(j.Width, 1)
	seconds := w.To.Sub(max(j.Submit, w.From)).Seconds()
	if seconds <= 0 {
		return j, false
	}
	alone := 0. // seconds it takes with the whole cluster
	var parts []Part
	for _, p := range j.Parts {
		if p.Work <= 0 {
			continue
		}
		best := p.bestOf(classes)
		if best == 0 {
			alone = math.Inf(1)
			continue
		}
		fastest := float64(j.Width) * speed(best)
		alone += p.Work.Seconds() / fastest
		p.Work = min(p.Work, time.Duration(math.Ceil(fastest*seconds*1e9)))
		parts = append(parts, p)
	}
	if j.Whole && alone > w.To.Sub(j.Submit).Seconds()*(1+1e-12) {
		return j, false
	}
	j.Parts, j.Whole = parts, j.Whole && j.Submit >= w.From
	return j, len(parts) > 0
}
