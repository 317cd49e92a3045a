package home

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A job that is over is told of until the gate confirms it, and then, where there is an archive, leaves to it
// (docs/adr/0022-archive.md). What is said of it then is answered from the record that the driver finds there and hands on with
// the message; another life of it takes the record back.

// mostClosing is how many verdicts are said in one interval of Config.Retry and not confirmed. After a restart all of those that
// are kept are said again.
const mostClosing = 1024

// close has the gate told of a job's verdict.
func (h *Ledger) close(j *Job) {
	f := j.makeFate()
	f.closing = h.closing.Say(f.closing, j)
}

// stay takes a job out of those that are closed, and of those that leave.
func (h *Ledger) stay(j *Job) {
	if f := j.sealed; f != nil {
		f.closing, f.leaving = h.closing.Confirm(f.closing), h.leaving.Drop(f.leaving)
	}
}

// ClosedAck: the gate has a job's verdict.
func (h *Ledger) ClosedAck(in *protocol.Message) {
	if j := h.Job(in.Job); j != nil && j.lives(in) {
		f := j.makeFate()
		f.acked, f.closing = true, h.closing.Confirm(f.closing)
		h.mayLeave(j)
	}
}

// mayLeave has a job leave in its time if nothing more is to become of it: the gate has its verdict, and all of its output is in
// its place.
func (h *Ledger) mayLeave(j *Job) {
	if f := j.sealed; f != nil && f.acked && f.verdict.State.Final() && (len(j.work().unpublished) == 0 || planted.In(planted.LeaveUnpublished)) {
		f.leaving = h.leaving.Put(f.leaving, j, f.ended)
	}
}

// sayClosed tells the gate of verdicts, and the archive of jobs that leave.
func (h *Ledger) sayClosed(now quantity.Instant, out *protocol.Out) {
	h.looking = h.looking[:0]
	for j, ok := h.closing.Next(now); ok; j, ok = h.closing.Next(now) {
		h.looking = append(h.looking, j)
		if planted.In(planted.ForgetClosing) {
			j.sealed.closing = h.closing.Confirm(j.sealed.closing)
		}
	}
	slices.SortFunc(h.looking, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	for _, j := range h.looking {
		h.Send(out, protocol.Message{Kind: protocol.Closed, To: h.cfg.Gates.Of(j.ID), Job: j.ID, Epoch: j.Epoch, Generation: j.Generation, Body: out.Closing(protocol.Closing{Verdict: j.fate().verdict, At: j.fate().ended})})
	}
	due := h.leaving.Due(now)
	slices.SortFunc(due, func(a, b *Job) int { return cmp.Compare(a.ID, b.ID) })
	for _, j := range due {
		filed := j.AppendFacts(nil)
		filed[0].Actor = h.self
		h.Send(out, protocol.Message{Kind: protocol.File, To: protocol.Address{Role: protocol.Archive}, Job: j.ID, Generation: j.Generation, Filed: filed})
	}
}

// Archived lets go of a job that the archive has. What it has of an earlier life changes nothing.
func (h *Ledger) Archived(in *protocol.Message, out *protocol.Out) {
	if j := h.Job(in.Job); j != nil && j.fate().leaving != nil && j.Generation == in.Generation.Number() {
		h.fact(out, protocol.Fact{Kind: protocol.HomeArchived, Job: j.ID, Generation: j.Generation})
	}
}

// attainedArchived adds to what archived jobs of a queue have attained. Jobs that leave attain no less for their queue by it.
func (h *Ledger) attainedArchived(q *Queue, more int64) {
	h.sum -= queueSum(q)
	was := q.standing.Archived
	q.standing.Queue, q.standing.Archived = q.Name, max(0, was+more)
	h.sum += queueSum(q)
	if more < 0 {
		q.attained += q.standing.Archived - was
	}
}

// Recalls implements protocol.Archivist.
func (h *Ledger) Recalls(m *protocol.Message) (name job.ID, ok bool) {
	switch m.Kind {
	case protocol.Adopt, protocol.Forget, protocol.Result:
		return m.Job, h.Job(m.Job) == nil
	}
	return "", false
}

// recalled is the archived record of the job that a message is about; nil if the job is here, if there is none, or if it was
// forgotten and is on its way out.
func (h *Ledger) recalled(in *protocol.Message) *Job {
	if len(in.Filed) == 0 || h.Job(in.Job) != nil || in.Filed[0].Record == nil {
		return nil
	}
	j := h.Outsider(in.Filed[0].Record)
	if j.Generation <= h.buried.last(j.ID) {
		return nil
	}
	return j
}

// AnswerArchived takes a message about an archived job in. It is false where the message is to be taken in as any other: it is not
// about one, or the job was taken back for its next life, or made way for another one of its name.
func (h *Ledger) AnswerArchived(in *protocol.Message, out *protocol.Out) bool {
	j := h.recalled(in)
	if j == nil {
		return false
	}
	dropped := protocol.Fact{Kind: protocol.HomeDropped, Job: j.ID, Generation: j.Generation, Count: j.work().attained, Text: j.q.Name}
	switch of := in.Generation.Number(); in.Kind {
	case protocol.Adopt:
		a := in.Body.(*protocol.Adoption)
		switch record := *in.Filed[0].Record; {
		case of == j.Generation && j.Submitted < a.At: // as admits has it
			dropped.Generation = 0
			h.fact(out, dropped)
			return false
		case a.Since.Number() > j.Generation:
			h.fact(out, dropped)
			return false
		case a.Record != nil && j.Epoch < in.Epoch:
			return false // what a home surrenders is newer than what it, or one before it, has filed
		case in.Epoch < j.Epoch: // it was long under way
		case of > j.Generation && in.Epoch > j.Epoch: // filed by a home that has left: its queues' standing is gone with it
			record.Epoch = in.Epoch
			h.fact(out, protocol.Fact{Kind: protocol.HomeKept, Job: j.ID, Record: &record})
			h.learnQueue(a.Queue, out)
			return false
		case of > j.Generation:
			h.fact(out, protocol.Fact{Kind: protocol.HomeKept, Job: j.ID, Record: in.Filed[0].Record, Flag: true})
			return false
		case j.lives(in):
			h.Send(out, protocol.Message{Kind: protocol.Adopted, To: h.cfg.Gates.Of(in.Job), Job: in.Job, Epoch: in.Epoch, Generation: j.Generation})
		}
	case protocol.Forget:
		if j.Epoch == in.Epoch && j.Generation <= of {
			h.fact(out, dropped)
		}
		h.Send(out, protocol.Message{Kind: protocol.Forgotten, To: in.From, Job: in.Job, Epoch: in.Epoch, Generation: of})
	case protocol.Result:
		counts := &protocol.Acknowledgement{}
		if j.Epoch == in.Epoch {
			counts.Range = j.answered(in.Token)
		}
		h.Send(out, protocol.Message{Kind: protocol.ResultAck, To: in.From, Token: in.Token, Job: in.Job, Body: counts})
	default:
		return false
	}
	return true
}
