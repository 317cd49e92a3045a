package market

import (
	"fmt"
	"iter"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// answers are what the waiting jobs say to a window, counted for people.
type answers struct {
	interested, short, unsafe, barred, busy int
	// sampled: a part of them was asked, and the counts are estimates.
	sampled bool
	// why nobody is asked, for people; written once, since many windows are alike.
	why string
}

// windowKey is what decides how jobs answer a window.
type windowKey struct {
	class  *Class
	length time.Duration
}

// mostHeard bounds how many answers of jobs one look at the windows hears; at least leastHeard jobs are asked about each. Where
// that is fewer than there are, a sample is asked, spread over all of them, and its answers stand for the others.
const mostHeard, leastHeard = 1 << 12, 64

// Look is one look at what is offered, for people: what jobs answer to windows of a kind is found once. It changes nothing.
type Look struct {
	f     *Floor
	now   quantity.Instant
	known map[windowKey]*answers
	// most of the jobs are asked about each kind of window.
	most int
}

// Look begins one.
func (f *Floor) Look(now quantity.Instant) *Look {
	l := &Look{f: f, now: now, known: map[windowKey]*answers{}}
	for _, s := range f.slices {
		for i := range s.windows {
			if w := &s.windows[i]; w.start <= now && w.end > now {
				l.known[windowKey{s.class, w.length(now)}] = nil
			}
		}
	}
	l.most = max(leastHeard, mostHeard/max(1, len(l.known)))
	return l
}

// Windows appends what is offered of a slice, in order of time, with what the jobs answer.
func (l *Look) Windows(s *Slice, out []status.Window) []status.Window {
	for i := range s.windows {
		w := &s.windows[i]
		v := status.Window{ID: w.id, Slice: s.Name(), Start: max(w.start, l.now), End: w.end, Until: w.until, State: "unanswered"}
		if w.end <= l.now {
			continue
		}
		if w.start > l.now {
			v.State, v.Start = "upcoming", w.start
			out = append(out, v)
			continue
		}
		key := windowKey{s.class, w.length(l.now)}
		a := l.known[key]
		if a == nil {
			heard := l.f.answersTo(l.now, s.class, w, l.most)
			heard.why = heard.reason()
			a, l.known[key] = &heard, &heard
		}
		v.Answers = a.interested
		switch {
		case w.won:
			v.State, v.Asked = "open", 1
			v.Answers++
		case !w.offered:
			v.State = "open"
		default:
			v.Reason = a.why
		}
		out = append(out, v)
	}
	return out
}

// answersTo asks the jobs without a verdict, or a sample of them that has no more than most, what they say to a window that has
// begun. It changes nothing: a job that changed since the market last heard it is asked anew.
func (f *Floor) answersTo(now quantity.Instant, c *Class, w *window, most int) (a answers) {
	length := w.length(now)
	for i := range sample(len(f.jobs), most) {
		j := f.jobs[i]
		why, heard := atomizer.Interested, j.indexed && !bool(j.stale)
		switch {
		case heard && j.ineligible != Eligible, !heard && j.Ineligible(now) != Eligible:
			a.busy++
			continue
		case !heard:
			_, r := f.Fit(j, c, now, w.end)
			why = r.Why
		case j.answers[c.at].need > length:
			why = j.answers[c.at].refusal.Why
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
	if len(f.jobs) > most {
		a.scale(len(f.jobs))
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
			if !yield(from + int(digest.Key("", int64(i))%uint64(to-from))) {
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
