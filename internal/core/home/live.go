package home

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Adopt makes the ledger a job's home. A job with a name that is none is ended where it arrives: nobody could ask for a place
// under it, and who submitted it is told why.
func (h *Ledger) Adopt(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	j := h.jobs[in.Job]
	if !h.admits(now, j, in, out) {
		return
	}
	if j = h.jobs[in.Job]; j == nil {
		h.fact(out, protocol.Fact{Kind: protocol.HomeTaken, Job: in.Job, Epoch: in.Epoch, Generation: in.Generation.Number(), Spec: in.Spec, At: in.At})
		if in.Queue != nil && job.ValidName(in.Queue.Name) && h.queue(in.Queue.Name).Queue != *in.Queue {
			h.fact(out, protocol.Fact{Kind: protocol.QueueKnown, Queue: in.Queue})
			h.changedAll()
			// An Adopt that was long under way brings old settings: the gate sees which these are and corrects them.
			h.Send(out, protocol.Message{Kind: protocol.QueueChanged, To: protocol.Address{Role: protocol.Gate}, Queue: in.Queue})
		}
		j = h.jobs[in.Job]
		h.watch.Came(now, j)
		h.instruct(j, out)
		if in.Flag {
			h.fact(out, protocol.Fact{Kind: protocol.HomeHeld, Job: in.Job, Flag: true})
		}
		if err := in.Spec.CheckNames(in.Job); err != nil {
			h.end(now, j, job.Verdict{State: job.Impossible, Reason: "it was accepted under a name that is none: " + err.Error()}, out)
		}
	}
	if j.lives(in) {
		h.Send(out, protocol.Message{Kind: protocol.Adopted, To: protocol.Address{Role: protocol.Gate}, Job: in.Job, Epoch: in.Epoch, Generation: j.Generation})
	}
}

// Cancel ends a job on its owner's word: at once if nothing of it runs, else when the last subjob is settled.
func (h *Ledger) Cancel(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	if j := h.jobs[in.Job]; j != nil && j.lives(in) {
		h.end(now, j, job.Verdict{State: job.Cancelled, Reason: in.Text}, out)
	}
}

// end gives a job its final verdict as soon as no claim stands, and, where it failed, as soon as what counts of it is
// published: that is all there will be of it. Its owner's word waits for no node, but comes too late for a job of which all is
// committed: that one finishes.
func (h *Ledger) end(now quantity.Instant, j *Job, v job.Verdict, out *protocol.Out) {
	if j.fate().verdict.State.Final() || j.Complete() && v.State != job.Finished {
		return
	}
	if len(j.work().claims) > 0 || v.State == job.Failed && len(j.work().unpublished) > 0 {
		if j.fate().dropping.State != v.State {
			j.makeFate().dropping = v
			for i := range j.work().leases {
				j.work().leases[i].sent = 0 // Stop goes out with the next look at what is overdue
			}
			h.touch(j)
		}
		return
	}
	h.fact(out, protocol.Fact{Kind: protocol.Ended, Job: j.ID, Verdict: v, At: now})
}

// standing finds the job and lease an answer of a node is about; nil if the claim no longer stands.
func (h *Ledger) standing(in *protocol.Message) (*Job, *Lease) {
	j := h.jobs[in.Job]
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
func (h *Ledger) Pause(in *protocol.Message, out *protocol.Out) {
	if j := h.jobs[in.Job]; j != nil && j.lives(in) && j.Held != in.Flag && !j.fate().verdict.State.Final() {
		h.fact(out, protocol.Fact{Kind: protocol.HomeHeld, Job: in.Job, Flag: in.Flag})
	}
	h.Send(out, protocol.Message{Kind: protocol.PauseJob, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: in.Generation, Flag: in.Flag})
}

// QueueChanged takes in the settings of a queue.
func (h *Ledger) QueueChanged(in *protocol.Message, out *protocol.Out) {
	if q := h.queues[in.Queue.Name]; job.ValidName(in.Queue.Name) && (q == nil || q.Queue != *in.Queue) {
		h.fact(out, protocol.Fact{Kind: protocol.QueueKnown, Queue: in.Queue})
		h.changedAll()
	}
	h.Send(out, protocol.Message{Kind: protocol.QueueChanged, To: in.From, Queue: in.Queue})
}

// Leased: a node has made a claim a lease.
func (h *Ledger) Leased(in *protocol.Message) {
	if j, l := h.standing(in); l != nil && !l.known {
		l.known = true
		h.taken(j, in.Token)
		h.stir(j)
	}
}

// RedeemRefused: it has not.
func (h *Ledger) RedeemRefused(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	if j, l := h.standing(in); j != nil {
		h.BackOff(now, j, nil, l.won, in.Text)
		h.fact(out, protocol.Fact{Kind: protocol.Released, Job: in.Job, Token: in.Token, Text: in.Text, At: now})
		h.settled(now, j, out)
	}
}

// Running: a subjob has begun.
func (h *Ledger) Running(in *protocol.Message) {
	if j, l := h.standing(in); l != nil {
		h.runs(j, l, in.At)
	}
}

// Report: a subjob says how far it is.
func (h *Ledger) Report(in *protocol.Message) {
	if j, l := h.standing(in); l != nil {
		l.progress = max(l.progress, in.Progress)
		if l.running == 0 { // Running was lost
			h.runs(j, l, in.At)
		}
	}
}

// Recover is called once, after the last fact: everything outstanding is to be sent again.
func (h *Ledger) Recover(now quantity.Instant, out *protocol.Out) {
	h.since = now
	h.enlist()
	for _, j := range h.busy {
		h.stir(j)
	}
	for _, j := range h.live {
		h.watch.Came(now, j)
	}
	if planted.In(planted.CommitWithoutClaim) {
		for len(h.busy) > 0 {
			j := h.busy[0]
			h.fact(out, protocol.Fact{Kind: protocol.Released, Job: j.ID, Token: j.work().claims[0].Token, At: now})
		}
	}
}
