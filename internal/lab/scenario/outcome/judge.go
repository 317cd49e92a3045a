package outcome

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Finding is how one expectation came out.
type Finding struct {
	Text string
	OK   bool
	// Seen says what was found instead, or why it could not be judged.
	Seen string
	// Open: it could not be judged, because a mechanism that it names did not run or a run was not ended.
	Open bool
}

// Judge holds results against what is expected of them. first is the mechanism that lines are about which name
// none.
func Judge(expected []Expectation, first string, results []Result) []Finding {
	out := make([]Finding, 0, len(expected))
	for _, e := range expected {
		f := Finding{Text: e.Text, OK: true}
		switch t := e.test.(type) {
		case compare:
			f.compare(t, first, results)
		case sound:
			f.each(results, func(r *Result) (bool, string) { return len(r.Broken) == 0, fmt.Sprint(r.Broken) })
		case order:
			f.first(first, results, func(r *Result) (bool, string) { return t.judge(r) })
		case pieces:
			f.first(first, results, func(r *Result) (bool, string) {
				n := r.Fates[t.job].Pieces
				return holds(float64(n), t.op, float64(t.n)), fmt.Sprintf("%d pieces", n)
			})
		case state:
			f.first(first, results, func(r *Result) (bool, string) {
				got := r.Fates[t.job].State
				want := job.Failed
				if t.finishes {
					want = job.Finished
				}
				return got == want, "it is " + got.String()
			})
		}
		out = append(out, f)
	}
	return out
}

// each judges every result that is whole.
func (f *Finding) each(results []Result, judge func(*Result) (bool, string)) {
	f.first("", results, judge)
}

// first judges the whole results of a mechanism, "" for all.
func (f *Finding) first(mechanism string, results []Result, judge func(*Result) (bool, string)) {
	judged := 0
	for i := range results {
		r := &results[i]
		if mechanism != "" && r.Mechanism != mechanism || r.Partial {
			continue
		}
		judged++
		if ok, seen := judge(r); !ok && f.OK {
			f.OK, f.Seen = false, fmt.Sprintf("%s, seed %d: %s", r.Mechanism, r.Seed, seen)
		}
	}
	if judged == 0 {
		f.Open, f.Seen = true, "no finished run"
		if mechanism != "" {
			f.Seen += " of " + mechanism
		}
	}
}

func (f *Finding) compare(c compare, first string, results []Result) {
	if c.left.mechanism == "" && c.right.mechanism == "" {
		f.first(first, results, func(r *Result) (bool, string) {
			a, b := c.left.of(r), c.right.of(r)
			return holds(a, c.op, b), c.seen(a, b)
		})
		return
	}
	a, oka := c.left.mean(first, results)
	b, okb := c.right.mean(first, results)
	if !oka || !okb {
		f.Open, f.Seen = true, "a mechanism that it names has no finished run"
		return
	}
	if !holds(a, c.op, b) {
		f.OK, f.Seen = false, c.seen(a, b)
	}
}

// seen writes the values out.
func (c compare) seen(a, b float64) string {
	if c.right.metric == "" {
		return fmt.Sprintf("it is %.6g", a)
	}
	return fmt.Sprintf("%.6g against %.6g", a, b)
}

// of is the side's value in one result.
func (s side) of(r *Result) float64 {
	times := cmp.Or(s.number, 1)
	switch s.metric {
	case "":
		return s.number
	case Finished:
		return times * float64(r.Finished)
	}
	return times * r.Metrics.Get(s.metric)
}

// mean is the side's mean over the seeds of its mechanism.
func (s side) mean(first string, results []Result) (float64, bool) {
	if s.metric == "" {
		return s.number, true
	}
	mechanism := s.mechanism
	if mechanism == "" {
		mechanism = first
	}
	sum, n := 0.0, 0
	for i := range results {
		if r := &results[i]; r.Mechanism == mechanism && !r.Partial {
			sum, n = sum+s.of(r), n+1
		}
	}
	return sum / math.Max(1, float64(n)), n > 0
}

func (o order) judge(r *Result) (bool, string) {
	at, want := r.Fates[o.job].when(o.event), o.moment
	if o.other != "" {
		want = r.Fates[o.other].when(o.otherEvent)
	}
	ok := at != quantity.Never && want != quantity.Never
	switch o.relation {
	case "before":
		ok = ok && at < want
	case "after":
		ok = ok && at > want
	default:
		ok = ok && at == want
	}
	return ok, fmt.Sprintf("%s %s %s, against %s", o.job, o.event, written(at), written(want))
}

func (f Fate) when(event string) quantity.Instant {
	if event == "starts" {
		return f.Began
	}
	return f.Ended
}

func written(t quantity.Instant) string {
	if t == quantity.Never {
		return "never"
	}
	return "at " + time.Duration(t).String()
}
