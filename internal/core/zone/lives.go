package zone

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// lives says whether a message of the gate is about the present life of the job.
func (s *state) lives(in *protocol.Message) bool {
	return s.Epoch == in.Epoch && s.Generation == in.Generation.Number()
}

// admits makes way for the life that an Adopt brings, and says whether it is, or may now become, the present one. A later
// life of the same work goes on from the record that is here; of other work nothing is kept.
func (z *Zone) admits(now quantity.Instant, s *state, in *protocol.Message, out *protocol.Out) bool {
	of := in.Generation.Number()
	switch {
	case s == nil:
		return of > z.buried.last(in.Job)
	case of == s.Generation:
		if s.fate().verdict.State.Final() && s.Submitted < in.At {
			// Both are from before there were lives: the gate had forgotten the one that is here, and Forget was lost.
			z.fact(out, protocol.Fact{Kind: protocol.HomeDropped, Job: in.Job})
		}
		return true
	case of < s.Generation:
		return false // it was long under way
	case !s.fate().verdict.State.Final():
		// The gate knows it as over: it was taken home by an Adopt that came when it had been dropped.
		z.end(now, s, job.Verdict{State: job.Cancelled, Reason: "a later life of it has begun"}, out)
		return false
	case in.Since.Number() > s.Generation:
		z.fact(out, protocol.Fact{Kind: protocol.HomeDropped, Job: in.Job, Generation: s.Generation})
		return true
	}
	z.reopenHome(now, s, in, out)
	return true
}

// reopenHome begins another life of a job that is over. What it has committed stays, and what was learned of its run time and
// memory, unless that would end it again before anything ran.
func (z *Zone) reopenHome(now quantity.Instant, s *state, in *protocol.Message, out *protocol.Out) {
	z.fact(out, protocol.Fact{Kind: protocol.HomeReopened, Job: s.Job, Generation: in.Generation.Number(), Spec: in.Spec, At: in.At})
	if in.Flag {
		z.fact(out, protocol.Fact{Kind: protocol.HomeHeld, Job: s.Job, Flag: true})
	}
	if z.hopeless(s) != "" {
		z.fact(out, protocol.Fact{Kind: protocol.Calibrated, Job: s.Job, Learned: &protocol.Learned{Trust: s.learned().Trust, Peak: s.learned().Peak}})
		z.instruct(s, out)
	}
	z.settled(now, s, out)
}

// applyReopened makes a job that is over one that waits. Its wait begins anew: it is not put before those that came while it
// was over. What ended it counts no more.
func (z *Zone) applyReopened(s *state, f *protocol.Fact) {
	z.strike(s) // it stands elsewhere in lists from now on
	s.Generation, s.Submitted = f.Generation, f.At
	s.Spec, s.specSum = z.specs.Share(f.Spec)
	s.Held = false
	z.stay(s)
	s.sealed = nil
	if w := s.sold; w != nil {
		w.started, w.served, w.forgiven = 0, 0, w.skipped.Len()
	}
	if l := s.lessons; l != nil {
		l.Failures, l.Kills, l.LastDetail, l.Suspects = 0, 0, "", nil
	}
	if t := s.trouble; t != nil {
		t.ailed, t.notBefore = ailed{}, 0
		z.resting.Set(&t.slots.resting, s, quantity.Never)
	}
	s.keepRigid()
	s.rigid.LookAnew()
	s.floor.Forgive()
	z.floor.DropRecall(&s.floor)
	z.enliven(s)
	z.changed(s)
}

// forget drops a job that is over. One that is not is ended first: the gate does not know it any more.
func (z *Zone) forget(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	s, of := z.jobs[in.Job], in.Generation.Number()
	if s != nil && s.Epoch == in.Epoch && s.Generation <= of {
		if !s.fate().verdict.State.Final() {
			z.end(now, s, job.Verdict{State: job.Cancelled, Reason: "it was forgotten"}, out)
		}
		if !s.fate().verdict.State.Final() {
			return // the gate asks again
		}
		z.fact(out, protocol.Fact{Kind: protocol.HomeDropped, Job: in.Job, Generation: s.Generation})
	}
	z.send(out, protocol.Message{Kind: protocol.Forgotten, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: of})
}
