package compose

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/trace/swf"
	"sluice.dev/sluice/internal/lab/workload"
	"sluice.dev/sluice/internal/lab/workload/synthetic"
)

// Trace says how the records of one file become arrivals: jobs as they are, requests to a model as one job each, and the states of a
// cluster as the jobs by which its numbers grew. What the file lacks is filled in from here.
type Trace struct {
	Format trace.Format
	// File below the folder of the data, or from the root.
	File string
	// RunTime of records without one in the file.
	RunTime RunTime
	// GPUs of records that do not say how many they hold; this many processors of the file are a GPU. At least 1 each.
	GPUs, PerGPU int
	// Memory is the peak on every slice of every job, 0 where programs have their own. FromFile takes the file's, which is
	// that of the host in all formats, shared among the job's GPUs, where it gives one.
	Memory   quantity.Amount
	FromFile bool
	// Walltimes of rigid jobs are what their owners requested, where the file says it. (A request bounds a block; it says
	// nothing of how long a step takes.)
	Walltimes bool
	// Resample draws stretches of the file for every seed but 0. Otherwise every seed has it as published.
	Resample bool
}

// RunTime is the run time of what has none in its file. The zero value leaves it out.
type RunTime struct {
	// Requested: as long as its owner asked for, where that is known.
	Requested bool
	// Prompt and Output are the time for each token of a request.
	Prompt, Output time.Duration
	// Drawn anew under every seed.
	Drawn synthetic.Duration
}

// HoldsArrivals says whether files of a format can be arrivals.
func HoldsArrivals(f trace.Format) bool {
	return slices.ContainsFunc(f.Kinds, func(k trace.Kind) bool { return k == trace.Job || k == trace.Request || k == trace.State })
}

// Log is a file as arrivals. It is safe for concurrent use.
type Log struct {
	of      Trace
	entries []entry
	counts  []Count
}

// Read reads the file. Errors are those of package trace, or of kind Invalid for a file that has no arrival, or whose memory
// is asked for and in no known unit.
func (t Trace) Read(dir string) (*Log, error) {
	path := filepath.FromSlash(t.File)
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	b := &builder{of: t}
	treated, err := trace.Read(t.Format, path, func(r *trace.Record) error { b.add(r); return nil })
	if err != nil {
		return nil, fmt.Errorf("arrivals: %w", err)
	}
	counts := []Count{{t.File + " (" + t.Format.Name + "): records", b.records}}
	for _, x := range treated {
		if t.FromFile && x.Name == swf.MemoryInBytes {
			return nil, errkind.Errorf(errkind.Invalid,
				"%s:%d: %d values of memory can only be bytes, so that the others may be too; read the file as swf-bytes, or take the "+
					"memory of programs", path, x.First, x.Count)
		}
		counts = append(counts, Count{fmt.Sprintf("%s (first in line %d)", x.Name, x.First), x.Count})
	}
	slices.SortStableFunc(b.arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	for _, c := range b.counts {
		if c.Many > 0 {
			counts = append(counts, *c)
		}
	}
	if len(b.arrivals) == 0 {
		var seen []error
		for _, c := range counts {
			seen = append(seen, errors.New(c.String()))
		}
		return nil, errkind.Errorf(errkind.Invalid, "%s: no record became a job; durations, gpus and so on say what is taken for what a "+
			"file lacks:\n%w", path, errors.Join(seen...))
	}
	return &Log{t, gaps(b.arrivals), counts}, nil
}

// Arrivals of a seed.
func (l *Log) Arrivals(seed uint64) workload.Arrivals {
	s := &stretches{log: l.entries, run: l.of.RunTime.Drawn, draws: seed}
	if l.of.Resample {
		s.seed = seed
	}
	return s
}

// With are the inputs with the arrivals of a log.
func (in Inputs) With(l *Log) Inputs {
	in.Arrivals, in.Ends = l.Arrivals, func(seed uint64) bool { return !l.of.Resample || seed == 0 }
	in.About = append(l.about(), in.About...)
	in.Counts = l.counts
	return in
}

// about says what is taken for what the file lacks.
func (l *Log) about() []string {
	t := &l.of
	text := fmt.Sprintf("Arrivals are those of %s (%s)", t.File, t.Format.Doc)
	if t.Resample {
		text += fmt.Sprintf(": seed 0 has them as published, others draw stretches of %d of them with equal chance", blockJobs)
	} else {
		text += ", as published, under every seed"
	}
	list := []string{text + "."}
	var lacks []string
	say := func(format string, args ...any) { lacks = append(lacks, fmt.Sprintf(format, args...)) }
	switch r := t.RunTime; {
	case r.Drawn != nil:
		say("a run time that the file does not give is drawn")
	case r.Prompt+r.Output > 0:
		say("a request runs %s for each token of its prompt and %s for each that it generates", r.Prompt, r.Output)
	case r.Requested:
		say("a job without a run time runs as long as its owner asked for")
	default:
		say("what has no run time is left out")
	}
	say("what does not say holds %d of the file's processors", t.GPUs)
	say("%d of these are a GPU", t.PerGPU)
	switch {
	case t.FromFile:
		say("the memory of the host is taken for that of the slice, equally shared among a job's slices, and programs' where there is none")
	case t.Memory > 0:
		say("every job has a peak of %d MiB on each of its slices", t.Memory>>20)
	default:
		say("memory is that of the programs")
	}
	if t.Walltimes {
		say("the walltime of a rigid job is what its owner requested where the file says it")
	}
	if slices.Contains(t.Format.Kinds, trace.State) {
		say("a cluster's states give the jobs by which the numbers of its jobs with GPUs grow from one to the next, so that what begins " +
			"and ends between two is not seen, and what is there in the first is left out")
	}
	return append(list, "Of that file: "+strings.Join(lacks, "; ")+".")
}

// builder makes arrivals of records, and counts what was done to them.
type builder struct {
	of       Trace
	records  int64
	arrivals []arrival
	counts   []*Count
	last     time.Duration
	state    *trace.StateRecord
}

// count finds the count of what; all are made in the order in which they are first met.
func (b *builder) count(what string, more int64) {
	for _, c := range b.counts {
		if c.What == what {
			c.Many += more
			return
		}
	}
	b.counts = append(b.counts, &Count{what, more})
}

func (b *builder) add(r *trace.Record) {
	switch r.Kind {
	case trace.Job:
		b.records++
		b.job(r.At, &r.Job)
	case trace.Request:
		b.records++
		run := time.Duration(0)
		if p := b.of.RunTime; p.Prompt+p.Output > 0 {
			run = tokens(r.Request.Input, p.Prompt) + tokens(r.Request.Output, p.Output)
		}
		j := trace.UnknownJob()
		if run > 0 {
			j.Duration = run
		}
		b.job(r.At, &j)
	case trace.State:
		b.records++
		b.grown(r.At, &r.State)
	default: // a header, a machine or a sample is no arrival
	}
}

func tokens(n int64, each time.Duration) time.Duration {
	return time.Duration(min(float64(n)*float64(each), float64(longest)))
}

func (b *builder) job(at time.Duration, j *trace.JobRecord) {
	t := &b.of
	e := entry{duration: j.Duration, gpus: t.GPUs, queue: cmp.Or(j.Queue, "default")}
	if at == trace.Unknown {
		b.count("without a time of submission: left out", 1)
		return
	}
	switch {
	case j.GPUs == 0:
		b.count("without a GPU: left out", 1)
		return
	case j.GPUs > 0:
		e.gpus = int(min((j.GPUs+int64(t.PerGPU)-1)/int64(t.PerGPU), math.MaxInt32))
	default:
		b.count(fmt.Sprintf("without a number of GPUs: taken as %d", t.GPUs), 1)
		e.gpus = (t.GPUs + t.PerGPU - 1) / t.PerGPU
	}
	if j.Milli > 0 && j.Milli < 1000 {
		b.count("with a share of a GPU: hold a whole slice", 1)
	}
	if e.duration <= 0 {
		how := "without a run time"
		if e.duration == 0 {
			how = "with a run time of 0"
		}
		switch {
		case t.RunTime.Requested && j.Requested > 0:
			e.duration = j.Requested
			b.count(how+": run as long as requested", 1)
		case t.RunTime.Drawn != nil:
			e.duration = 0
			b.count(how+": drawn", 1)
		default:
			b.count(how+": left out", 1)
			return
		}
	}
	if t.Walltimes && j.Requested > 0 {
		e.walltime = j.Requested
		if j.Requested < e.duration {
			b.count("ran longer than requested: a rigid one's walltime is its run time", 1)
		}
	}
	e.memory = t.Memory
	if t.FromFile {
		const mib = 1 << 20
		if e.memory = quantity.Amount(quantity.MulDiv(max(0, j.Memory), mib, int64(e.gpus))); e.memory == 0 {
			b.count("without memory: the program's", 1)
		}
	}
	if at < b.last {
		b.count("out of the order of submission: put in order", 1)
	}
	b.last = max(b.last, at)
	b.arrivals = append(b.arrivals, arrival{at, e})
}

// grown makes jobs of what a cluster has more than in the state before, large and small ones apart.
func (b *builder) grown(at time.Duration, now *trace.StateRecord) {
	kept := *now
	before := b.state
	b.state = &kept
	if before == nil {
		if n := now.Large.RunningJobs + now.Large.PendingJobs + now.Small.RunningJobs + now.Small.PendingJobs; n > 0 {
			b.count("jobs there in the first state: left out", n)
		}
		return
	}
	for _, x := range [...]struct {
		now, before trace.Load
		least       int64
	}{{now.Large, before.Large, 8}, {now.Small, before.Small, 1}} {
		jobs := x.now.RunningJobs + x.now.PendingJobs - x.before.RunningJobs - x.before.PendingJobs
		gpus := x.now.RunningGPUs + x.now.PendingGPUs - x.before.RunningGPUs - x.before.PendingGPUs
		for i := range jobs {
			j := trace.UnknownJob()
			j.Queue = now.Cluster
			j.GPUs = max(x.least, (gpus+i)/jobs) // the parts add up to the whole
			b.count("jobs by which the states grew", 1)
			b.job(at, &j)
		}
	}
}
