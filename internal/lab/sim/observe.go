package sim

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/measure"
)

// teller tells the observer of runs. Invariant: it has told of at most one run on a slice at a time, and of the end of each before its job
// is done.
type teller struct {
	*ground
	jobs *arrivals
	runs map[job.Token]*run
	// gangs are the members of standing claims on several nodes, by the token of the first.
	gangs map[job.Token][]protocol.Member
	// standing are the claims that no home has settled, where nodes come and go.
	standing map[job.Token]bool
	// ended hears of each run that the observer is told of.
	ended func(party int, p *measure.Piece)
	// unheard is by slice, enrolled how many runs there were. freed are the slices to be looked at by catchUp.
	unheard  []unheard
	enrolled uint64
	freed    []int32
}

// enrol notes whose run it is.
func (s *teller) enrol(r *run) {
	r.news.slot = none
	i, ok := s.jobs.slots[r.start.Job]
	if !ok {
		return
	}
	j := &s.jobs.list[i]
	r.news.slot, r.news.attempt = i, j.runs
	j.runs++
	j.untold++
	s.enrolled++
	r.news.number = s.enrolled
	for _, p := range r.places {
		u := &s.unheard[p.number]
		u.waits = append(u.waits, r)
		s.freed = append(s.freed, p.number)
	}
	s.catchUp()
}

// unheard is a slice as the observer sees it: whether a run holds it, and the runs whose begin the observer has not heard of,
// oldest first.
type unheard struct {
	taken bool
	waits []*run
}

// catchUp tells of every run that its slices are free to the observer and it began, the oldest first. Only runs on the slices
// in freed can have become free since the last time.
func (s *teller) catchUp() {
	for {
		var first *run
		for _, number := range s.freed {
			for _, r := range s.unheard[number].waits {
				if !slices.ContainsFunc(r.places, func(p place) bool { return s.unheard[p.number].taken }) {
					if first == nil || r.news.number < first.news.number {
						first = r
					}
					break
				}
			}
		}
		if first == nil {
			break
		}
		s.began(first)
	}
	s.freed = s.freed[:0]
}

// began tells that a run did.
func (s *teller) began(r *run) {
	r.news.begun = true
	for _, p := range r.places {
		u := &s.unheard[p.number]
		u.taken = true
		u.waits = slices.DeleteFunc(u.waits, func(x *run) bool { return x == r })
	}
	if s.o.Observer != nil {
		for _, h := range r.holds() {
			s.o.Observer.Began(s.now, measure.Slot(r.news.slot), h.class, h.n)
		}
	}
	s.tell(r)
}

// heard handles a zone's decision: what of a run counts, and the end of a job.
func (s *teller) heard(f *protocol.Fact) {
	switch f.Kind {
	case protocol.Claimed:
		members := f.Body.(*protocol.Sale).Members
		if len(members) > 0 {
			s.gangs[f.Token] = members
		}
		if s.standing != nil {
			s.standing[f.Token] = true
			for _, m := range members {
				s.standing[m.Token] = true
			}
		}
	case protocol.Committed, protocol.Released:
		for _, m := range s.gangs[f.Token] {
			if m.Token != f.Token {
				s.settle(m.Token, f)
			}
		}
		delete(s.gangs, f.Token)
		s.settle(f.Token, f)
	case protocol.Ended:
		if i, ok := s.jobs.slots[f.Job]; ok {
			s.jobs.close(i, f.Body.(*protocol.Final).Verdict.State)
		}
	}
}

// settle records what of the run under a token counts.
func (s *teller) settle(t job.Token, f *protocol.Fact) {
	delete(s.standing, t)
	r := s.runs[t]
	if r == nil || r.news.known {
		return
	}
	if end := f.Body.(*protocol.ClaimEnd); f.Kind == protocol.Committed && !end.Skipped {
		r.news.committed = end.Range
	}
	s.know(r)
	if r.abandoned {
		delete(s.runs, t)
	}
}

// abandon is that the machine of a run which has ended is gone for good.
func (s *teller) abandon(r *run) {
	r.abandoned = true
	if !s.standing[r.start.Token] { // nobody will settle it any more
		s.know(r)
	}
	if r.news.known {
		delete(s.runs, r.start.Token)
	}
}

// know: no more is to be learned of a run than what was committed of it so far.
func (s *teller) know(r *run) {
	r.news.known = true
	if s.tell(r) {
		s.catchUp()
	}
}

// leave notes that a run has left its slices.
func (s *teller) leave(r *run) {
	r.news.left = s.now
	if s.tell(r) {
		s.catchUp()
	}
}

// measured notes the memory that a run of a job of the source has used: truly, and by its result. The observed use on a slice is never more
// than the slice has.
func (s *teller) measured(r *run) {
	if r.news.slot == none || s.o.Model != nil {
		return
	}
	j := &s.jobs.list[r.news.slot].job
	capacity := r.capacity()
	from, _ := j.Span(r.rng.From, r.rng.To)
	r.does.Peak[trp.Memory], _ = j.Memory.Run(from, r.entered(j, s.now), r.news.attempt, capacity)
	r.result.Peak[trp.Memory] = min(r.does.Peak[trp.Memory], capacity)
}

// tell the observer of a run that has left its slices and whose worth is known, once; it says whether it did.
func (s *teller) tell(r *run) bool {
	if r.news.slot == none || !r.news.begun || !r.news.known || r.result == nil {
		return false
	}
	i := r.news.slot
	if s.o.Observer != nil || s.o.Lenders != nil {
		p := s.piece(r)
		for _, h := range r.holds() {
			p.Class, p.First, p.Slices = h.class, h.first, h.n
			s.ended(r.party, &p)
			if s.o.Observer != nil {
				s.o.Observer.Ended(s.now, &p)
			}
		}
	}
	for _, p := range r.places {
		s.unheard[p.number].taken = false
		s.freed = append(s.freed, p.number)
	}
	r.news.slot = none
	s.jobs.list[i].untold--
	s.jobs.release(i)
	return true
}

// piece is a run as the observer hears of it, but for its slices.
func (s *teller) piece(r *run) measure.Piece {
	j := &s.jobs.list[r.news.slot]
	p := measure.Piece{
		Slot: measure.Slot(r.news.slot), Start: r.begin, End: r.news.left, Outcome: r.result.Outcome,
		Peak: r.does.Peak[trp.Memory], Demand: r.work().Demand[trp.Memory], Excess: r.does.Peak[trp.Memory] > r.capacity(),
	}
	if j.spec.Divisible() {
		p.Units = r.rng
	}
	held := p.End.Sub(p.Start)
	p.Startup, p.Stayed = min(r.does.Startup, held), r.stayed
	if n := r.news.committed.Len(); n > 0 {
		p.Work = j.job.Worth(r.news.committed.To, j.spec.Total) - j.job.Worth(r.news.committed.From, j.spec.Total)
		p.Useful = min(held, time.Duration(n)*r.does.PerUnit)
	}
	p.Overhead = r.does.Restore + r.saving(r.news.committed.To)
	switch {
	case p.Outcome == job.Done:
		p.Overhead += r.last()
	case p.Work > 0 && (p.Outcome == job.Yielded || r.does.Saves > 0): // the last that counts
		p.Overhead += j.spec.Checkpoint
	}
	p.Overhead = min(p.Overhead, held-p.Useful)
	return p
}
