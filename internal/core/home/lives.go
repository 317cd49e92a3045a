package home

import (
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// lives says whether a message of the gate is about the present life of the job.
func (j *Job) lives(in *protocol.Message) bool {
	return j.Epoch == in.Epoch && j.Generation == in.Generation.Number()
}

// admits makes way for the life that an Adopt brings, and says whether it is, or may now become, the present one. A later
// life of the same work goes on from the record that is here; of other work nothing is kept.
func (h *Ledger) admits(now quantity.Instant, j *Job, in *protocol.Message, a *protocol.Adoption, out *protocol.Out) bool {
	of := in.Generation.Number()
	switch {
	case j == nil:
		return of > h.buried.last(in.Job)
	case of == j.Generation:
		if j.fate().verdict.State.Final() && j.Submitted < a.At {
			// Both are from before there were lives: the gate had forgotten the one that is here, and Forget was lost.
			h.fact(out, protocol.Fact{Kind: protocol.HomeDropped, Job: in.Job})
		}
		return true
	case of < j.Generation:
		return false // it was long under way
	case j.rests():
		return false // the gate has it forgotten first
	case !j.fate().verdict.State.Final():
		// The gate knows it as over: it was taken home by an Adopt that came when it had been dropped.
		h.cancel(now, now, j, "a later life of it has begun", out)
		return false
	case a.Since.Number() > j.Generation:
		h.fact(out, protocol.Fact{Kind: protocol.HomeDropped, Job: in.Job, Generation: j.Generation})
		return true
	}
	h.reopenHome(now, j, in, a, out)
	return true
}

// reopenHome begins another life of a job that is over. What it has committed stays, and what was learned of its run time and
// memory, unless that would end it again before anything ran.
func (h *Ledger) reopenHome(now quantity.Instant, j *Job, in *protocol.Message, a *protocol.Adoption, out *protocol.Out) {
	h.fact(out, protocol.Fact{Kind: protocol.HomeReopened, Job: j.ID, Generation: in.Generation.Number(), Spec: a.Spec, At: a.At})
	if j.sold != nil {
		j.sold.settled = now
	}
	if a.Held {
		h.fact(out, protocol.Fact{Kind: protocol.HomeHeld, Job: j.ID, Flag: true})
	}
	if h.hopeless(j) != "" {
		h.fact(out, protocol.Fact{Kind: protocol.Calibrated, Job: j.ID, Learned: &protocol.Learned{Trust: j.Learned().Trust, Peak: j.Learned().Peak}})
		h.instruct(j, out)
	}
	h.settled(now, j, out)
}

// applyReopened makes a job that is over one that waits. Its wait begins anew: it is not put before those that came while it
// was over. What ended it counts no more.
func (h *Ledger) applyReopened(j *Job, f *protocol.Fact) {
	h.strike(j) // it stands elsewhere in lists from now on
	j.Generation, j.Submitted = f.Generation, f.At
	j.Spec, j.specSum = h.specs.Share(f.Spec)
	j.Held = false
	h.stay(j)
	j.sealed = nil
	if w := j.sold; w != nil {
		w.started, w.served, w.forgiven = 0, 0, w.skipped.Len()
	}
	if l := j.lessons; l != nil {
		l.Failures, l.Kills, l.LastDetail, l.Suspects = 0, 0, "", nil
	}
	if t := j.trouble; t != nil {
		t.ailed, t.outlived, t.notBefore = ailed{}, 0, 0
		h.resting.Set(&t.slots.resting, j, quantity.Never)
	}
	h.watch.Reopened(j)
	if !j.Complete() {
		h.enliven(j)
	}
	h.changed(j)
}

// Forget drops a job that is over, or that another zone has taken over. One that is not is ended first: the gate does not know it any more.
func (h *Ledger) Forget(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	j, of := h.Job(in.Job), in.Generation.Number()
	if j != nil && j.Epoch == in.Epoch && j.Generation <= of {
		if gone := j.fate().verdict.State.Final() || j.rests(); !gone {
			h.cancel(now, now, j, "it was forgotten", out)
		}
		if !j.fate().verdict.State.Final() && !j.rests() {
			return // the gate asks again
		}
		h.fact(out, protocol.Fact{Kind: protocol.HomeDropped, Job: in.Job, Generation: j.Generation})
	}
	h.Send(out, protocol.Message{Kind: protocol.Forgotten, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: of})
}
