package market

import (
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// windowKey is what decides how jobs answer a window.
type windowKey struct {
	class  *window.Class
	length time.Duration
}

// mostHeard bounds the jobs' answers in one look at the windows; at least leastHeard jobs are asked about each. If there are more jobs, a
// sample is asked, spread over all of them, and its answers are scaled up.
const mostHeard, leastHeard = 1 << 12, 64

// Look is one look at what is offered, for people: what jobs answer to windows of a kind is found once. It changes nothing.
type Look struct {
	f     *Floor
	now   quantity.Instant
	known map[windowKey]*answered
	// most of the jobs are asked about each kind of window.
	most int
}

// answered are the answers to windows of a kind, with their texts for people, written once.
type answered struct {
	explain.Answered
	why string
}

// Look begins one.
func (f *Floor) Look(now quantity.Instant) *Look {
	l := &Look{f: f, now: now, known: map[windowKey]*answered{}}
	for _, s := range f.board.Slices() {
		for i := range s.Windows() {
			if w := &s.Windows()[i]; w.Start() <= now && w.End() > now {
				l.known[windowKey{s.Class(), w.Length(now)}] = nil
			}
		}
	}
	l.most = max(leastHeard, mostHeard/max(1, len(l.known)))
	return l
}

// Windows appends what is offered of a slice, in order of time, with what the jobs answer.
func (l *Look) Windows(s *window.Slice, out []status.Window) []status.Window {
	for i := range s.Windows() {
		w := &s.Windows()[i]
		v := status.Window{ID: w.ID(), Slice: s.Name(), Start: max(w.Start(), l.now), End: w.End(), Until: w.Until(), State: "unanswered"}
		if w.End() <= l.now {
			continue
		}
		if w.Start() > l.now {
			v.State, v.Start = "upcoming", w.Start()
			out = append(out, v)
			continue
		}
		key := windowKey{s.Class(), w.Length(l.now)}
		a := l.known[key]
		if a == nil {
			heard := l.f.answersTo(l.now, s.Class(), w, l.most)
			a = &answered{heard, heard.Reason()}
			l.known[key] = a
		}
		v.Answers = a.Interested()
		switch {
		case w.Won():
			v.State, v.Asked = "open", 1
			v.Answers++
		case !w.Offered():
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
func (f *Floor) answersTo(now quantity.Instant, c *window.Class, w *window.Window, most int) (a explain.Answered) {
	length := w.Length(now)
	for i := range explain.Sample(len(f.index.Jobs()), most) {
		j := f.index.Jobs()[i]
		why, heard := atomizer.Interested, j.Entry().Indexed() && !j.Stale()
		switch {
		case heard && j.Entry().Eligibility() != explain.Eligible, !heard && j.Ineligible(now) != explain.Eligible:
			a.AddBusy()
			continue
		case !heard:
			_, r := f.est.Fit(j, c, now, w.End())
			why = r.Why
		case j.Entry().Need(c.At()) > length:
			why = j.Entry().Refusal(c.At()).Why
		}
		a.Add(why)
	}
	if len(f.index.Jobs()) > most {
		a.Scale(len(f.index.Jobs()))
	}
	return a
}
