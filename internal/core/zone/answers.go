package zone

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/quantity"
)

// answers are what the waiting jobs say to a window, counted for people.
type answers struct {
	interested, short, unsafe, barred, busy int
	// sampled: a part of them was asked, and the counts are estimates.
	sampled bool
}

// windowKey is what decides how jobs answer a window.
type windowKey struct {
	class  *class
	length time.Duration
}

// mostHeard bounds how many answers of jobs one look at the windows hears; at least leastHeard jobs are asked about each. Where
// that is fewer than there are, a sample is asked, spread over all of them, and its answers stand for the others.
const mostHeard, leastHeard = 1 << 13, 64

// answersTo asks the jobs without a verdict, or a sample of them that has no more than most, what they say to a window that has
// begun. It changes nothing: a job that changed since the market last heard it is asked anew.
func (z *Zone) answersTo(now quantity.Instant, c *class, w *window, most int) (a answers) {
	length := w.length(now)
	for i := range sample(len(z.live), most) {
		s := z.live[i]
		why, heard := atomizer.Interested, s.indexed && !s.touched
		switch {
		case heard && s.deaf != interested, !heard && z.deafness(now, s) != interested:
			a.busy++
			continue
		case !heard:
			_, r := z.fit(s, c, now, w.end)
			why = r.Why
		case s.answers[c.at].need > length:
			why = s.answers[c.at].refusal.Why
		}
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
	if len(z.live) > most {
		a.scale(len(z.live))
	}
	return a
}

// sample yields all of 0 to n-1, or no more than most of them that are spread evenly and without a rhythm: each from its own
// stretch of equal length, where in it follows from a hash.
func sample(n, most int) iter.Seq[int] {
	return func(yield func(int) bool) {
		k := min(n, most)
		for i := range k {
			from, to := i*n/k, (i+1)*n/k
			if !yield(from + int(digest.New().Int(int64(i)).Sum()%uint64(to-from))) {
				return
			}
		}
	}
}

// scale makes the answers of a sample stand for n jobs.
func (a *answers) scale(n int) {
	heard := a.interested + a.short + a.unsafe + a.barred + a.busy
	for _, part := range []*int{&a.interested, &a.short, &a.unsafe, &a.barred, &a.busy} {
		*part = int(quantity.MulDiv(int64(*part), int64(n), int64(heard)))
	}
	a.sampled = true
}

// reason says why nobody is asked for a window.
func (a *answers) reason() string {
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
