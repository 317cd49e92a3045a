package home

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Adopt makes the ledger a job's home. A job with a name that is none is ended where it arrives: nobody could ask for a place
// under it, and who submitted it is told why.
func (h *Ledger) Adopt(now quantity.Instant, in *protocol.Message, a *protocol.Adoption, out *protocol.Out) {
	j := h.Job(in.Job)
	if !h.admits(now, j, in, a, out) {
		return
	}
	switch j = h.Job(in.Job); {
	case j == nil && (a.Record != nil && !movable(in, a.Record) || a.Record == nil && in.Epoch > 1):
		return // to begin it anew would lose what is committed elsewhere
	case j == nil && a.Record != nil:
		h.takeOver(now, in, a, out)
		j = h.Job(in.Job)
	case j == nil:
		h.fact(out, protocol.Fact{Kind: protocol.HomeTaken, Job: in.Job, Epoch: in.Epoch, Generation: in.Generation.Number(), Spec: a.Spec, At: a.At})
		h.learnQueue(a.Queue, out)
		j = h.Job(in.Job)
		h.watch.Came(now, j)
		h.instruct(j, out)
		if a.Held {
			h.fact(out, protocol.Fact{Kind: protocol.HomeHeld, Job: in.Job, Flag: true})
		}
		if err := a.Spec.CheckNames(in.Job); err != nil {
			h.end(now, j, job.Verdict{State: job.Impossible, Reason: "it was accepted under a name that is none: " + err.Error()}, out)
		}
	}
	if j.lives(in) {
		h.Send(out, protocol.Message{Kind: protocol.Adopted, To: h.cfg.Gates.Of(in.Job), Job: in.Job, Epoch: in.Epoch, Generation: j.Generation})
	}
}

// learnQueue takes in the settings that come with a job.
func (h *Ledger) learnQueue(q *protocol.Queue, out *protocol.Out) {
	if q != nil && job.ValidName(q.Name) && h.queue(q.Name).Queue != *q {
		h.fact(out, protocol.Fact{Kind: protocol.QueueKnown, Queue: q})
		h.changedAll()
		// An Adopt that was long under way brings old settings: the gate sees which these are and corrects them.
		h.Send(out, protocol.Message{Kind: protocol.QueueChanged, To: h.cfg.Gates.First(), Body: q})
	}
}

// Expire ends a job that is worth nothing any more.
func (h *Ledger) Expire(now quantity.Instant, j *Job, why string, out *protocol.Out) {
	if !j.rests() {
		h.end(now, j, job.Verdict{State: job.Expired, Reason: why}, out)
	}
}

// end gives a job its final verdict as soon as no claim stands, and, where it failed, as soon as what counts of it is
// published: that is all there will be of it. Its owner's word waits for no node. Any verdict comes too late for a job of which all is
// committed: that one finishes, if its output is in its place in time. For how long either waits for its output, Closes says.
func (h *Ledger) end(now quantity.Instant, j *Job, v job.Verdict, out *protocol.Out) {
	if j.fate().verdict.State.Final() || j.Complete() && v.State != job.Finished && now < h.Closes(j) {
		return
	}
	if len(j.work().claims) > 0 || v.State == job.Failed && len(j.work().unpublished) > 0 && now < h.Closes(j) {
		if was := j.fate().dropping.State; was != v.State && was != job.Cancelled {
			h.drop(now, j, v)
		}
		return
	}
	h.fact(out, protocol.Fact{Kind: protocol.Ended, Job: j.ID, Verdict: v, At: now})
	h.stir(j) // its alarm at Closes is void
}

// standing finds the job and lease an answer of a node is about; nil if the claim no longer stands.
func (h *Ledger) standing(in *protocol.Message) (*Job, *Lease) {
	j := h.Job(in.Job)
	if j == nil {
		return nil, nil
	}
	l := j.Lease(in.Token)
	if l == nil {
		return nil, nil
	}
	return j, l
}

func (h *Ledger) changedAll() {
	for _, j := range h.live {
		h.changed(j)
	}
}

// Pause has a job pause on its owner's word, or go on.
func (h *Ledger) Pause(in *protocol.Message, p *protocol.Pause, out *protocol.Out) {
	if j := h.Job(in.Job); j != nil && j.lives(in) && j.Held != p.Held && !j.fate().verdict.State.Final() && !j.rests() {
		h.fact(out, protocol.Fact{Kind: protocol.HomeHeld, Job: in.Job, Flag: p.Held})
	}
	h.Send(out, protocol.Message{Kind: protocol.PauseJob, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: in.Generation, Body: &protocol.Pause{Held: p.Held}})
}

// QueueChanged takes in the settings of a queue.
func (h *Ledger) QueueChanged(in *protocol.Message, said *protocol.Queue, out *protocol.Out) {
	if q := h.queues[said.Name]; job.ValidName(said.Name) && (q == nil || q.Queue != *said) {
		h.fact(out, protocol.Fact{Kind: protocol.QueueKnown, Queue: said})
		h.changedAll()
	}
	h.Send(out, protocol.Message{Kind: protocol.QueueChanged, To: in.From, Body: said})
}

// Leased: a node has made a claim a lease.
func (h *Ledger) Leased(in *protocol.Message, out *protocol.Out) {
	if j, l, c, i := h.member(in); c != nil {
		h.memberLeased(j, l, c, i)
		return
	}
	switch j, l := h.standing(in); {
	case l == nil:
		h.disown(in, out)
	case !l.known:
		l.known = true
		h.taken(j, in.Token)
		h.stir(j)
	}
}

// RedeemRefused: it has not.
func (h *Ledger) RedeemRefused(now quantity.Instant, in *protocol.Message, r *protocol.Refusal, out *protocol.Out) {
	if j, l, c, i := h.member(in); c != nil {
		h.memberRefused(now, j, l, c, i, r.Text, out)
		return
	}
	if j, l := h.standing(in); j != nil {
		h.BackOff(now, j, nil, l.won, r.Text)
		h.fact(out, protocol.Fact{Kind: protocol.Released, Job: in.Job, Token: in.Token, Text: r.Text, At: now})
		h.settled(now, j, out)
	}
}

// Running: a subjob has begun.
func (h *Ledger) Running(in *protocol.Message, b *protocol.Beginning, out *protocol.Out) {
	if j, l, c, i := h.member(in); c != nil {
		h.memberLeased(j, l, c, i) // nobody runs without a lease
		if c.Token != in.Token {
			return // of a gang the first member's counts
		}
	}
	if j, l := h.standing(in); l != nil {
		h.runs(j, l, b.At)
	} else {
		h.disown(in, out)
	}
}

// Report: a subjob says how far it is, or its node that what it has left is being stored, or that its processes are not gone.
func (h *Ledger) Report(now quantity.Instant, in *protocol.Message, o *protocol.Observation, out *protocol.Out) {
	if o.Remains {
		h.remains(now, in, out)
		return
	}
	if o.Storing {
		h.storing(now, in)
	}
	if _, _, c, _ := h.member(in); c != nil && c.Token != in.Token {
		return // of a gang the first member's counts
	}
	if j, l := h.standing(in); l == nil {
		h.disown(in, out)
	} else {
		l.progress = max(l.progress, o.Progress)
		if l.running == 0 { // Running was lost
			h.runs(j, l, o.At)
		}
	}
}

// storing: a subjob has ended, and what it left is being stored. Of a gang any member's word counts for all: none is settled alone.
func (h *Ledger) storing(now quantity.Instant, in *protocol.Message) {
	j, l := h.standing(in)
	if l == nil {
		j, l, _, _ = h.member(in)
	}
	if l != nil {
		l.storing = now
		h.stir(j)
	}
}

// Recover is called once, after the last fact: everything outstanding is to be sent again.
func (h *Ledger) Recover(now quantity.Instant, out *protocol.Out) {
	h.since = now
	h.enlist()
	for _, j := range h.busy {
		h.stir(j)
	}
	doomed := []*Job(nil)
	for _, j := range h.live {
		h.watch.Came(now, j)
		if j.lessons != nil && h.hopeless(j) != "" {
			doomed = append(doomed, j)
		}
	}
	slices.SortFunc(doomed, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	for _, j := range doomed { // its verdict waited for its subjobs, or its output, and was forgotten
		h.settled(now, j, out)
	}
	if planted.In(planted.CommitWithoutClaim) {
		for len(h.busy) > 0 {
			j := h.busy[0]
			h.fact(out, protocol.Fact{Kind: protocol.Released, Job: j.ID, Token: j.work().claims[0].Token, At: now})
		}
	}
}
