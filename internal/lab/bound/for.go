package bound

import (
	"errors"
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
)

// Bounds takes jobs one by one and bounds what can be done with them. It keeps work by type and bucket, a handful of jobs,
// and what one fast machine would not have finished: not the jobs.
type Bounds struct {
	classes    []Class
	window     Window
	mix        *Mix
	few        []Job // as long as they could be enumerated
	many       bool
	last       quantity.Instant
	disorder   bool
	completion completion
}

// New begins. Zero options have their defaults. An error is of kind Invalid and lists what is wrong with the classes and
// the window.
func New(classes []Class, w Window, o Options) (*Bounds, error) {
	if err := check(classes, w); err != nil {
		return nil, err
	}
	slices := 0
	for _, c := range classes {
		slices += c.Count
	}
	return &Bounds{
		classes: classes, window: w, mix: NewMix(classes, w, o), many: slices > exactSlices,
		completion: completion{classes: classes},
	}, nil
}

// Add a job. Jobs are added in the order of their submission. It keeps nothing of j but, of the first ones, its Parts.
func (b *Bounds) Add(j *Job) {
	b.disorder = b.disorder || j.Submit < b.last
	b.last = max(b.last, j.Submit)
	b.mix.Add(j)
	if b.window.holds(j) {
		b.completion.add(j)
	}
	switch {
	case b.many:
	case len(b.few) == exactJobs:
		b.few, b.many = nil, true
	default:
		b.few = append(b.few, *j)
	}
}

// Result bounds what was added, after which nothing can be. An error is of kind Invalid: the jobs were out of order.
func (b *Bounds) Result() (Result, error) {
	if b.disorder {
		return Result{}, errkind.Errorf(errkind.Invalid, "upper bound: jobs were added out of the order of their submission; sort them")
	}
	var r Result
	r.Area = b.mix.area()
	r.LP = min(r.Area, b.mix.lp(&r.Size))
	r.Completion, r.Completing = b.completion.mean(), b.completion.jobs
	enumerated := "too large to enumerate"
	if !b.many {
		r.Exact, r.Size.Subsets = exact(b.classes, b.few, b.window)
		enumerated = fmt.Sprintf("%d subsets of whole jobs enumerated", r.Size.Subsets)
		counted := slices.DeleteFunc(b.few, func(j Job) bool { return !b.window.holds(&j) })
		if sum, ok := unbroken(b.classes, counted); ok {
			r.Completion = max(r.Completion, sum/float64(len(counted)))
			enumerated += ", and all orders for the least mean completion"
		}
	}
	r.How = fmt.Sprintf("linear program of %d types of work and %d buckets of %.0f s (speeds to %d/1000): %d variables, %d rows, %d "+
		"pivots; %s",
		r.Size.Types, r.Size.Buckets, b.window.length()/float64(b.mix.buckets), r.Size.Step, r.Size.Variables, r.Size.Rows, r.Size.Pivots,
		enumerated)
	return r, nil
}

func check(classes []Class, w Window) error {
	var list []error
	if n := len(classes); n < 1 || n > MaxClasses {
		list = append(list, fmt.Errorf("%d classes of slices; want 1 to %d", n, MaxClasses))
	}
	for i, c := range classes {
		if c.Count < 0 {
			list = append(list, fmt.Errorf("class %d (%s): %d slices; want none below 0", i, c.Name, c.Count))
		}
	}
	if w.To <= w.From {
		list = append(list, fmt.Errorf("the window ends at %d ns, not after its start at %d ns", w.To, w.From))
	}
	if len(list) == 0 {
		return nil
	}
	return &errkind.Error{Kind: errkind.Invalid, Err: fmt.Errorf("upper bound: %w", errors.Join(list...))}
}
