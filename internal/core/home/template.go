package home

import (
	"slices"

	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/trp"
)

// Jobs of one queue that name one template are alike: what the finished ones used bounds the next (forecast.Rule). The first
// has no history, and neither have those before the (1/theta-1)-th finished: they are bounded by what their owner declared,
// raised to what was seen. A job's bound is settled before it begins. That a newer one could be made meanwhile takes nothing
// from its guarantee, which holds for every later run that is exchangeable with those it was made of.
//
// A result has one peak, so a stretch counts with the peak of the piece that it lay in: a warm-up that never ran alone is
// learned as what followed it, and a declaration that told them apart is lost. It is always to the safe side.

const (
	// mostTemplates are remembered of one queue, those that were taught last: at most 2 MiB of it. Each queue has its own, so
	// that none can make another's forgotten.
	mostTemplates = 64
	// mostTables are kept of one template, for jobs of different lengths and thetas.
	mostTables = 8
	// mostTold waiting jobs are looked at when their template has something to tell, and as many of the others tellAgain lessons
	// later: each that is told is a fact, and is ranked anew. So a lesson costs a few of them, however many wait, and about one
	// begins for each.
	mostTold, tellAgain = 64, 16
	// slowTheta is the chance that a job takes longer a unit than its template has taught: 1 - quantilePermille.
	slowTheta = (1000 - quantilePermille) * forecast.One / 1000
)

// template is what finished jobs of one template have taught.
type template struct {
	name string
	runs forecast.Runs
	sum  uint64
	// untold is how many lessons ago jobs that wait were looked at, heard the last of them, nil if the first is next, and done that
	// none is left behind it. All three are soft.
	untold int
	heard  *Job
	done   bool
	// tables made of these runs. They are soft: made again from the same runs they are the same.
	tables []taught
}

type taught struct {
	total, theta int64
	table        *trp.Table
}

// template finds what a template has been taught; nil if nothing.
func (q *Queue) template(name string) *template {
	for _, t := range q.templates {
		if t.name == name {
			return t
		}
	}
	return nil
}

// heed folds a lesson.
func (h *Ledger) heed(l *protocol.Lesson) {
	q := h.queue(l.Queue)
	t := q.template(l.Template)
	if t == nil {
		t = &template{name: l.Template}
	}
	h.sum -= t.sum
	for _, run := range l.Runs {
		t.runs.Add(run)
	}
	t.tables = nil
	t.sum = templateSum(q.Name, t)
	h.sum += t.sum
	q.templates = append(slices.DeleteFunc(q.templates, func(o *template) bool { return o == t }), t)
	if len(q.templates) > mostTemplates {
		h.sum -= q.templates[0].sum
		q.templates = slices.Delete(q.templates, 0, 1)
	}
}

// teach adds what a job of which all is committed now has used to what is known of its template. Jobs of it that have not begun are told
// where that changes much: at every doubling, and when the runs are just enough for a guarantee; those first that policies ask
// first, and now and then some of the others.
func (h *Ledger) teach(j *Job, out *protocol.Out) {
	run, ok := j.shown()
	if !ok || !j.Complete() {
		return
	}
	before := 0
	if t := j.q.template(j.Spec.Template); t != nil {
		before = len(t.runs.List)
	}
	h.fact(out, protocol.Fact{Kind: protocol.Taught, Lesson: &protocol.Lesson{Queue: j.q.Name, Template: j.Spec.Template, Runs: []forecast.Run{run}}})
	t := j.q.template(j.Spec.Template)
	n := len(t.runs.List)
	t.untold++
	much := n > before && (n&(n-1) == 0 || n == forecast.LeastRuns(j.Spec.Theta))
	switch {
	case much:
		t.heard, t.done = nil, false
	case t.done || t.untold < tellAgain:
		return
	}
	t.tell(h, j.q, out)
}

// tell tells the next jobs of a queue that have not begun what the template has taught, but for those that know about as much.
func (t *template) tell(h *Ledger, q *Queue, out *protocol.Out) {
	h.enlist()
	t.untold, t.done = 0, true
	looked := 0
	for j := range q.unbegun[t.name].behind(t.heard) {
		if looked == mostTold {
			t.done = false
			return
		}
		looked++
		t.heard = j
		if j.behind(len(t.runs.List)) {
			h.instruct(j, out)
		}
	}
	t.heard = nil
}

// behind says that n runs tell a job much that it was not told: twice as many, or enough for a guarantee.
func (j *Job) behind(n int) bool {
	told, least := int(j.Learned().Runs), forecast.LeastRuns(j.Spec.Theta)
	return 2*told <= n || told < least && least <= n
}

// shown is what a job of a template used, as one run. It is false for one that shows nothing of the next: parts of it were
// skipped, ran another way (an option), or nobody saw their memory. The peak of a piece that outgrew its slice may be
// anywhere in its range, and it counts: without it only what fitted would ever be learned.
func (j *Job) shown() (forecast.Run, bool) {
	if j.Spec.Template == "" || len(j.work().skipped) > 0 {
		return forecast.Run{}, false
	}
	trail := forecast.Trail{Total: j.Spec.Total}
	for i := range j.work().past {
		p := &j.work().past[i]
		where, peak := p.Committed, p.Peak[trp.Memory]
		if p.Outcome == job.MemoryKilled {
			where, peak = p.Range, max(peak, p.Demand[trp.Memory]+1) // the last sample may have missed the top
		}
		switch {
		case where.Empty():
		case peak <= 0 || p.Plan.Option != "":
			return forecast.Run{}, false
		default:
			trail.Touch(where.From, where.To, peak)
		}
	}
	run := forecast.Run{Peaks: trail.Peaks}
	if rates := slices.Sorted(slices.Values(j.Learned().Rates)); len(rates) > 0 {
		run.Unit = rates[len(rates)/2]
	}
	return run, true
}

// instruct tells a job that has not begun what its template has taught: what its pieces use, and how long a unit takes.
func (h *Ledger) instruct(j *Job, out *protocol.Out) {
	t := j.q.template(j.Spec.Template)
	if t == nil {
		return
	}
	l := *j.Learned()
	l.Safe, l.Runs = t.table(j.Spec), int64(len(t.runs.List))
	if unit, ok := t.runs.Unit(slowTheta); ok && j.Spec.Kind != job.Rigid {
		l.Rate, l.Margin = unit, leastMargin
	}
	h.fact(out, protocol.Fact{Kind: protocol.Calibrated, Job: j.ID, Learned: &l})
	h.changed(j)
}

// table is the profile of a job of the template.
func (t *template) table(s *job.Spec) *trp.Table {
	for i := range t.tables {
		if known := &t.tables[i]; known.total == s.Total && known.theta == s.Theta {
			return known.table
		}
	}
	// Jobs are always declared, so what their queue has taught is never asked.
	table, source := forecast.Rule(&s.Safe, &t.runs, nil, s.Total, s.Theta)
	if source == forecast.Taught && len(t.tables) < mostTables {
		t.tables = append(t.tables, taught{s.Total, s.Theta, &table})
	}
	return &table
}

// along is a table with other stretches of the same units, no piece of it below what the table asks for.
func along(bounds []int64, t *trp.Table) trp.Table {
	out := trp.Table{Bounds: bounds, Least: make([][]quantity.Amount, len(bounds))}
	from := int64(0)
	for i := range bounds {
		for _, to := range bounds[i:] {
			out.Least[i] = append(out.Least[i], t.LeastOver(from, to, trp.Unscaled))
		}
		from = bounds[i]
	}
	return out
}

// Profile says where the job's profile is from.
func (j *Job) Profile() status.Profile {
	p := status.Profile{Source: forecast.Declared, Runs: j.Learned().Runs, Spread: j.Learned().Spread}
	if _, enough := forecast.Rank(int(p.Runs), j.Spec.Theta); enough && p.Runs > 0 {
		p.Source = forecast.Taught
	}
	return p
}
