package learn

import (
	"iter"
	"slices"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/forecast"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
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
	// mostTold waiting jobs are looked at when their template has news, and as many of the others tellAgain lessons later: each lesson for
	// a job is a fact, and ranks it anew. So a lesson costs a few facts, however many jobs wait, and about one job begins for each.
	mostTold, tellAgain = 64, 16
	// slowTheta is the chance that a job takes longer a unit than its template has taught: 1 - quantilePermille.
	slowTheta = (1000 - quantilePermille) * forecast.One / 1000
)

// Templates are what jobs of one queue have taught, by template. Invariant: no more than mostTemplates, the one that was taught last
// behind; sum is the sum of their hashes. J are jobs that wait for lessons.
type Templates[J comparable] struct {
	list []*Template[J]
	sum  uint64
}

// Template is what finished jobs of one template have taught.
type Template[J comparable] struct {
	name string
	runs forecast.Runs
	sum  uint64
	// untold is how many lessons ago jobs that wait were looked at, heard the last of them, zero if the first is next, and done that
	// none is left behind it. All three are soft.
	untold int
	heard  J
	done   bool
	// tables made of these runs. They are soft: made again from the same runs they are the same.
	tables []taught
}

type taught struct {
	total, theta int64
	table        *trp.Table
}

// Of finds what a template has been taught; nil if nothing.
func (q *Templates[J]) Of(name string) *Template[J] {
	for _, t := range q.list {
		if t.name == name {
			return t
		}
	}
	return nil
}

// Sum is the templates' part of the digest.
func (q *Templates[J]) Sum() uint64 { return q.sum }

// Lessons are what folds to the templates again.
func (q *Templates[J]) Lessons(queue string) (all []protocol.Lesson) {
	for _, t := range q.list {
		all = append(all, protocol.Lesson{Queue: queue, Template: t.name, Runs: slices.Clone(t.runs.List)})
	}
	return all
}

// Add folds a lesson.
func (q *Templates[J]) Add(l *protocol.Lesson) {
	t := q.Of(l.Template)
	if t == nil {
		t = &Template[J]{name: l.Template}
	}
	q.sum -= t.sum
	for _, run := range l.Runs {
		t.runs.Add(run)
	}
	t.tables = nil
	t.sum = t.hash(l.Queue)
	q.sum += t.sum
	q.list = append(slices.DeleteFunc(q.list, func(o *Template[J]) bool { return o == t }), t)
	if len(q.list) > mostTemplates {
		q.sum -= q.list[0].sum
		q.list = slices.Delete(q.list, 0, 1)
	}
}

func (t *Template[J]) hash(queue string) uint64 {
	return t.runs.Mix(digest.New().Text(queue).Text(t.name)).Sum()
}

// Runs is how many runs it was taught by; none if t is nil.
func (t *Template[J]) Runs() int {
	if t == nil {
		return 0
	}
	return len(t.runs.List)
}

// News returns, after a lesson, whether to instruct jobs that have not begun: where it changes much, at every doubling and when the runs
// are just enough for a guarantee, those that policies ask first; and now and then some of the others. before is how many runs there were.
func (t *Template[J]) News(before int, theta int64) bool {
	n := len(t.runs.List)
	t.untold++
	if n > before && (n&(n-1) == 0 || n == forecast.LeastRuns(theta)) {
		var first J
		t.heard, t.done = first, false
		return true
	}
	return !t.done && t.untold >= tellAgain
}

// Tell passes the template's lessons on to the next mostTold of the jobs that have not begun; the next call goes on behind the last of
// these. waiting yields the jobs behind a given one, or all if that is zero.
func (t *Template[J]) Tell(waiting func(behind J) iter.Seq[J], tell func(J)) {
	t.untold, t.done = 0, true
	looked := 0
	for j := range waiting(t.heard) {
		if looked == mostTold {
			t.done = false
			return
		}
		looked++
		t.heard = j
		tell(j)
	}
	var first J
	t.heard = first
}

// Behind reports whether the template has much to teach a job that was taught when it had told runs: twice as many now, or enough for a
// guarantee.
func (t *Template[J]) Behind(told int, theta int64) bool {
	n, least := len(t.runs.List), forecast.LeastRuns(theta)
	return 2*told <= n || told < least && least <= n
}

// Instruct is the lesson for a job that has not begun: what its pieces use, and how long a unit takes.
func (t *Template[J]) Instruct(spec *job.Spec, known *protocol.Learned) protocol.Learned {
	l := *known
	l.Safe, l.Runs = t.table(spec), int64(len(t.runs.List))
	if unit, ok := t.runs.Unit(slowTheta); ok && spec.Kind != job.Rigid {
		l.Rate, l.Margin = unit, leastMargin
	}
	return l
}

// table is the profile of a job of the template.
func (t *Template[J]) table(s *job.Spec) *trp.Table {
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

// Run is what a job of a template used, as one run. It is false for one that shows nothing of the next: parts of it were
// skipped, ran another way (an option), or nobody saw their memory. The peak of a piece that outgrew its slice may be
// anywhere in its range, and it counts: without it only what fitted would ever be learned.
func Run(spec *job.Spec, past []protocol.Past, skipped job.Ranges, l *protocol.Learned) (forecast.Run, bool) {
	if spec.Template == "" || len(skipped) > 0 {
		return forecast.Run{}, false
	}
	trail := forecast.Trail{Total: spec.Total}
	for i := range past {
		p := &past[i]
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
	if rates := slices.Sorted(slices.Values(l.Rates)); len(rates) > 0 {
		run.Unit = rates[len(rates)/2]
	}
	return run, true
}
