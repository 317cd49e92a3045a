package explain

import (
	"fmt"
	"iter"
	"strings"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/quantity"
)

// Answered counts what waiting jobs say to a window. Invariant: each job that was asked is counted once, and after Scale the parts stand
// for as many jobs as there are.
type Answered struct {
	interested, short, unsafe, barred, busy int
	// sampled: a part of them was asked, and the counts are estimates.
	sampled bool
}

// Add counts one answer.
func (a *Answered) Add(why atomizer.Why) {
	switch why {
	case atomizer.Interested:
		a.interested++
	case atomizer.Unsafe:
		a.unsafe++
	case atomizer.TooShort, atomizer.NotForever:
		a.short++
	case atomizer.Barred:
		a.barred++
	default:
		a.busy++
	}
}

// AddBusy counts a job that is sold nothing now, whatever the window.
func (a *Answered) AddBusy() { a.busy++ }

// Interested is how many could use it.
func (a *Answered) Interested() int { return a.interested }

// Scale makes the answers of a sample stand for n jobs.
func (a *Answered) Scale(n int) {
	heard := a.interested + a.short + a.unsafe + a.barred + a.busy
	for _, part := range []*int{&a.interested, &a.short, &a.unsafe, &a.barred, &a.busy} {
		*part = int(quantity.MulDiv(int64(*part), int64(n), int64(heard)))
	}
	a.sampled = true
}

// Reason says why nobody is asked for the window.
func (a *Answered) Reason() string {
	if a.short+a.unsafe+a.barred+a.busy == 0 {
		return "no job is waiting"
	}
	var parts []string
	about := ""
	if a.sampled {
		about = "about "
	}
	for _, p := range []struct {
		n    int
		text string
	}{{a.short, "too short"}, {a.unsafe, "too small"}, {a.barred, "of the wrong kind"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%s for %s%d jobs", p.text, about, p.n))
		}
	}
	if a.busy > 0 {
		parts = append(parts, fmt.Sprintf("%s%d jobs run at their limit or pause", about, a.busy))
	}
	return strings.Join(parts, ", ")
}

// Sample yields all of 0 to n-1, or no more than most of them that are spread evenly and without a rhythm: each from its own
// stretch of equal length, where in it follows from a hash.
func Sample(n, most int) iter.Seq[int] {
	return func(yield func(int) bool) {
		k := min(n, most)
		for i := range k {
			from, to := i*n/k, (i+1)*n/k
			if !yield(from + int(digest.Key("", int64(i))%uint64(to-from))) {
				return
			}
		}
	}
}
