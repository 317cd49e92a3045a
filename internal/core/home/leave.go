package home

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A job whose home is drained is given up to another zone. From HomeLeaving on nothing more of it is sold here; what runs runs to its end, and what is
// committed is published. A job that ends by that is over here, and stays. Any other is then at rest: nothing that could change it is left, its
// record goes out as often as it is asked for, and Forget drops it. Since a job at rest never ends here, and the other zone has no record before, exactly one zone may sell it.

// Leaving is why a job is given up to another zone; empty while it is not.
func (j *Job) Leaving() string { return j.fate().moving }

// rests says whether the job is given up, and nothing of it will change here any more. Once true it stays so: what would end the job is guarded by it.
func (j *Job) rests() bool {
	w := j.work()
	return j.Leaving() != "" && !j.fate().verdict.State.Final() && len(w.claims) == 0 && len(w.unpublished) == 0 && w.asking == 0
}

// Surrender gives a job up, and says so once nothing of it is sold.
func (h *Ledger) Surrender(in *protocol.Message, m *protocol.Moving, out *protocol.Out) {
	j := h.Job(in.Job)
	if j == nil || !j.lives(in) || j.fate().verdict.State.Final() || m.Text == "" {
		return
	}
	if j.Leaving() != m.Text {
		h.fact(out, protocol.Fact{Kind: protocol.HomeLeaving, Job: j.ID, Generation: j.Generation, Text: m.Text})
	}
	h.surrendered(j, out)
}

// surrendered sends the record of a job that is at rest. It is said again to whoever asks again.
func (h *Ledger) surrendered(j *Job, out *protocol.Out) {
	if j.rests() {
		h.Send(out, protocol.Message{Kind: protocol.Surrendered, To: h.cfg.Gates.Of(j.ID), Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, Body: j.Record()})
	}
}

// applyLeaving has a job sold no more.
func (h *Ledger) applyLeaving(j *Job, why string) {
	h.parts(j, -1)
	j.makeFate().moving = why
	h.parts(j, 1)
	h.retire(j)
	h.touch(j) // a continuation that was to be asked for is not
}

// parts counts a busy job that is given up.
func (h *Ledger) parts(j *Job, n int) {
	if j.Leaving() != "" && j.work().slots.busy != 0 {
		h.parting += n
	}
}

// takeOver makes the ledger the home of a job that another zone has surrendered. What was learned there is kept; whether it can go on is judged here.
func (h *Ledger) takeOver(now quantity.Instant, in *protocol.Message, a *protocol.Adoption, out *protocol.Out) {
	r := *a.Record
	r.Job, r.Epoch, r.Generation, r.Held = in.Job, in.Epoch, in.Generation.Number(), a.Held
	h.fact(out, protocol.Fact{Kind: protocol.HomeKept, Job: in.Job, Record: &r})
	h.learnQueue(a.Queue, out)
	j := h.Job(in.Job)
	h.watch.Came(now, j)
	h.settled(now, j, out)
}

// movable says whether a record is one that may be taken over.
func movable(in *protocol.Message, r *protocol.Record) bool {
	return r.Job == in.Job && r.Spec != nil && r.Spec.CheckNames(in.Job) == nil && job.ValidName(r.Queue) && len(r.Claims)+len(r.Claimed)+len(r.Unpublished) == 0 && !r.Verdict.State.Final()
}
