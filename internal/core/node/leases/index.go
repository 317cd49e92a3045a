package leases

import (
	"slices"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/dirty"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// index finds leases by token, by job and by when they need attention. A lease that has changed is stirred until its alarm is set again,
// and one that is due to begin is pending until it has begun or is over, so that a step looks at these alone.
type index struct {
	all     map[job.Token]*Lease
	ofJob   map[job.ID]few
	alarms  alarm.Heap[*Lease]
	stirred dirty.Set[*Lease]
	pending []*Lease // Sold and due to begin, in order of token: filled by rearm, begun by Runner.Drive
	due     []*Lease // room for those whose alarm has come
}

// few are the leases of one job, in no order: most have one at a node.
type few struct {
	first *Lease
	more  []*Lease
}

func newIndex() index { return index{all: map[job.Token]*Lease{}, ofJob: map[job.ID]few{}} }

func compare(a, b *Lease) int { return a.terms.Token.Compare(b.terms.Token) }

func (x *index) add(l *Lease) {
	x.all[l.terms.Token] = l
	of := x.ofJob[l.terms.Job]
	if of.first == nil {
		of.first = l
	} else {
		of.more = append(of.more, l)
	}
	x.ofJob[l.terms.Job] = of
	x.stir(l)
}

func (x *index) remove(l *Lease) {
	delete(x.all, l.terms.Token)
	x.stir(l)
	of := x.ofJob[l.terms.Job]
	last := len(of.more) - 1
	if last < 0 {
		delete(x.ofJob, l.terms.Job)
		return
	}
	if of.first == l {
		of.first = of.more[last]
	} else {
		of.more[slices.Index(of.more, l)] = of.more[last]
	}
	of.more[last] = nil
	of.more = of.more[:last]
	x.ofJob[l.terms.Job] = of
}

// outlived says whether there is a lease of a later life of a job.
func (x *index) outlived(id job.ID, g job.Generation) bool {
	of := x.ofJob[id]
	later := func(l *Lease) bool { return l.terms.Generation > g.Number() }
	return of.first != nil && later(of.first) || slices.ContainsFunc(of.more, later)
}

// stir notes that a lease has changed, and that its alarm is to be set again.
func (x *index) stir(l *Lease) {
	x.stirred.Add(&l.stirred, l)
}

// rearm sets the alarms of leases that have changed to when they need attention. Those that are due to begin are pending.
func (x *index) rearm(now quantity.Instant, attention func(*Lease) quantity.Instant) {
	x.stirred.Drain(func(l *Lease) {
		x.alarms.Set(&l.slot, l, attention(l))
		if !l.pending && l.phase == Sold && l.terms.Start <= now {
			i, _ := slices.BinarySearchFunc(x.pending, l, compare)
			x.pending = slices.Insert(x.pending, i, l)
			l.pending = true
		}
	})
}

// attended are the leases that need attention now, in order of token; their alarms are set again afterwards. What has begun or is over is
// not pending any more.
func (x *index) attended(now quantity.Instant, attention func(*Lease) quantity.Instant) []*Lease {
	x.rearm(now, attention)
	x.due = x.due[:0]
	for l, ok := x.alarms.Due(now); ok; l, ok = x.alarms.Due(now) {
		x.due = append(x.due, l)
		x.stir(l)
	}
	x.rearm(now, attention)
	x.pending = slices.DeleteFunc(x.pending, func(l *Lease) bool {
		l.pending = l.phase == Sold
		return !l.pending
	})
	slices.SortFunc(x.due, compare)
	return x.due
}
