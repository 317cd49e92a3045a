// Package workload is the work that a simulation offers: for every job what its owner declares, and what is true. It
// comes from published traces, composed, or from a generator with published statistics.
package workload

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Job is one job. Times of work are at speed 1000, the whole reference GPU. Pointers and slices are shared and not
// written to.
type Job struct {
	// Number is its place in the workload, from 0.
	Number   int64
	Queue    string
	Priority int32
	Submit   quantity.Instant
	// Kind says whether it may be cut. A planner runs every kind as one rigid block.
	Kind job.Kind
	// Slices it holds at once; more than 1 only for rigid jobs.
	Slices int
	// Topology is how far these may lie apart.
	Topology job.Level
	// Units of work, cut at multiples of Grid; Parallelism subjobs at once (items only).
	Units, Grid int64
	Parallelism int

	// Work is the true run time of the whole job, Declared what its owner says: for a rigid job the walltime it asks for; 0
	// for none.
	Work, Declared time.Duration
	// Restore and Checkpoint are r and k; Startup is what each process takes before its first unit.
	Restore, Checkpoint, Startup time.Duration
	Process                      Process
	// Speeds on each kind of slice, as declared and true; a profile not listed runs at the slice's own speed.
	Speeds []job.SpeedOn

	// Profile is the declared memory, Theta the accepted chance of an excess in parts per million.
	Profile trp.Profile
	Theta   int64
	// Memory is what the job truly uses.
	Memory Memory
	// Deadline the owner gave; 0 for none. Patience is how long it looks for a place, 0: it waits.
	Deadline quantity.Instant
	Patience time.Duration

	// External: the owner's own agent bids for it, where the mechanism negotiates. Divisible jobs only.
	External bool
	// Group of jobs that figures are also given of, such as those with one kind of agent; empty: none.
	Group string
	// Template names jobs of a queue that are alike, which learn from each other; empty: none.
	Template string
}

// Process is how a job's program is made.
type Process struct {
	// Saves is after how many units of steps it leaves a checkpoint on its way, which then counts however the run ends and takes
	// Checkpoint each; 0: only at the end of a run. A multiple of Grid. Nobody is told.
	Saves int64
	// StartupError is how much longer its start truly takes than Startup, which is what its owner says.
	StartupError time.Duration
	// Resident: it stays between subjobs, and goes on with the next of the same job or template.
	Resident bool
}

// Start is what the start of a process truly takes.
func (j *Job) Start() time.Duration { return max(0, j.Startup+j.Process.StartupError) }

// Before is what passes before the first unit of a run, which resumes from a checkpoint or not. A rigid job's run time is counted from the
// start of its process.
func (j *Job) Before(resumes bool) (d time.Duration) {
	if j.Kind != job.Rigid {
		d = j.Start()
	}
	if resumes {
		d += j.Restore
	}
	return d
}

// Longest keeps sums of a few times within 63 bits: 146 years.
const Longest = time.Duration(1<<62 - 1)

// PerUnit is the true time of one of so many units that the job has, where it runs at a speed in parts per thousand. Rounding adds less
// than a nanosecond to each.
func (j *Job) PerUnit(units, speed int64) time.Duration {
	return min(Longest/time.Duration(units), max(1, time.Duration(quantity.MulDiv(int64(j.Work), 1000, max(1, speed)*units))))
}

// SpeedOn is how fast the job truly runs on a slice of a profile with a speed of its own, in parts per thousand.
func (j *Job) SpeedOn(profile string, own int64) int64 {
	for i := range j.Speeds {
		if j.Speeds[i].Profile == profile {
			return j.Speeds[i].Permille
		}
	}
	return own
}

// Worth is the work of the units before n of so many: differences add up to the whole job's exactly.
func (j *Job) Worth(n, units int64) time.Duration {
	return time.Duration(quantity.MulDiv(int64(j.Work), n, units))
}

// Memory is the true use of a job over its progress: phases like those declared, but with the true moments. Every run of a
// phase draws its own peak.
type Memory struct {
	// Seed keys the draws, with the phase and the attempt.
	Seed   uint64
	Phases []trp.Phase
}

// Source gives jobs in the order of their submission.
type Source interface {
	// Next fills j with the next job, whose Number is one higher than the last; false after the last. An error (a trace that
	// can not be read) is final.
	Next(j *Job) (bool, error)
}
