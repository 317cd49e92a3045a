// Package compose puts workloads together from parts that were measured apart: arrivals and durations of one cluster, speeds
// on the slices of a GPU of another, memory of a third. No published trace has all of them for the same jobs, so a workload
// is a composition, and every result on it depends on what that assumes: see Assumptions.
package compose

import (
	"fmt"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/lab/bound"
	"sluice.dev/sluice/internal/lab/workload"
)

// Inputs are the parts.
type Inputs struct {
	// Arrivals of a seed; Ends says whether they end, as those of a log as published do. Nil: they never do.
	Arrivals func(seed uint64) workload.Arrivals
	Ends     func(seed uint64) bool
	Programs []workload.Program
	Shapes   []workload.Shape
	// About says in a sentence each what was measured and what was assumed.
	About []string
	// Counts of the contents of a file of arrivals, and how they were treated.
	Counts []Count
}

// Class is a kind of slice of the cluster the workload is for.
type Class struct {
	bound.Class
	// Compute slices it has of the GPU's seven, for the speeds of programs: 7 for a whole GPU. 0 for a slice on which every
	// job runs at the class's speed.
	Compute int
}

// Multi is the treatment of jobs with several GPUs.
type Multi uint8

const (
	// Drop leaves them out: 5% of Philly's jobs and most of its GPU-time. The default, for a cluster of slices of a few GPUs.
	Drop Multi = iota
	// Split makes of each as many jobs with one GPU, which need not run together.
	Split
	// Gang makes of each a rigid job that holds as many slices at once.
	Gang
)

// Options of a workload. Defaults are in brackets.
type Options struct {
	Classes []Class
	// Seed picks the stretch of a log, or the stream of a generator, and all draws for its jobs.
	Seed uint64
	// Jobs to take, or Window: as many as come in it. One of the two must be given, but for a log as published.
	Jobs   int64
	Window time.Duration
	// Load is the work offered over what the cluster can do, see Summary.Load; 0 keeps the times of the log. With a Window
	// the workload is the first jobs whose work makes up the load, as near as whole jobs come to it, in times stretched so
	// that they just fill it; with Jobs it is these jobs, in times stretched as far as it takes. Stretching keeps the bursts,
	// in numbers of jobs.
	Load float64
	// Cap on durations; longer ones are cut down to it. 0 for none: Philly's tail, over a day, is 3% of the jobs and most of
	// the work.
	Cap   time.Duration
	Multi Multi
	// Atomizable is the share of jobs that may be cut, from 0 to 1. Every job has a number from 0 to 1 of its own and is
	// atomizable if that is below the share, so that the jobs of a smaller share are among those of a larger one, and
	// nothing else about a job changes. Gangs are never.
	Atomizable float64
	// Grain is the work between two checkpoints [a minute], one unit of a job.
	Grain time.Duration
	// Restore and Checkpoint are r and k, Startup comes on top of each start. All may be 0. Published loads onto a GPU
	// (GenTD26, half and 90% of them within): a base model 22.7 and 42.0 s, a LoRA 4.4 and 6.1 s, a whole pipeline 8.5 and
	// 26.8 s; the published example of SJA has r = 20 s and k = 15 s.
	Restore, Checkpoint, Startup time.Duration
	// Templates is how many templates the jobs are of, each with one of them; 0: none.
	Templates int
	// Resident: the programs of those that may be cut stay between subjobs.
	Resident bool
	// Saves is how much work lies between two checkpoints that the programs of jobs in steps leave on their way; 0: none.
	Saves time.Duration
	// Theta in parts per million [job.DefaultTheta].
	Theta int64
	// Noise is the deviation of the peak of a phase from run to run, in thousandths of its mean [20].
	Noise int64
	// TimeError is the error of the run times that owners declare, MemoryError that of the memory.
	TimeError, MemoryError Error
	// Deadlines that owners give; none by default.
	Deadlines Deadlines
}

// Deadlines of a share of the jobs, from 0 to 1, so long after their submission: their true run time on a whole GPU times a slack that is
// drawn from [Least, Most) for each. The jobs of a smaller share are among those of a larger one.
type Deadlines struct{ Share, Least, Most float64 }

// Error is a factor exp(Bias + Sigma z) on the truth, z standard normal, drawn once per job. Published figures put in this
// form: the mean of the last two run times of a queue as a forecast of the next on Philly is off by a factor of 1.17 in half
// of the cases and 3.0 in a tenth (a Sigma between .25 and .67, with a heavier tail; 46% are too short, so no Bias); a
// static estimate of training memory (FakeTensor on CARMA's runs over 3 GB) has the median .72 of the truth and lies between
// .30 and .86, a Bias of -.33 and a Sigma of about .3; a fitted one (LLMem) is off by 3% on several GPUs, a Sigma of .04.
type Error struct{ Bias, Sigma float64 }

// Assumptions says in a sentence each what a workload of these inputs and options takes for granted.
func Assumptions(in Inputs, o Options) []string {
	o = o.filled()
	list := append([]string(nil), in.About...)
	list = append(list,
		"A duration of the log is the run time on a whole GPU of the reference; what a job runs and how its memory evolves are drawn "+
			"for each job alone, whatever its queue, its size and its length.",
		"A phase takes the same share of the progress on every slice; its peak varies from run to run by a normal distribution and "+
			"comes with its first unit.",
		"A job checkpoints after every "+o.Grain.String()+" of work on the whole GPU; restore, checkpoint and start cost the same for all.",
		"A job that may be cut is a chain of steps; the others hold their slice from start to end, and their walltime is never below "+
			"the truth, so that none is killed by its owner's error.",
		"Owners know how far off their memory figures tend to be: the deviation they declare holds the error's, but not its bias.",
		"Load 1 is the most work per second that the cluster could do for ever in the proportions of this workload if every job could "+
			"be cut, nothing cost anything, and each phase ran wherever its true memory fits in 99% of the runs; it is the same for "+
			"every share of atomizable jobs.",
		"Jobs whose peak fits no slice are left out.",
	)
	if o.Templates > 0 {
		list = append(list, fmt.Sprintf("Each job is of one of %d templates, drawn evenly, whatever else it is.", o.Templates))
	}
	if o.Resident {
		list = append(list, "The programs of jobs that may be cut stay between subjobs, and start alike for all of them.")
	}
	if o.Cap > 0 {
		list = append(list, "Durations over "+o.Cap.String()+" are cut down to it.")
	}
	if d := o.Deadlines; d.Share > 0 {
		list = append(list, fmt.Sprintf("%g%% of the jobs have a deadline: %g to %g times their true run time on a whole GPU after they "+
			"come, drawn evenly; what is not over by then is ended.", d.Share*100, d.Least, d.Most))
	}
	switch o.Multi {
	case Drop:
		list = append(list, "Jobs with several GPUs are left out.")
	case Split:
		list = append(list, "A job with several GPUs is as many jobs with one, submitted together.")
	case Gang:
		list = append(list, "A job with several GPUs holds as many slices at once and is not cut; speeds of its parts are those of one.")
	}
	return list
}

// filled has the defaults.
func (o Options) filled() Options {
	if o.Grain == 0 {
		o.Grain = time.Minute
	}
	if o.Theta == 0 {
		o.Theta = job.DefaultTheta
	}
	if o.Noise == 0 {
		o.Noise = 20
	}
	return o
}

// Count is one thing that was found in what a workload is made of, and how often.
type Count struct {
	What string
	Many int64
}

// String is a line for people.
func (c Count) String() string { return fmt.Sprintf("%d %s", c.Many, c.What) }
