package bound

import (
	"errors"
	"fmt"

	"sluice.dev/sluice/internal/core/errkind"
)

// For bounds what a cluster of these classes can do with these jobs in the window. Zero options have their defaults. An
// error is of kind Invalid and lists what is wrong with the classes and the window.
func For(classes []Class, jobs []Job, w Window, o Options) (Result, error) {
	if err := check(classes, w); err != nil {
		return Result{}, err
	}
	m := NewMix(classes, w, o)
	for i := range jobs {
		m.Add(&jobs[i])
	}
	var r Result
	r.Area = m.area()
	r.LP = min(r.Area, m.lp(&r.Size))
	r.Completion = completion(classes, jobs)
	enumerated := "too large to enumerate"
	if small(classes, jobs) {
		r.Exact, r.Size.Subsets = exact(classes, jobs, w)
		enumerated = fmt.Sprintf("%d subsets of whole jobs enumerated", r.Size.Subsets)
	}
	r.How = fmt.Sprintf("linear program of %d types of work and %d buckets of %.0f s (speeds to %d/1000): %d variables, %d rows, %d pivots; %s",
		r.Size.Types, r.Size.Buckets, w.length()/float64(m.buckets), r.Size.Step, r.Size.Variables, r.Size.Rows, r.Size.Pivots, enumerated)
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
