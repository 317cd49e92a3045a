package compose

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/bound"
	"sluice.dev/sluice/internal/lab/workload"
)

// Summary says what a workload is.
type Summary struct {
	// Jobs of it, and those of its stretch of the log that were left out: with several GPUs, and with no place to fit.
	Jobs, Multi, Unfit int64
	// Work of all in seconds of the reference GPU, over all slices.
	Work float64
	// Span of the submissions, with one mean gap after the last.
	Span time.Duration
	// Capacity of the cluster for this mix, in GPU-seconds of the reference per second: bound.Mix.Rate.
	Capacity float64
	// Load is Work over Capacity times Span.
	Load float64
	// Stretch is what the log's times were multiplied by.
	Stretch float64
}

// Source is a composed workload. It keeps nothing of the jobs it gave. It implements workload.Source.
type Source struct {
	c       *composer
	summary Summary
	limit   int64
	run     run
	number  int64
}

// New composes a workload. It reads the arrivals once or a few times to find the load and once more as jobs are asked for. An
// error is of kind Invalid and lists every problem of the options, or is that of the arrivals.
func New(in Inputs, o Options) (*Source, error) {
	o = o.filled()
	if err := check(in, o); err != nil {
		return nil, err
	}
	s := &Source{c: newComposer(in, o), limit: math.MaxInt64}
	s.summary.Stretch = 1
	measured, err := s.measure()
	if err != nil {
		return nil, err
	}
	s.summary = measured
	s.limit = measured.Jobs
	s.run = s.start()
	return s, nil
}

// Summary of the whole workload.
func (s *Source) Summary() Summary { return s.summary }

// Next gives the next job.
func (s *Source) Next(j *workload.Job) (bool, error) {
	if s.number == s.limit {
		return false, nil
	}
	ok, err := s.run.next(j)
	if !ok || err != nil {
		return false, err
	}
	j.Number = s.number
	j.Submit = stretched(j.Submit, s.summary.Stretch)
	if s.run.due > 0 {
		j.Deadline = j.Submit.Add(s.run.due)
	}
	s.number++
	return true, nil
}

func stretched(t quantity.Instant, by float64) quantity.Instant {
	return quantity.Instant(float64(t) * by)
}

// run is one pass over the arrivals. Submissions are those of the log since the first job that is taken.
type run struct {
	c            *composer
	in           workload.Arrivals
	a            workload.Arrival
	copies, copy int
	begun        bool
	first        quantity.Instant
	multi, unfit int64
	// offered is the last job for the reckoning of capacity.
	offered bound.Job
	// due is how long after its submission its deadline is, 0 without one.
	due time.Duration
}

func (s *Source) start() run { return run{c: s.c, in: s.c.in.Arrivals(s.c.o.Seed)} }

func (r *run) next(j *workload.Job) (bool, error) {
	for {
		if r.copy == r.copies {
			ok, err := r.in.Next(&r.a)
			if !ok || err != nil {
				return false, err
			}
			r.copy, r.copies = 0, 1
			if r.a.GPUs > 1 {
				switch r.c.o.Multi {
				case Drop:
					r.multi++
					r.copies = 0
					continue
				case Split:
					r.copies = r.a.GPUs
				case Gang:
				}
			}
		}
		j.Submit = r.a.Submit
		r.c.job(&r.a, uint64(r.copy), j)
		r.due = r.c.due(&r.a, uint64(r.copy), j)
		r.copy++
		fits := false
		if r.offered, fits = r.c.offered(j); !fits {
			r.unfit++
			continue
		}
		if !r.begun {
			r.begun, r.first = true, r.a.Submit
		}
		j.Submit -= r.first
		return true, nil
	}
}

// rounds of looking for the number of jobs that makes up a load in a window: the capacity depends on the jobs a little.
const rounds = 8

// measure finds which jobs of the stretch make up the workload, and how its times are stretched.
func (s *Source) measure() (Summary, error) {
	o := &s.c.o
	if o.Load == 0 || o.Window == 0 {
		m, err := s.pass(func(m *Summary, j *workload.Job) bool {
			return (o.Jobs == 0 || m.Jobs < o.Jobs) && (o.Window == 0 || j.Submit < quantity.Instant(o.Window))
		})
		if err == nil && o.Load > 0 {
			m.Stretch = m.Work / (o.Load * m.Capacity * m.Span.Seconds())
			m.Span = time.Duration(float64(m.Span) * m.Stretch)
		}
		if o.Window > 0 {
			m.Span = o.Window
		}
		return m.finished(), err
	}
	const sample = 2000 // jobs, for a first guess of the capacity
	m, err := s.pass(func(m *Summary, _ *workload.Job) bool { return m.Jobs < sample })
	for range rounds {
		if err != nil {
			return m, err
		}
		want, last := o.Load*m.Capacity*o.Window.Seconds(), m.Jobs
		// The last job is taken if that comes nearer to what is wanted.
		enough := false
		if m, err = s.pass(func(m *Summary, j *workload.Job) bool {
			enough = m.Jobs > 0 && m.Work+workOf(j)/2 > want
			return !enough
		}); err != nil {
			return m, err
		}
		if !enough {
			return m, errkind.Errorf(errkind.Invalid, "the log ends after %d jobs with %.3g GPU-seconds of work, and load %g in %s "+
				"takes %.3g; give a shorter window, a lower load, or a seed above 0, which draws from the log without end",
				m.Jobs, m.Work, o.Load, o.Window, want)
		}
		if m.Jobs == last {
			break
		}
	}
	m.Stretch = o.Window.Seconds() / m.Span.Seconds()
	m.Span = o.Window
	return m.finished(), nil
}

// finished fills in the load.
func (m Summary) finished() Summary {
	if m.Capacity > 0 && m.Span > 0 {
		m.Load = m.Work / (m.Capacity * m.Span.Seconds())
	}
	return m
}

// pass sums up the jobs as long as more says so.
func (s *Source) pass(more func(*Summary, *workload.Job) bool) (Summary, error) {
	m := Summary{Stretch: 1}
	mix := bound.NewMix(s.c.classes, bound.Window{}, bound.Options{})
	r := s.start()
	var j workload.Job
	var last quantity.Instant
	for {
		ok, err := r.next(&j)
		if err != nil {
			return m, err
		}
		if !ok { // also those behind its last job are of the stretch
			m.Multi, m.Unfit = r.multi, r.unfit
			break
		}
		if !more(&m, &j) {
			break
		}
		m.Jobs++
		m.Work += workOf(&j)
		m.Multi, m.Unfit = r.multi, r.unfit
		last = j.Submit
		mix.Add(&r.offered)
	}
	if m.Jobs == 0 {
		return m, errkind.Errorf(errkind.Invalid, "the workload has no job: of its stretch of the log %d have several GPUs and %d fit "+
			"no slice; give larger slices, a longer window, or another way with several GPUs", r.multi, r.unfit)
	}
	m.Span = time.Duration(last)
	if m.Jobs > 1 {
		m.Span += time.Duration(int64(last) / (m.Jobs - 1))
	}
	m.Span = max(m.Span, time.Second)
	m.Capacity = mix.Rate()
	return m, nil
}

// workOf is the work of a job over all its slices, in seconds.
func workOf(j *workload.Job) float64 { return j.Work.Seconds() * float64(j.Slices) }

// mostJobs and longestWindow bound what is asked for.
const (
	mostJobs      = 1_000_000_000
	longestWindow = 20 * 365 * 24 * time.Hour
)

func check(in Inputs, o Options) error {
	var list []error
	want := func(ok bool, format string, args ...any) {
		if !ok {
			list = append(list, fmt.Errorf(format, args...))
		}
	}
	want(in.Arrivals != nil && len(in.Programs) > 0 && len(in.Shapes) > 0, "inputs: arrivals, %d programs, %d shapes; want all three",
		len(in.Programs), len(in.Shapes))
	want(len(o.Classes) > 0 && len(o.Classes) <= bound.MaxClasses, "%d classes of slices; want 1 to %d", len(o.Classes), bound.MaxClasses)
	for _, c := range o.Classes {
		want(slices.Contains([]int{0, 1, 2, 3, 4, workload.Computes - 1}, c.Compute),
			"class %s: %d compute slices; want 1, 2, 3, 4 or 7, or 0 where all jobs run at the class's speed", c.Name, c.Compute)
		want(c.Count > 0, "class %s: %d slices; want at least 1", c.Name, c.Count)
		want(c.Compute > 0 || c.Speed > 0, "class %s: speed %d; want one above 0, or compute slices", c.Name, c.Speed)
	}
	want(o.Jobs >= 0 && o.Jobs <= mostJobs, "jobs: %d; want 1 to %d", o.Jobs, mostJobs)
	want(o.Window >= 0 && o.Window <= longestWindow, "window: %s; want up to 20 years", o.Window)
	want(o.Jobs == 0 || o.Window == 0, "jobs and window: give one of them")
	want(o.Jobs > 0 || o.Window > 0 || in.Ends != nil && in.Ends(o.Seed),
		"jobs or window: one is needed, for arrivals that are drawn have no end")
	want(o.Load >= 0 && o.Load <= 100, "load: %g; want above 0 to 100, or 0 for the times of the log", o.Load)
	want(o.Atomizable >= 0 && o.Atomizable <= 1, "atomizable: %g; want 0 to 1", o.Atomizable)
	want(o.Multi <= Gang, "multi: %d; want drop, split or gang", o.Multi)
	want(o.Grain >= time.Millisecond, "grain: %s; want at least 1ms", o.Grain)
	want(o.Cap >= 0 && o.Restore >= 0 && o.Checkpoint >= 0 && o.Startup >= 0 && o.Saves >= 0,
		"cap, restore, checkpoint, startup and saves: want none below 0")
	want(o.Noise >= 0 && o.Noise <= 500, "noise: %d thousandths; want 0 to 500", o.Noise)
	if d := o.Deadlines; d != (Deadlines{}) {
		want(d.Share >= 0 && d.Share <= 1 && d.Least > 0 && d.Most >= d.Least && d.Most <= 1e6,
			"deadlines: %+v; want a share from 0 to 1 and a slack above 0, no more than 1,000,000, and the most no less than the least", d)
	}
	for i, e := range [...]Error{o.TimeError, o.MemoryError} {
		want(math.Abs(e.Bias) <= 5 && e.Sigma >= 0 && e.Sigma <= 5, "%s error: %+v; want a bias from -5 to 5 and a sigma from 0 to 5",
			[...]string{"time", "memory"}[i], e)
	}
	if len(list) == 0 {
		return nil
	}
	return &errkind.Error{Kind: errkind.Invalid, Err: fmt.Errorf("workload: %w", errors.Join(list...))}
}
