package sim

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/lab/measure"
)

// notice is how far the observer has been told of a run of a job of the source. What a run was worth is known only when its
// home has committed or released its claim, and the next run may be on its slices by then. That one is told of when they
// are free to the observer too, which never hears of two runs on one slice. The job's last word waits for its last run.
type notice struct {
	slot    int32  // of the job, none if the source gave no such job or nothing more is to be told
	attempt int64  // which of the job's runs it is
	number  uint64 // of all runs, as they began
	begun   bool   // the observer has heard of its begin

	left      quantity.Instant // when the run had left its slices
	known     bool             // what of it counts is known
	committed job.Range
}

// hold is what a run has of one class.
type hold struct {
	class uint8
	first int32
	n     int32
}

// enrol notes whose run it is.
func (s *Sim) enrol(r *run) {
	r.slot = none
	i, ok := s.slots[r.start.Job]
	if !ok {
		return
	}
	j := &s.jobs[i]
	r.slot, r.attempt = i, j.runs
	j.runs++
	j.untold++
	s.enrolled++
	r.number = s.enrolled
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
func (s *Sim) catchUp() {
	for {
		var first *run
		for _, number := range s.freed {
			for _, r := range s.unheard[number].waits {
				if !slices.ContainsFunc(r.places, func(p place) bool { return s.unheard[p.number].taken }) {
					if first == nil || r.number < first.number {
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
func (s *Sim) began(r *run) {
	r.begun = true
	for _, p := range r.places {
		u := &s.unheard[p.number]
		u.taken = true
		u.waits = slices.DeleteFunc(u.waits, func(x *run) bool { return x == r })
	}
	if s.o.Observer != nil {
		for _, h := range r.holds() {
			s.o.Observer.Began(s.now, measure.Slot(r.slot), h.class, h.n)
		}
	}
	s.tell(r)
}

// holds are the classes of a run's slices, each with how many there are.
func (r *run) holds() (list []hold) {
next:
	for _, p := range r.places {
		for i := range list {
			if list[i].class == p.class {
				list[i].n++
				continue next
			}
		}
		list = append(list, hold{class: p.class, first: p.number, n: 1})
	}
	return list
}

// heard takes in what a zone has decided: what of a run counts, and the end of a job.
func (s *Sim) heard(f *protocol.Fact) {
	switch f.Kind {
	case protocol.Claimed:
		if len(f.Members) > 0 {
			s.gangs[f.Token] = f.Members
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
		if i, ok := s.slots[f.Job]; ok {
			s.close(i, f.Verdict.State)
		}
	}
}

// settle takes in what of the run under a token counts.
func (s *Sim) settle(t job.Token, f *protocol.Fact) {
	r := s.machine.runs[t]
	if r == nil || r.known {
		return
	}
	if f.Kind == protocol.Committed && !f.Skipped {
		r.committed = f.Range
	}
	s.know(r)
}

// know: no more is to be learned of a run than what was committed of it so far.
func (s *Sim) know(r *run) {
	r.known = true
	if s.tell(r) {
		s.catchUp()
	}
}

// leave notes that a run has left its slices.
func (s *Sim) leave(r *run) {
	r.left = s.now
	if s.tell(r) {
		s.catchUp()
	}
}

// measured notes the memory that a run of a job of the source has used: truly, and as its result says. What can be seen of
// it on a slice is never more than there is.
func (s *Sim) measured(r *run) {
	if r.slot == none || s.o.Model != nil {
		return
	}
	j := &s.jobs[r.slot].Job
	capacity := r.capacity()
	from, _ := j.Span(r.rng.From, r.rng.To)
	r.Peak[trp.Memory], _ = j.Memory.Run(from, r.entered(j, s.now), r.attempt, capacity)
	r.result.Peak[trp.Memory] = min(r.Peak[trp.Memory], capacity)
}

// capacity is the memory of the smallest of a run's slices.
func (r *run) capacity() quantity.Amount {
	least := r.places[0].slice.Capacity[trp.Memory]
	for _, p := range r.places {
		least = min(least, p.slice.Capacity[trp.Memory])
	}
	return least
}

// tell the observer of a run that has left its slices and whose worth is known, once; it says whether it did.
func (s *Sim) tell(r *run) bool {
	if r.slot == none || !r.begun || !r.known || r.result == nil {
		return false
	}
	i := r.slot
	if s.o.Observer != nil {
		p := s.piece(r)
		for _, h := range r.holds() {
			p.Class, p.First, p.Slices = h.class, h.first, h.n
			s.o.Observer.Ended(s.now, &p)
		}
	}
	for _, p := range r.places {
		s.unheard[p.number].taken = false
		s.freed = append(s.freed, p.number)
	}
	r.slot = none
	s.jobs[i].untold--
	s.release(i)
	return true
}

// piece is a run as the observer hears of it, but for its slices.
func (s *Sim) piece(r *run) measure.Piece {
	j := &s.jobs[r.slot]
	p := measure.Piece{
		Slot: measure.Slot(r.slot), Start: r.begin, End: r.left, Outcome: r.result.Outcome,
		Peak: r.Peak[trp.Memory], Demand: r.work().Demand[trp.Memory], Excess: r.Peak[trp.Memory] > r.capacity(),
	}
	if j.spec.Divisible() {
		p.Units = r.rng
	}
	held := p.End.Sub(p.Start)
	if n := r.committed.Len(); n > 0 {
		p.Work = worth(&j.Job, r.committed.To, j.spec.Total) - worth(&j.Job, r.committed.From, j.spec.Total)
		p.Useful = min(held, time.Duration(n)*r.PerUnit)
	}
	p.Overhead = r.Restore + r.saving(r.committed.To)
	switch {
	case p.Outcome == job.Done:
		p.Overhead += r.last()
	case p.Work > 0 && (p.Outcome == job.Yielded || r.Saves > 0): // the last that counts
		p.Overhead += j.spec.Checkpoint
	}
	p.Overhead = min(p.Overhead, held-p.Useful)
	return p
}
