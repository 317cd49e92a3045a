package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/drive/measure"
)

func slotNumber(i int32) measure.Slot { return measure.Slot(i) }

// began notes whose run it is, and tells that it holds its slices.
func (s *Sim) began(r *run) {
	i, ok := s.slots[r.start.Job]
	if !ok {
		return
	}
	j := &s.jobs[i]
	r.slot, r.attempt = i, j.runs
	j.runs++
	j.untold++
	if s.o.Observer != nil {
		s.o.Observer.Began(s.now, slotNumber(i), r.place.class, r.width())
	}
}

// width is how many slices a run holds.
func (r *run) width() int32 { return int32(1 + len(r.start.Also)) }

// heard takes in what a zone has decided: what of a run counts, and the end of a job.
func (s *Sim) heard(f *protocol.Fact) {
	switch f.Kind {
	case protocol.Committed, protocol.Released:
		r := s.machine.runs[f.Token]
		if r == nil || r.known {
			return
		}
		r.known = true
		if f.Kind == protocol.Committed && !f.Skipped {
			r.committed = f.Range
		}
		s.tell(r)
	case protocol.Ended:
		if i, ok := s.slots[f.Job]; ok {
			s.done(i, f.Verdict.State)
		}
	}
}

// measured notes the memory that a run of a job of the source has used: truly, and as its result says. What can be seen of
// it on a slice is never more than there is.
func (s *Sim) measured(r *run) {
	if r.slot == none || s.o.Model != nil {
		return
	}
	j := &s.jobs[r.slot]
	most := highest(&j.Memory, units(&j.Job, j.spec, r.rng.From), r.entered(j, s.now), r.attempt)
	r.Peak[trp.Memory] = most
	r.result.Peak[trp.Memory] = min(most, r.place.slice.Capacity[trp.Memory])
}

// entered is the job's unit that a run was at when it ended.
func (r *run) entered(j *slot, at quantity.Instant) int64 {
	last := units(&j.Job, j.spec, r.rng.To) - 1
	if j.spec.Total == j.Units {
		return min(last, r.complete(at))
	}
	ran := max(0, at.Sub(r.begin)-r.Restore)
	unit := quantity.MulDiv(int64(ran), j.Units, int64(r.PerUnit)) // rounded up
	if unit > 0 && quantity.MulDiv(int64(r.PerUnit), unit, j.Units) > int64(ran) {
		unit--
	}
	return min(last, unit)
}

// settled is the end of everything about a run.
func (s *Sim) settled(r *run) {
	r.known = true
	s.tell(r)
}

// tell the observer of a run that has left its slices and whose worth is known, once.
func (s *Sim) tell(r *run) {
	if r.slot == none || !r.known || r.result == nil {
		return
	}
	s.piece(r)
	i := r.slot
	r.slot = none
	s.jobs[i].untold--
	s.release(i)
}

// Cut ends the observation here: it tells of every run that still holds slices, and of those whose worth is not known yet.
// Nothing that they did counts, and those that still run have no outcome. Call it once, after the last Run.
func (s *Sim) Cut() {
	for p := 2; p < len(s.parties); p++ {
		for _, r := range s.machine.of(p) {
			if r.slot == none {
				continue
			}
			if r.result == nil {
				r.left = s.now
			}
			s.piece(r)
			r.slot = none
		}
	}
}

func (s *Sim) piece(r *run) {
	if s.o.Observer == nil {
		return
	}
	j := &s.jobs[r.slot]
	p := measure.Piece{
		Slot: slotNumber(r.slot), Class: r.place.class, First: r.place.number, Slices: r.width(), Start: r.begin, End: r.left,
		Peak: r.Peak[trp.Memory], Demand: r.start.Demand[trp.Memory], Excess: r.Peak[trp.Memory] > r.place.slice.Capacity[trp.Memory],
	}
	held := p.End.Sub(p.Start)
	if r.result != nil {
		p.Outcome = r.result.Outcome
		p.Overhead = r.Restore
		if r.result.Checkpoint || r.result.Outcome == job.Yielded && !r.committed.Empty() {
			p.Overhead += j.Checkpoint
		} else if r.result.Outcome == job.Done {
			p.Overhead += r.last()
		}
	}
	if n := r.committed.Len(); n > 0 {
		p.Work = work(&j.Job, j.spec, r.committed.To) - work(&j.Job, j.spec, r.committed.From)
		p.Useful = min(held, time.Duration(n)*r.PerUnit)
	}
	p.Overhead = min(p.Overhead, held-p.Useful)
	s.o.Observer.Ended(s.now, &p)
}
