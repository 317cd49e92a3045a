package home

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/home/unplaced"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A commit says that a range counts; its output is moved to its place only then, by its node. Until the node has said
// Published nobody is told that the range is committed, and no job that it is COMPLETED: whoever is told finds it.

// mostPublished is how long a job of which nothing else is left waits for its output to be published. It is well over what a machine with
// many GPUs needs to start again: a verdict is not taken back, and who wants no more of the job cancels it.
const mostPublished = 30 * time.Minute

// mostAsked bounds how many publications of one job are asked about at once.
const mostAsked = 16

// mostPublishing bounds of how many jobs the publications are asked about in one step: after a restart all are due at once.
const mostPublishing = 256

// Complete says that all of the job is committed, whether or not all of it is published.
func (j *Job) Complete() bool { return j.work().committed.Len() == j.Spec.Total }

// Unpublished is how many committed units nobody is told of yet.
func (j *Job) Unpublished() (n int64) {
	list := j.work().unpublished
	for i := range list {
		if i == 0 || list[i].Range != list[0].Range { // all members of a gang have the same
			n += list[i].Range.Len()
		}
	}
	return n
}

// Published are the committed units whose output is in its place. Units that were given up have none.
func (j *Job) Published() (all job.Ranges) {
	w := j.work()
	all = slices.Clone(w.committed)
	for _, r := range w.skipped {
		all = all.Remove(r)
	}
	for i := range w.unpublished {
		all = all.Remove(w.unpublished[i].Range)
	}
	return all
}

// Awaited is how many committed subjobs are not published: the members of a gang are one.
func (j *Job) Awaited() int {
	if j.Spec.Kind == job.Rigid {
		return min(1, len(j.work().unpublished))
	}
	return len(j.work().unpublished)
}

// Publication is where among the publishing the one under a token stands, or would.
func (j *Job) Publication(t job.Token) (int, bool) {
	return slices.BinarySearchFunc(j.work().unpublished, t, func(p protocol.Publication, t job.Token) int { return p.Token.Compare(t) })
}

// awaitPublication notes a commit whose output is to be published.
func (h *Ledger) awaitPublication(j *Job, c *protocol.Claim, committed job.Range) {
	j.await(protocol.Publication{Token: c.Token, Node: c.Node, Range: committed})
	for i := range c.Members {
		j.await(protocol.Publication{Token: c.Members[i].Token, Node: c.Members[i].Node, Range: committed})
	}
	h.armPublications(j)
}

func (j *Job) await(p protocol.Publication) {
	w := j.makeWork()
	if i, found := j.Publication(p.Token); !found {
		w.unpublished = slices.Insert(w.unpublished, i, p)
	}
}

// applyPublished folds an OutputPublished.
func (h *Ledger) applyPublished(j *Job, t job.Token) {
	w := j.makeWork()
	if i, found := j.Publication(t); found {
		w.unpublished = slices.Delete(w.unpublished, i, i+1)
	}
	w.publishTries = 0 // nodes publish
	h.armPublications(j)
	h.stir(j)
	h.mayLeave(j)
}

func (h *Ledger) armPublications(j *Job) {
	w := j.sold
	if w == nil {
		return
	}
	at := quantity.Never
	if len(w.unpublished) > 0 {
		at = h.publishAgain(w)
	}
	h.publishing.Set(&w.slots.publishing, j, at)
}

// publishAgain is when nodes are asked again about a job's output: after Retry, which doubles while nothing is published.
func (h *Ledger) publishAgain(w *work) quantity.Instant {
	return w.publishAsked.Add(h.cfg.Retry << min(w.publishTries, outbox.Doublings))
}

// Published: the output of a commit is in its place.
func (h *Ledger) Published(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	j := h.Job(in.Job)
	if j == nil {
		return
	}
	if _, found := j.Publication(in.Token); !found {
		return
	}
	h.fact(out, protocol.Fact{Kind: protocol.OutputPublished, Job: j.ID, Token: in.Token})
	if len(j.work().claims) == 0 {
		h.settled(now, j, out)
	}
}

// askPublications says again what was committed, to nodes that have not said that it is published: what they said may be
// lost, or they may have forgotten it in a crash.
func (h *Ledger) askPublications(now quantity.Instant, j *Job, out *protocol.Out) {
	w := j.makeWork()
	w.publishAsked = now
	w.publishTries++
	for range min(mostAsked, len(w.unpublished)) {
		w.publishTurn = (w.publishTurn + 1) % len(w.unpublished)
		p := &w.unpublished[w.publishTurn]
		h.Send(out, protocol.Message{
			Kind: protocol.ResultAck, To: protocol.Address{Role: protocol.Node, ID: string(p.Node)}, Token: p.Token, Job: j.ID, Body: out.Acknowledgement(protocol.Acknowledgement{Range: p.Range}),
		})
	}
	h.armPublications(j)
}

// finished says that nothing of a job is left to wait for.
func (j *Job) finished() bool {
	return j.Complete() && (len(j.work().unpublished) == 0 || planted.In(planted.FinishUnpublished))
}

// Closes is when a job of which nothing is left, here or at all, but output to be published is over without it; Never for other jobs. It
// counts from when its last subjob was settled, or its home came up; a publication does not begin it anew. After a pause nodes speak first.
func (h *Ledger) Closes(j *Job) quantity.Instant {
	w, f := j.work(), j.fate()
	over := j.Complete() || f.dropping.State == job.Failed || f.moving != ""
	if !over || len(w.unpublished) == 0 || len(w.claims) > 0 || f.verdict.State.Final() || planted.In(planted.WaitUnpublished) {
		return quantity.Never
	}
	at := max(w.settled, h.since).Add(mostPublished)
	if j.Complete() {
		at = min(at, j.OverBy())
	}
	return max(h.hearing, at)
}

// unconfirmed is the verdict of a job whose output was not all published in time. The rest is published when its nodes are heard again.
func (j *Job) unconfirmed() job.Verdict {
	v, did, in, why := j.fate().dropping, "", mostPublished, j.Leaving()
	if j.Complete() {
		did = "all of it was done, but "
	}
	switch v.State {
	case job.Waiting:
		v.State = job.Failed
	case job.Cancelled:
		in, why = mostCancelling, v.Reason
	default:
		why = v.Reason
	}
	if why != "" {
		why += "; "
	}
	v.Reason = fmt.Sprintf("%s%snode %s did not say within %v that the output of %s is in its place: it comes when the node is heard again",
		why, did, unplaced.Nodes(j.work().unpublished), in, unplaced.Units(j.work().unpublished, j.Spec.UnitName()))
	return v
}
