// Package filler is what people run today in the gaps of a host scheduler, and the loop that plays it: jobs wait in a queue, a slice
// that the host leaves idle takes one, and the host takes its slice back when it wants to. The disciplines are the peers of sja and
// jasda in scenarios with a host; they see the same log of the host (package hostwork) and tell the same observer.
package filler

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/workload"
)

// Discipline is one way to fill gaps. The zero value leaves them empty.
type Discipline struct {
	Name string
	// Summary is one line for people, with its source.
	Summary string
	// Fits says which jobs may start in a gap.
	Fits Fit
	// Shortest: the job with the least planned time left goes first; otherwise the first to come.
	Shortest bool
	// Notices: a run that is told that its slice is wanted leaves a checkpoint, if there is time for it, and does so as late as it may.
	Notices bool
	// Every is how much work lies between two checkpoints that a run leaves on its way; 0: none. It is rounded up to units.
	Every time.Duration
	// Intervals: NAME:LENGTH is the same with Every of that length.
	Intervals bool
	// Workers: what runs on a slice for a gap is one process that takes job after job. It pays a job's Startup once, not for each.
	Workers bool
	// Minimum: where an end of the gap is known, a run's walltime is Least, whatever the gap would hold.
	Minimum bool
	// Pass is how often the host looks at gaps with a known end, from 0 on; 0: at once.
	Pass time.Duration
}

// Fit says which jobs may start in a gap, as far as its end is known.
type Fit uint8

// The ways to fit.
const (
	// Nothing starts.
	Nothing Fit = iota
	// Anything starts: the host's plan is not looked at. Where the slice is wanted already, only what can save something before it goes.
	Anything
	// Whole: what is planned to be done before the end that is known.
	Whole
	// Part: what can get at least Least before the end that is known. It runs up to that end, and leaves a checkpoint there.
	Part
)

// Disciplines lists them in the order in which they are shown.
func Disciplines() []Discipline {
	return []Discipline{
		{Name: "nothing", Summary: "gaps stay empty: the host alone"},
		{Name: "requeue", Fits: Anything, Summary: "low-priority preemption: what is preempted is killed and runs again from the start " +
			"(Kubernetes priorities, Slurm PreemptMode=REQUEUE)"},
		{
			Name: "checkpoint", Fits: Anything, Notices: true, Intervals: true,
			Summary: "the same with a checkpoint on notice; checkpoint:10m leaves one after every ten minutes of work too (Kubernetes " +
				"SIGTERM, Slurm GraceTime)",
		},
		{
			Name: "time-min", Fits: Part, Notices: true, Minimum: true, Pass: 30 * time.Second,
			Summary: "arrays with --time-min as Slurm runs them: before a known end the backfill pass, each 30 s, gives an element the " +
				"minimum and no more; a checkpoint at its end",
		},
		{
			Name: "deadline", Fits: Part, Notices: true,
			Summary: "a --deadline at the known end, which Slurm's main pass clips the limit to: the longest walltime from --time-min up " +
				"that ends before it, with a checkpoint there",
		},
		{Name: "sjf", Fits: Whole, Shortest: true, Summary: "backfill of whole jobs, the shortest first: what fits before the reservation"},
		{
			Name: "pilot", Fits: Anything, Every: 10 * time.Minute, Intervals: true,
			Summary: "a pilot holds the slice for the gap and runs tasks of ten minutes back to back; the one under way at the end is " +
				"lost (HTCondor glide-in); pilot:2m has tasks of two",
		},
		{
			Name: "workers", Fits: Anything, Every: time.Minute, Intervals: true, Workers: true,
			Summary: "a worker in a preemptible job pulls units of a minute from a queue and commits each at its end; the one under way " +
				"when it is killed is lost (TaskVine, HyperQueue, Celery); workers:10s has units of ten seconds",
		},
	}
}

// Named finds a discipline by a name such as requeue or checkpoint:10m. known is false where there is none of this name; an error
// says what is wrong with the rest of it.
func Named(name string) (d Discipline, known bool, err error) {
	base, length, has := strings.Cut(name, ":")
	for _, d := range Disciplines() {
		if d.Name != base {
			continue
		}
		if !has {
			return d, true, nil
		}
		every, err := quantity.ParseDuration(length)
		switch {
		case !d.Intervals:
			return d, true, fmt.Errorf("filler %s has no interval; write %s", name, base)
		case err != nil || every <= 0:
			return d, true, fmt.Errorf("filler %s: %q is no interval; write for example %s:10m", name, length, base)
		}
		d.Name, d.Every = name, every
		return d, true, nil
	}
	return Discipline{}, false, nil
}

// Options of a run. All but Notice, Least and Progress are needed.
type Options struct {
	Discipline Discipline
	// Host is who owns the slices, Notice how long before it takes one it preempts what runs there.
	Host   hostwork.Log
	Notice time.Duration
	// Classes of slices, and by slice which it is of.
	Classes []measure.Class
	ClassOf []uint8
	// Least is the shortest walltime that a job asks for (--time-min). Under a discipline with Minimum it has to hold the start and the
	// checkpoint too, as in Slurm; under others it is what lies between them.
	Least time.Duration

	Source workload.Source
	// Usable are the classes on which a job could run as a whole, as a set of bits.
	Usable   func(*workload.Job) uint64
	Observer measure.Observer
	Progress func(now quantity.Instant, live int)
}
