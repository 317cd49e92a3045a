package play

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/bound"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/scenario"
	"sluice.dev/sluice/internal/lab/workload"
)

// world is what all runs of a scenario with one seed share: the slices by class, and what is known of the whole workload
// before it is run.
type world struct {
	once sync.Once
	err  error

	layout
	// queues that jobs name, and typical tasks, most frequent first.
	queues  []string
	typical []planner.Typical

	jobs int64
	last quantity.Instant // arrival
	// seconds on the reference of all jobs over all their slices, of those that can't be cut, and of all jobs added up
	work, rigid, length float64
	rate                float64 // work per second that the cluster can do for this mix, in seconds of the reference
	most                float64 // useful work that no schedule can pass, in seconds; NaN if not known
	soonest             float64 // mean completion that no schedule betters, in seconds, of a number of jobs; NaN if not known
	completing          int
	generated           bool

	host  hostwork.Log  // what the host did; nil where there is none
	least time.Duration // that a filler spends on starting, restoring and leaving a checkpoint
}

// boundJobs is the largest workload whose upper bound is found.
const boundJobs = 2_000_000

// see finds it, once.
func (w *world) see(ctx context.Context, s *scenario.Scenario, m *Mechanism, seed uint64, data *Traces) (*world, error) {
	w.once.Do(func() { w.err = w.survey(ctx, s, m, seed, data) })
	return w, w.err
}

func (w *world) survey(ctx context.Context, s *scenario.Scenario, m *Mechanism, seed uint64, data *Traces) error {
	w.layout = layOut(s)
	w.most, w.soonest, w.generated = math.NaN(), math.NaN(), len(s.Workload.Streams) > 0
	from, err := offer(ctx, s, seed, data)
	if err != nil {
		return err
	}
	queues := map[string]bool{}
	kinds := map[planner.Task]int64{}
	j, specs, mix := workload.Job{}, judge{classes: w.classes}, bound.NewMix(w.classes, bound.Window{}, bound.Options{})
	for {
		more, failed := from.Next(&j)
		if failed != nil {
			return failed
		}
		if !more {
			break
		}
		if c := cost(&j); w.jobs == 0 || c < w.least {
			w.least = c
		}
		w.jobs++
		w.last = j.Submit
		if !queues[j.Queue] {
			queues[j.Queue] = true
			w.queues = append(w.queues, j.Queue)
		}
		work := j.Work.Seconds() * float64(j.Slices)
		w.work, w.length = w.work+work, w.length+j.Work.Seconds()
		if j.Kind == job.Rigid {
			w.rigid += work
		}
		spec, failed := specs.Spec(&j, "survey")
		if failed != nil {
			return failed
		}
		whole := specs.whole(spec)
		kinds[planner.Task{Devices: int32(j.Slices), Share: planner.Whole, Spread: j.Slices > 1, Classes: uint32(whole)}]++
		b := bound.Of(&j, spec, w.classes)
		mix.Add(&b)
	}
	w.rate = mix.Rate()
	slices.Sort(w.queues)
	for t, n := range kinds {
		w.typical = append(w.typical, planner.Typical{Task: t, Count: n})
	}
	slices.SortFunc(w.typical, func(a, b planner.Typical) int {
		switch {
		case a.Count != b.Count:
			return int(b.Count - a.Count)
		case a.Task.Devices != b.Task.Devices:
			return int(a.Task.Devices - b.Task.Devices)
		}
		return int(int64(a.Task.Classes) - int64(b.Task.Classes))
	})
	if s.Host != nil {
		w.host, err = hostLog(ctx, s, &w.layout, seed, data, m.Host)
		return err // what nobody can pass is what the host leaves
	}
	return w.bind(ctx, s, seed, data)
}

// bind finds the bounds, where the window of the figures is known before a run.
func (w *world) bind(ctx context.Context, s *scenario.Scenario, seed uint64, data *Traces) error {
	window := w.window(s)
	if window.To <= window.From || w.jobs > boundJobs || len(s.Reservations) > 0 || s.Pools != nil {
		return nil
	}
	from, err := offer(ctx, s, seed, data)
	if err != nil {
		return err
	}
	bounds, err := bound.New(w.classes, bound.Window{From: window.From, To: window.To}, bound.Options{})
	if err != nil {
		return errkind.Errorf(errkind.Of(err), "the upper bound: %w", err)
	}
	j, specs := workload.Job{}, judge{classes: w.classes}
	for {
		more, failed := from.Next(&j)
		if failed != nil {
			return failed
		}
		if !more || j.Submit >= window.To {
			break
		}
		spec, failed := specs.Spec(&j, "survey")
		if failed != nil {
			return failed
		}
		b := bound.Of(&j, spec, w.classes)
		b.Whole = false // what lies in the window counts as useful work, also of a block that ends after it
		bounds.Add(&b)
	}
	r, err := bounds.Result()
	if err != nil {
		return errkind.Errorf(errkind.Of(err), "the upper bound: %w", err)
	}
	w.most, w.soonest, w.completing = r.Best(), r.Completion, r.Completing
	return nil
}

// share is a useful work in seconds as a share of what is possible; NaN where that is not known.
func (w *world) share(useful float64) float64 {
	if w.most <= 0 {
		return math.NaN()
	}
	return useful / w.most
}

// strays is how many in a thousand of the jobs that the bound is of may be missing in a mean that is held against it.
const strays = 1

// times is a mean completion as a multiple of what no schedule betters; NaN where that is not known, or is of other jobs: where
// more than a few were turned away, failed, or were not ended.
func (w *world) times(m measure.Metrics) float64 {
	ended := m.Get(measure.Jobs) - m.Get(measure.Rejected) - m.Get(measure.Failed) - m.Get(measure.Unfinished)
	if w.soonest <= 0 || 1000*math.Abs(ended-float64(w.completing)) > strays*float64(w.completing) {
		return math.NaN()
	}
	return m.Get(measure.CompletionMean) / w.soonest
}

// window is what the figures are about: from the end of the warm-up to the last moment at which jobs may arrive, or where
// none is given to the last arrival; where all jobs are written out, to the end of the run.
func (w *world) window(s *scenario.Scenario) measure.Window {
	switch {
	case s.Window.Until != quantity.Never:
		return measure.Window{From: s.Window.Warmup, To: s.Window.Until}
	case w.generated && w.last > s.Window.Warmup:
		return measure.Window{From: s.Window.Warmup, To: w.last}
	}
	return measure.Window{From: s.Window.Warmup}
}

// newLeftover is the observer of the use of the host's gaps.
func newLeftover(s *scenario.Scenario, w *world) *measure.Leftover {
	var weights []int64
	for i := range s.Nodes {
		for j := range s.Nodes[i].Slices {
			weights = append(weights, w.classes[w.machines.Nodes[i].Devices[j]].Speed)
		}
	}
	window := w.window(s)
	return measure.NewLeftover(window, weights, w.host.Gaps(window.From, window.To), w.host.Starts(), w.least)
}

// cost is the least that one of the fillers spends on starting, restoring and leaving a checkpoint.
func cost(j *workload.Job) time.Duration { return j.Start() + j.Restore + j.Checkpoint }
