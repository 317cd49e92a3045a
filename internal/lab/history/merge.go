package history

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// What is odd of runs, and what is done about it.
const (
	repeated      = "the same row more than once"
	repeatedDone  = "counted once"
	differing     = "a run that two rows tell differently"
	differingDone = "the earlier end was taken: a restart or requeue of the scheduler moves ends, but only to later"
	continued     = "a run that one dump has as it ran, and another one as over"
	continuedDone = "the later state was taken"
	running       = "a run that two dumps have as it ran"
	runningDone   = "the later one was taken"
	cut           = "a run cut in two by the bounds of two dumps (sacct -T)"
	cutDone       = "joined"
	reused        = "a run without an end whose job id was given again"
	reusedDone    = "lost by the scheduler: taken as ended when the next run with its id was submitted"
	overdue       = "a run without an end that is past its walltime"
	overdueDone   = "lost by the scheduler: taken as ended at its walltime"
	backwards     = "a run that ends before it starts"
	backwardsDone = "left out"
	moved         = "a requeued run whose end the requeue rewrote"
	movedDone     = "the end of its batch script was taken"
	doubtful      = "a requeued run whose end may be that of the requeue"
	doubtfulDone  = "the end was kept, but for where others have its devices"
	unending      = "a run without an end and without a walltime"
	unendingDone  = "taken as running still, but for where others have its devices"
	ended         = "a run that is over and has no end"
	endedDone     = "taken as ended with its batch script, or else left out"
	early         = "a run that starts before it was submitted"
	earlyDone     = "taken as submitted when it started"
)

// overtime is how long behind its walltime a run may be ended by a scheduler that does so on a tick, with a grace.
const overtime = 10 * time.Minute

// merged are the rows of a book as one run each, in an order that does not depend on that of the rows.
type merged struct {
	*Book
	runs []*Row
	// doubt: the end of a run may be too late.
	doubt map[*Row]bool
	// seen is the latest instant that the log knows.
	seen quantity.Instant
	// again: some job has more than one run.
	again bool
	// size of each load in devices.
	size []int32
	// said is which devices there are, where the log does not say on which jobs ran.
	said string
}

// merge joins rows that tell of one run, and repairs ends.
func (b *Book) merge() *merged {
	m := &merged{Book: b, doubt: map[*Row]bool{}}
	m.size = sizes(b.loads.all)
	for _, piece := range b.rows {
		for i := range piece {
			m.runs = append(m.runs, &piece[i])
		}
	}
	slices.SortFunc(m.runs, b.compare)
	out := m.runs[:0]
	for _, r := range m.runs {
		if n := len(out); n > 0 && b.join(out[n-1], r) {
			continue
		}
		out = append(out, r)
	}
	m.runs = out
	for _, r := range m.runs {
		m.seen = max(m.seen, known(r.Submit), known(r.Start), known(r.End))
		if r.open() && r.Elapsed > 0 {
			m.seen = max(m.seen, r.Start.Add(r.Elapsed+r.Suspended))
		}
	}
	if seen := watches(b); len(seen) > 0 {
		m.seen = max(m.seen, seen[len(seen)-1].To)
	}
	m.scripts()
	for from := 0; from < len(m.runs); {
		to := from + 1
		for to < len(m.runs) && m.runs[to].Raw == m.runs[from].Raw {
			to++
		}
		m.again = m.again || to > from+1
		m.job(m.runs[from:to])
		from = to
	}
	m.runs = slices.DeleteFunc(m.runs, func(r *Row) bool {
		wrong := r.Start != quantity.Never && r.End < r.Start
		if wrong {
			m.note(backwards, backwardsDone, r)
		}
		if r.Start != quantity.Never && r.Submit != quantity.Never && r.Start < r.Submit && !wrong {
			m.note(early, earlyDone, r)
			r.Submit = r.Start
		}
		return wrong
	})
	return m
}

// known is an instant, 0 if it is not known.
func known(t quantity.Instant) quantity.Instant {
	if t == quantity.Never {
		return 0
	}
	return t
}

// open says that a row tells of a start and of no end.
func (r *Row) open() bool { return r.Start != quantity.Never && r.End == quantity.Never }

// compare orders rows so that those of one job, and of one run of it, stand together, the best of a run first: one with an end, and
// the earliest. What follows breaks ties: the order must not be that of the files.
func (b *Book) compare(x, y *Row) int {
	if c := cmp.Or(cmp.Compare(x.Raw, y.Raw), cmp.Compare(x.came(), y.came()), cmp.Compare(x.Index, y.Index),
		b.names.compare(int32(x.User), int32(y.User))); c != 0 {
		return c
	}
	if c := cmp.Or(cmp.Compare(x.End, y.End), cmp.Compare(x.Start, y.Start), cmp.Compare(x.State, y.State), cmp.Compare(x.ID, y.ID),
		cmp.Compare(x.Eligible, y.Eligible), cmp.Compare(x.Limit, y.Limit), cmp.Compare(x.Suspended, y.Suspended),
		cmp.Compare(x.Elapsed, y.Elapsed)); c != 0 {
		return c
	}
	for _, n := range [...][2]Name{{x.Account, y.Account}, {x.Partition, y.Partition}, {x.QOS, y.QOS}, {x.Job, y.Job}} {
		if c := b.names.compare(int32(n[0]), int32(n[1])); c != 0 {
			return c
		}
	}
	if x.Load != y.Load {
		if c := slices.CompareFunc(b.loads.all[x.Load], b.loads.all[y.Load], func(x, y Part) int {
			return cmp.Or(b.kinds.compare(x.Kind, y.Kind), cmp.Compare(x.Milli, y.Milli), cmp.Compare(x.Count, y.Count))
		}); c != 0 {
			return c
		}
	}
	if x.Place == y.Place {
		return 0
	}
	return slices.CompareFunc(b.places.all[x.Place], b.places.all[y.Place], b.nodes.compare)
}

// came is when a run came into the queue, or when it began where that is not known.
func (r *Row) came() quantity.Instant {
	if r.Submit != quantity.Never {
		return r.Submit
	}
	return r.Start
}

// join takes a row into the one before it in order, if both are of one run.
func (b *Book) join(r, next *Row) bool {
	if r.Raw != next.Raw || r.came() != next.came() || r.Index != next.Index && r.Index != 0 && next.Index != 0 ||
		r.User != next.User && r.User != 0 && next.User != 0 {
		return false
	}
	switch {
	case r.open() && next.open() && b.compare(r, next) != 0:
		b.note(running, runningDone, r)
	case r.End == next.End && r.Start == next.Start && r.State == next.State:
		b.note(repeated, repeatedDone, r)
	case r.End != quantity.Never && r.End == next.Start && r.Start < r.End:
		b.note(cut, cutDone, next)
		r.End, r.State = next.End, next.State
	case r.End == quantity.Never || next.End == quantity.Never: // of a dump from before its end, and of one from behind it
		b.note(continued, continuedDone, r)
	default:
		b.note(differing, differingDone, next)
	}
	r.take(next)
	return true
}

// take takes from another row of the same run what this one lacks, and an earlier end; where neither has one, what the later one says.
func (r *Row) take(next *Row) {
	switch {
	case next.End < r.End:
		r.End, r.State = next.End, next.State
	case r.open() && next.Elapsed > r.Elapsed:
		r.Elapsed, r.State, r.Limit = next.Elapsed, next.State, cmp.Or(next.Limit, r.Limit)
	}
	r.Index, r.User = max(r.Index, next.Index), cmp.Or(r.User, next.User)
	r.Account, r.Partition = cmp.Or(r.Account, next.Account), cmp.Or(r.Partition, next.Partition)
	r.QOS, r.Job = cmp.Or(r.QOS, next.QOS), cmp.Or(r.Job, next.Job)
	r.Load, r.Place = cmp.Or(r.Load, next.Load), cmp.Or(r.Place, next.Place)
	r.Limit = cmp.Or(r.Limit, next.Limit)
}

// note counts an oddity of a run.
func (b *Book) note(name, done string, r *Row) { b.odd(name, done).add(place{text: "job " + r.ID}) }

// scripts takes the ends of batch scripts for runs whose own end is not known or may have been rewritten.
func (m *merged) scripts() {
	var all []BatchRow
	for _, piece := range m.batches {
		all = append(all, piece...)
	}
	m.batches = nil
	byStart := func(x, y BatchRow) int {
		return cmp.Or(cmp.Compare(x.Raw, y.Raw), cmp.Compare(x.Start, y.Start), cmp.Compare(x.End, y.End))
	}
	slices.SortFunc(all, byStart)
	for i, r := range m.runs {
		if r.Start == quantity.Never || r.End != quantity.Never && r.State != Requeued {
			continue
		}
		before := quantity.Never // the scripts of a later run of the same id are that one's
		if i+1 < len(m.runs) && m.runs[i+1].Raw == r.Raw && m.runs[i+1].came() > r.Start {
			before = m.runs[i+1].came()
		}
		at, _ := slices.BinarySearchFunc(all, BatchRow{Raw: r.Raw, Start: r.Start}, byStart)
		for ; at < len(all) && all[at].Raw == r.Raw && all[at].Start <= r.End && all[at].Start < before; at++ {
			end := all[at].End
			if end < r.Start || end > r.End || end == quantity.Never {
				continue
			}
			if r.State == Requeued && end < r.End {
				m.note(moved, movedDone, r)
			} else if r.State != Requeued {
				m.note(ended, endedDone, r)
				r.lost = true
			}
			r.End = end
			break
		}
		none := at == len(all) || all[at].Raw != r.Raw || all[at].Start > r.End || all[at].Start >= before
		if none && r.State == Requeued && r.Load != 0 {
			m.note(doubtful, doubtfulDone, r)
			m.doubt[r] = true
		}
	}
}

// job repairs the runs of one job id, which stand in order of their submission.
func (m *merged) job(runs []*Row) {
	for i, r := range runs {
		if !r.open() {
			continue
		}
		if i+1 < len(runs) && runs[i+1].came() != quantity.Never && runs[i+1].came() >= r.Start {
			m.note(reused, reusedDone, r)
			r.End, r.lost = runs[i+1].came(), true
			continue
		}
		over := r.State != Running && r.State != Suspended && r.State != Unclear && r.State != Pending
		late := r.Limit > 0 && r.Start.Add(r.Limit+r.Suspended+overtime) < m.seen
		switch {
		case over:
			m.note(ended, endedDone, r)
			r.Start = quantity.Never
		case late && r.State != Suspended:
			m.note(overdue, overdueDone, r)
			r.End, r.lost = r.Start.Add(r.Limit+r.Suspended), true
		default:
			r.Open = true
			if r.Limit == 0 && r.Load != 0 {
				m.note(unending, unendingDone, r)
				m.doubt[r] = true
			}
		}
	}
}
