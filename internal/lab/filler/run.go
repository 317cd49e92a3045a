package filler

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/measure"
)

// Play fills the gaps up to limit, and returns how far it came and whether all jobs were over then. The host never waits: what still runs
// when it takes a slice is killed there. Errors are those of the source and of the context; the observer's events until then are complete
// and in order.
func Play(ctx context.Context, o Options, limit quantity.Instant) (quantity.Instant, bool, error) {
	p := &play{Options: o, slices: make([]slice, len(o.Host))}
	for i := range p.slices {
		s := &p.slices[i]
		s.number, s.class, s.stays = int32(i), o.ClassOf[i], o.Host[i]
		s.words = heard(s.stays, o)
		p.set(s)
	}
	if err := p.pull(); err != nil {
		return 0, false, err
	}
	for turn := 0; ; turn++ {
		if turn%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return p.now, false, errkind.Errorf(errkind.Unavailable, "simulation: stopped at %v: %w", time.Duration(p.now), err)
			}
			if o.Progress != nil {
				o.Progress(p.now, p.live)
			}
		}
		next := p.alarms.Next()
		if p.next != nil {
			next = min(next, p.next.job.Submit)
		}
		if p.next == nil && p.live == 0 {
			return p.now, true, nil
		}
		if next > limit || next == quantity.Never {
			return max(p.now, limit), false, nil
		}
		p.now = max(p.now, next)
		if err := p.instant(); err != nil {
			return p.now, false, err
		}
	}
}

// play is a discipline at work.
type play struct {
	Options
	now    quantity.Instant
	slices []slice
	alarms alarm.Heap[*slice]
	due    []*slice
	jobs   []*filling
	free   []*filling
	// waiting are the jobs that hold no slice, in the order in which they came.
	waiting []*filling
	next    *filling
	live    int
	piece   measure.Piece
}

var errNoFiller = errors.New("only jobs that may be cut fill gaps beside a host; write atomizable: 100%, or items or steps")

func (p *play) pull() error {
	var f *filling
	if n := len(p.free); n > 0 {
		f, p.free = p.free[n-1], p.free[:n-1]
	} else {
		f = &filling{slot: measure.Slot(len(p.jobs))}
		p.jobs = append(p.jobs, f)
	}
	more, err := p.Source.Next(&f.job)
	switch {
	case err != nil:
		return errkind.Errorf(errkind.Of(err), "simulation: the source of jobs: %w", err)
	case more && f.job.Kind == job.Rigid:
		return errkind.Errorf(errkind.Invalid, "simulation: job %d of the source: %w", f.job.Number, errNoFiller)
	case more:
		p.next = f
	default:
		p.next = nil
	}
	return nil
}

// set plans when a slice is looked at next: its run ends, the host comes or goes, or an announcement is due.
func (p *play) set(s *slice) {
	next := quantity.Never
	if s.run != nil {
		next = s.run.end
	}
	if s.at < len(s.stays) {
		if at := s.stays[s.at].From; !s.host {
			next = min(next, at)
		} else {
			next = min(next, s.stays[s.at].To)
		}
	}
	if len(s.words) > 0 {
		next = min(next, s.words[0].at)
	}
	if p.Discipline.Pass > 0 && s.run == nil && !s.host && s.known() != quantity.Never {
		next = min(next, p.pass(s, p.now+1))
	}
	p.alarms.Set(&s.alarm, s, next)
}

// instant handles what is due, slice by slice, then arrivals, and fills idle time.
func (p *play) instant() error {
	p.due = p.due[:0]
	for s, ok := p.alarms.Due(p.now); ok; s, ok = p.alarms.Due(p.now) {
		p.due = append(p.due, s)
	}
	slices.SortFunc(p.due, func(a, b *slice) int { return cmp.Compare(a.number, b.number) })
	for _, s := range p.due {
		p.look(s)
		p.set(s)
	}
	for p.next != nil && p.next.job.Submit <= p.now {
		if err := p.arrive(); err != nil {
			return err
		}
	}
	for i := range p.slices {
		if len(p.waiting) == 0 {
			break
		}
		if s := &p.slices[i]; !s.host && s.run == nil && p.fill(s) {
			p.set(s)
		}
	}
	return nil
}

// look brings a slice up to the present.
func (p *play) look(s *slice) {
	if s.host && s.stays[s.at].To <= p.now {
		s.host = false
		s.at++
	}
	for len(s.words) > 0 && s.words[0].at <= p.now {
		w := s.words[0]
		s.words = s.words[1:]
		if s.told == nil {
			s.told = map[int]quantity.Instant{}
		}
		s.told[w.stay] = w.from
		if w.wanted && s.run != nil {
			s.run.wanted(p.now, w.from, p.Discipline)
		}
	}
	if r := s.run; r != nil && r.end <= p.now {
		p.over(s)
	}
	if !s.host && s.at < len(s.stays) && s.stays[s.at].From <= p.now {
		s.host, s.worker = true, false
		delete(s.told, s.at)
		if s.run != nil { // it was not heard of in time
			s.run.kill(p.now, p.Discipline.Notices)
			p.over(s)
		}
	}
}

func (p *play) arrive() error {
	f := p.next
	f.kept, f.began, f.attempt = 0, false, 0
	f.usable = p.Usable(&f.job)
	p.live++
	p.Observer.Arrived(p.now, f.slot, &f.job)
	if f.usable == 0 {
		p.done(f, job.Impossible)
	} else {
		p.wait(f)
	}
	return p.pull()
}

// wait puts a job back to where it stood.
func (p *play) wait(f *filling) {
	i, _ := slices.BinarySearchFunc(p.waiting, f.job.Number, func(g *filling, n int64) int { return cmp.Compare(g.job.Number, n) })
	p.waiting = slices.Insert(p.waiting, i, f)
}

func (p *play) done(f *filling, state job.State) {
	p.live--
	p.Observer.Done(p.now, f.slot, state)
	p.free = append(p.free, f)
}

// fill starts the first job that may run on a slice, in the discipline's order; it says whether there was one.
func (p *play) fill(s *slice) bool {
	if p.Discipline.Fits == Nothing {
		return false
	}
	if p.pass(s, p.now) != p.now {
		p.set(s)
		return false
	}
	best, end := -1, s.known()
	for i, f := range p.waiting {
		if f.usable>>s.class&1 == 0 || !p.fits(f, s, p.now, end) {
			continue
		}
		if best < 0 || p.planTime(f, s) < p.planTime(p.waiting[best], s) {
			best = i
		}
		if !p.Discipline.Shortest {
			break
		}
	}
	if best < 0 {
		return false
	}
	f := p.waiting[best]
	p.waiting = slices.Delete(p.waiting, best, best+1)
	p.start(f, s, end)
	return true
}

// start begins a run.
func (p *play) start(f *filling, s *slice, known quantity.Instant) {
	r := &stint{job: &f.job, begin: p.now, before: f.before(), from: f.kept, attempt: f.attempt, stop: quantity.Never}
	if s.worker {
		r.before -= f.job.Start()
	}
	s.worker = p.Discipline.Workers
	r.perUnit = max(1, time.Duration(quantity.MulDiv(int64(f.job.Work), 1000, max(1, p.speed(f, s))*f.job.Units)))
	switch d := p.Discipline; {
	case d.Every == 0 && d.Notices:
		r.every = f.job.Process.Saves // its program's own
	case d.Every > 0:
		r.every = max(1, int64((d.Every+r.perUnit-1)/r.perUnit))
		r.every = (r.every + f.job.Grid - 1) / f.job.Grid * f.job.Grid
	}
	capacity := p.Classes[s.class].Memory
	r.peak, r.reach = f.job.Memory.Run(f.kept, f.job.Units, f.attempt, capacity)
	f.attempt++
	f.began = true
	s.run, s.job = r, f
	r.plan(p.Discipline.Notices)
	if from, wanted := p.wanted(s, p.now); wanted {
		r.wanted(p.now, from, p.Discipline)
	} else if p.Discipline.Fits == Part && known != quantity.Never {
		if p.Discipline.Minimum {
			known = min(known, p.now.Add(p.Least))
		}
		r.wanted(p.now, known, p.Discipline)
	}
	p.Observer.Began(p.now, f.slot, s.class, 1)
}

// over ends a slice's run.
func (p *play) over(s *slice) {
	r, f := s.run, s.job
	s.run, s.job = nil, nil
	units := r.keeps - r.from
	if r.how != job.MemoryKilled { // the peaks of phases that it did not enter were never reached
		r.peak, _ = f.job.Memory.Run(r.from, min(f.job.Units, r.from+r.complete(r.end)+1), r.attempt, p.Classes[s.class].Memory)
	}
	q := &p.piece
	*q = measure.Piece{
		Slot: f.slot, Units: job.Range{From: r.from, To: f.job.Units}, Class: s.class, First: s.number, Slices: 1, Start: r.begin,
		End:  r.end,
		Work: worth(&f.job, r.keeps) - worth(&f.job, r.from), Outcome: r.how, Peak: r.peak, Excess: r.how == job.MemoryKilled,
	}
	held := q.End.Sub(q.Start)
	q.Useful = min(held, time.Duration(units)*r.perUnit)
	q.Overhead = min(r.overhead(), held-q.Useful)
	f.kept = r.keeps
	p.Observer.Ended(p.now, q)
	if r.how == job.Done {
		p.done(f, job.Finished)
		return
	}
	if r.how == job.MemoryKilled {
		for c := range p.Classes {
			if p.Classes[c].Memory <= p.Classes[s.class].Memory {
				f.usable &^= 1 << c
			}
		}
	}
	if f.usable == 0 {
		p.done(f, job.Failed)
		return
	}
	p.wait(f)
}
