package zone

import (
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/outbox"
	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// A commit says that a range counts; its output is moved to its place only then, by its node. Until the node has said
// Published nobody is told that the range is committed, and no job that it is COMPLETED: whoever is told finds it.

// mostAsked bounds how many publications of one job are asked about at once.
const mostAsked = 16

// mostPublishing bounds of how many jobs the publications are asked about in one step: after a restart all are due at once.
const mostPublishing = 256

// complete says that all of the job is committed, whether or not all of it is published.
func (j *Job) complete() bool { return j.work().committed.Len() == j.Spec.Total }

// unpublished is how many committed units nobody is told of yet.
func (j *Job) unpublished() (n int64) {
	for i := range j.work().unpublished {
		n += j.work().unpublished[i].Range.Len()
	}
	return n
}

func (j *Job) publication(t job.Token) (int, bool) {
	return slices.BinarySearchFunc(j.work().unpublished, t, func(p protocol.Publication, t job.Token) int { return p.Token.Compare(t) })
}

// awaitPublication notes a commit whose output is to be published.
func (z *Zone) awaitPublication(j *Job, c *protocol.Claim, committed job.Range) {
	w := j.makeWork()
	if i, found := j.publication(c.Token); !found {
		w.unpublished = slices.Insert(w.unpublished, i, protocol.Publication{Token: c.Token, Node: c.Node, Range: committed})
	}
	z.armPublications(j)
}

// applyPublished folds an OutputPublished.
func (z *Zone) applyPublished(j *Job, t job.Token) {
	w := j.makeWork()
	if i, found := j.publication(t); found {
		w.unpublished = slices.Delete(w.unpublished, i, i+1)
	}
	w.publishTries = 0 // nodes publish
	z.armPublications(j)
	z.mayLeave(j)
}

func (z *Zone) armPublications(j *Job) {
	w := j.sold
	if w == nil {
		return
	}
	at := quantity.Never
	if len(w.unpublished) > 0 {
		at = z.publishAgain(w)
	}
	z.publishing.Set(&w.slots.publishing, j, at)
}

// publishAgain is when nodes are asked again about a job's output: after Retry, which doubles while nothing is published.
func (z *Zone) publishAgain(w *work) quantity.Instant {
	return w.publishAsked.Add(z.cfg.Retry << min(w.publishTries, outbox.Doublings))
}

// published: the output of a commit is in its place.
func (z *Zone) published(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	j := z.jobs[in.Job]
	if j == nil {
		return
	}
	if _, found := j.publication(in.Token); !found {
		return
	}
	z.fact(out, protocol.Fact{Kind: protocol.OutputPublished, Job: j.ID, Token: in.Token})
	if len(j.work().claims) == 0 {
		z.settled(now, j, out)
	}
}

// askPublications says again what was committed, to nodes that have not said that it is published: what they said may be
// lost, or they may have forgotten it in a crash.
func (z *Zone) askPublications(now quantity.Instant, j *Job, out *protocol.Out) {
	w := j.makeWork()
	w.publishAsked = now
	w.publishTries++
	for range min(mostAsked, len(w.unpublished)) {
		w.publishTurn = (w.publishTurn + 1) % len(w.unpublished)
		p := &w.unpublished[w.publishTurn]
		z.send(out, protocol.Message{
			Kind: protocol.ResultAck, To: protocol.Address{Role: protocol.Node, ID: string(p.Node)}, Token: p.Token, Job: j.ID, Range: p.Range,
		})
	}
	z.armPublications(j)
}

// finished says that nothing of a job is left to wait for.
func (j *Job) finished() bool {
	return j.complete() && (len(j.work().unpublished) == 0 || planted.In(planted.FinishUnpublished))
}
