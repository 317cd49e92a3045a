package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/timeline"
	"sluice.dev/sluice/internal/core/trp"
)

// Explain says why a job waits or where it runs: counts of every reason, and how it matches each slice.
func (v *View) Explain(now quantity.Instant, id job.ID) (status.Explanation, bool) {
	j := v.home.Book().Job(id)
	if j == nil {
		return status.Explanation{}, false
	}
	return v.explain(now, j), true
}

// waited is the share of their run that a job's subjobs waited for a processor, in parts per thousand.
func waited(s *home.Job) int64 {
	ran, waited := time.Duration(0), time.Duration(0)
	for i := range s.History().Past() {
		if p := &s.History().Past()[i]; p.RealStart != 0 {
			ran, waited = ran+max(0, p.RealEnd.Sub(p.RealStart)), waited+p.Spent.Waited
		}
	}
	if ran <= 0 {
		return 0
	}
	return quantity.MulDiv(int64(min(waited, ran)), 1000, int64(ran))
}

// ExplainFiled says the same of a job that was left to the archive, from its record, which is not kept.
func (v *View) ExplainFiled(now quantity.Instant, r *protocol.Record) status.Explanation {
	return v.explain(now, v.home.Book().Outsider(r))
}

func (v *View) explain(now quantity.Instant, s *home.Job) status.Explanation {
	j := v.detail(now, s)
	e := status.Explanation{Job: j, Summary: fmt.Sprintf("%s is %s: %s", s.ID, j.State, j.Reason)}
	if busy := job.MachineBusy(waited(s)); busy != "" && !strings.Contains(e.Summary, busy) {
		e.Summary += "; " + busy
	}
	so := v.floor.Counts(s)
	for _, c := range so.All() {
		if c.Reason != explain.Eligible {
			e.Reasons = append(e.Reasons, status.Reason{Text: v.Sentence(s, &c), Count: c.N, Last: c.Last})
		}
	}
	if v.searches(s) {
		e.Reasons = append(e.Reasons, v.tickets.Trail(s)...)
	}
	slices.SortStableFunc(e.Reasons, func(a, b status.Reason) int { return cmp.Compare(b.Count, a.Count) })
	if !j.State.Final() || j.State == job.Impossible { // who is over is matched with nothing
		e.Slices = v.matches(now, s)
	}
	if !v.searches(s) {
		v.compare(now, s, &e)
	}
	return e
}

// DryRun says what would happen to a job that is not submitted: where it would fit and when it would start.
func (v *View) DryRun(now quantity.Instant, spec *job.Spec) status.Explanation {
	j, l := v.home.Book().Outsider(&protocol.Record{Job: spec.Name, Spec: spec, Queue: spec.Queue, Submitted: now}), v.look(now)
	e := status.Explanation{Job: l.show(j), Slices: v.matches(now, j)}
	early, found := l.nextStart(j)
	switch {
	case !found:
		e.Summary = "it would wait: no free window holds its first piece now"
	case early <= now && v.Guess(now, j) == 0, e.Job.StartLate <= now:
		e.Summary = "it would start at once"
	default:
		e.Summary = "it is likely to start " + within(now, e.Job.StartEarly, e.Job.StartLate)
	}
	if n := v.home.Book().Waiting(); n > 0 && found && v.cfg.Trust != nil {
		e.Summary += fmt.Sprintf("; %d waiting jobs may bid more", n)
	} else if n > 0 && found {
		e.Summary += fmt.Sprintf("; %d waiting jobs could be asked before it, by policy %s", n, v.cfg.Policy)
	}
	return e
}

// matches says for every slice what the job's next piece would need there.
func (v *View) matches(now quantity.Instant, j *home.Job) []status.SliceFit {
	out := make([]status.SliceFit, 0, len(v.floor.Slices()))
	fits := make([]*status.SliceFit, len(v.floor.Classes()))
	for _, sl := range v.floor.Slices() {
		c := sl.Class()
		if fits[c.At()] == nil {
			fits[c.At()] = v.match(now, j, c)
		}
		f := *fits[c.At()]
		if f.Slice = sl.Name(); !sl.Usable() {
			f.Fits, f.Reach, f.Why = false, job.Range{}, v.slices.Seen(sl).Why
		} else if f.Fits && j.Spec.Divisible() {
			v.inGaps(now, j, sl, &f)
		}
		if sl.Usable() {
			f.Why += closes(now, v.slices.Seen(sl))
		}
		out = append(out, f)
	}
	return out
}

// closes is what takes a slice from some instant on for good, or nobody knows until when, as where its machine leaves; empty: nothing does.
func closes(now quantity.Instant, told *protocol.SliceView) string {
	for i := range told.Reserved {
		if r := &told.Reserved[i]; r.Start > now && r.End == quantity.Never && r.Every == 0 {
			return "; it is " + timeline.Describe(r)
		}
	}
	return ""
}

// match says what the job's next piece would need on a usable slice of a class.
func (v *View) match(now quantity.Instant, j *home.Job, c *window.Class) *status.SliceFit {
	view := j.View()
	view.Running = 0
	f := &status.SliceFit{Capacity: c.Capacity[trp.Memory]}
	if free := job.NextFree(0, j.Spec.Total, j.Progress().Committed()); !free.Empty() {
		f.Least = j.Safe().LeastOver(free.From, free.From+1, j.Learned().MemoryScale)
	}
	end := quantity.Never
	if j.Spec.Kind != job.Rigid {
		end = now.Add(v.longest(j))
	}
	p, r := atomizer.Fit(&view, atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec), Start: now, End: end})
	switch r.Why {
	case atomizer.Interested:
		f.Fits, f.Reach, f.Why = true, p.Range, lasts(&view, &p)
	case atomizer.Unsafe:
		f.Why = fmt.Sprintf("its next piece needs %d MiB, the slice has %d MiB", r.Least>>20, f.Capacity>>20)
		if whole := c.Whole[trp.Memory]; whole > f.Capacity {
			f.Why = fmt.Sprintf("its next piece needs %d MiB; of the slice's %d MiB its host's memory bears %d now, beside what else "+
				"runs there", r.Least>>20, whole>>20, f.Capacity>>20)
		}
	case atomizer.TooShort:
		f.Why = fmt.Sprintf("its least useful piece takes %v, the horizon is %v", r.Need.Round(time.Millisecond), v.cfg.Horizon)
		if l := v.longest(j); l < v.cfg.Horizon {
			f.Why = fmt.Sprintf("its least useful piece takes %v, a window of queue %s is %v at most", r.Need.Round(time.Millisecond),
				j.Queue().Name, l)
		}
	case atomizer.Barred:
		f.Why = fmt.Sprintf("its speeds say that it can not run on %s", c.Profile)
	default:
		f.Why = "nothing of it is left to run"
	}
	return f
}

// lasts says how long a piece would take, as far as that is known.
func lasts(v *atomizer.View, p *atomizer.Piece) string {
	if v.Measures() {
		return fmt.Sprintf("a piece %v would be given up to %v, and tell how long a %s takes", p.Range, p.Wall.Round(time.Millisecond),
			v.Spec.UnitName())
	}
	return fmt.Sprintf("a piece %v would take %v", p.Range, p.Wall.Round(time.Millisecond))
}

// longest is the longest window a job can be offered.
func (v *View) longest(j *home.Job) time.Duration {
	if most := j.Queue().MaxWindow; most > 0 {
		return min(most, v.cfg.Horizon)
	}
	return v.cfg.Horizon
}

// inGaps says what a divisible job's next piece would be in the first of a slice's gaps that it can use, or that none is long enough.
func (v *View) inGaps(now quantity.Instant, j *home.Job, sl *window.Slice, f *status.SliceFit) {
	c, view, widest, need := sl.Class(), j.View(), time.Duration(0), time.Duration(0)
	view.Running = 0
	for _, g := range sl.Shown(now) {
		start := max(g.Start, now)
		if g.End <= start {
			continue
		}
		end := min(g.End, start.Add(v.longest(j)))
		p, r := atomizer.Fit(&view, atomizer.Window{Capacity: c.Capacity, Speed: c.SpeedOf(j.Spec), Start: start, End: end})
		if r.Why == atomizer.Interested {
			f.Reach, f.Why = p.Range, lasts(&view, &p)
			if start > now {
				f.Why += fmt.Sprintf(", from %v on", start.Sub(now).Round(time.Second))
			}
			return
		}
		widest, need = max(widest, end.Sub(start)), r.Need
	}
	if widest > 0 {
		f.Fits, f.Reach, f.Why = false, job.Range{}, fmt.Sprintf("its windows are of %v at most, its least useful piece takes %v",
			widest.Round(time.Millisecond), need.Round(time.Millisecond))
	}
}
