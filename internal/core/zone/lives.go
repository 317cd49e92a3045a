package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// grave is a job that was dropped, up to this life of it: an Adopt that was under way then is not taken for a new job.
type grave struct {
	id   job.ID
	last job.Generation
}

// mostBuried bounds what is remembered of dropped jobs. No Adopt is under way for as long as this many are dropped.
const mostBuried = 1024

func (g *grave) hash() uint64 {
	return digest.New().Text("buried").Text(string(g.id)).Int(int64(g.last)).Sum()
}

// bury remembers a dropped job. Facts from before there were lives have no generation and nobody asks for it.
func (z *Zone) bury(id job.ID, last job.Generation) {
	if last == 0 {
		return
	}
	if i := slices.IndexFunc(z.buried, func(g grave) bool { return g.id == id }); i >= 0 {
		last = max(last, z.buried[i].last)
		z.exhume(i)
	} else if len(z.buried) == mostBuried {
		z.exhume(0)
	}
	z.buried = append(z.buried, grave{id, last})
	z.sum += z.buried[len(z.buried)-1].hash()
}

func (z *Zone) exhume(i int) {
	z.sum -= z.buried[i].hash()
	z.buried = slices.Delete(z.buried, i, i+1)
}

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
		return !slices.ContainsFunc(z.buried, func(g grave) bool { return g.id == in.Job && of <= g.last })
	case of == s.Generation:
		if s.Verdict.State.Final() && s.Submitted < in.At {
			// Both are from before there were lives: the gate had forgotten the one that is here, and Forget was lost.
			z.fact(out, protocol.Fact{Kind: protocol.HomeDropped, Job: in.Job})
		}
		return true
	case of < s.Generation:
		return false // it was long under way
	case !s.Verdict.State.Final():
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
		z.fact(out, protocol.Fact{Kind: protocol.Calibrated, Job: s.Job, Learned: &protocol.Learned{Trust: s.Learned.Trust, Peak: s.Learned.Peak}})
		z.instruct(s, out)
	}
	z.settled(now, s, out)
}

// applyReopened makes a job that is over one that waits. Its wait begins anew: it is not put before those that came while it
// was over. What ended it counts no more.
func (z *Zone) applyReopened(s *state, f *protocol.Fact) {
	z.strike(s) // it stands elsewhere in lists from now on
	s.Generation, s.Spec, s.Submitted = f.Generation, f.Spec, f.At
	s.parts.spec = digest.Optional(digest.New(), f.Spec).Sum()
	s.Verdict, s.Ended, s.Started, s.Served, s.Held = job.Verdict{}, 0, 0, 0, false
	s.Forgiven = s.Skipped.Len()
	s.Learned.Failures, s.Learned.Kills, s.Learned.LastDetail, s.Learned.Suspects = 0, 0, "", nil
	s.dropping, s.notBefore, s.acked = job.Verdict{}, 0, false
	if s.trouble != nil {
		s.trouble.ailed = ailed{}
	}
	s.keepRigid()
	s.rigid.LookAnew()
	s.floor.Forgive()
	z.floor.DropRecall(&s.floor)
	z.stay(s)
	z.resting.Set(&s.slots.resting, s, quantity.Never)
	z.enliven(s)
	z.changed(s)
}

// forget drops a job that is over. One that is not is ended first: the gate does not know it any more.
func (z *Zone) forget(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	s, of := z.jobs[in.Job], in.Generation.Number()
	if s != nil && s.Epoch == in.Epoch && s.Generation <= of {
		if !s.Verdict.State.Final() {
			z.end(now, s, job.Verdict{State: job.Cancelled, Reason: "it was forgotten"}, out)
		}
		if !s.Verdict.State.Final() {
			return // the gate asks again
		}
		z.fact(out, protocol.Fact{Kind: protocol.HomeDropped, Job: in.Job, Generation: s.Generation})
	}
	z.send(out, protocol.Message{Kind: protocol.Forgotten, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: of})
}
