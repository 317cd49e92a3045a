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
func (s *state) complete() bool { return s.work().committed.Len() == s.Spec.Total }

// unpublished is how many committed units nobody is told of yet.
func (s *state) unpublished() (n int64) {
	for i := range s.work().unpublished {
		n += s.work().unpublished[i].Range.Len()
	}
	return n
}

func (s *state) publication(t job.Token) (int, bool) {
	return slices.BinarySearchFunc(s.work().unpublished, t, func(p protocol.Publication, t job.Token) int { return p.Token.Compare(t) })
}

// awaitPublication notes a commit whose output is to be published.
func (z *Zone) awaitPublication(s *state, c *protocol.Claim, committed job.Range) {
	w := s.makeWork()
	if i, found := s.publication(c.Token); !found {
		w.unpublished = slices.Insert(w.unpublished, i, protocol.Publication{Token: c.Token, Node: c.Node, Range: committed})
	}
	z.armPublications(s)
}

// applyPublished folds an OutputPublished.
func (z *Zone) applyPublished(s *state, t job.Token) {
	w := s.makeWork()
	if i, found := s.publication(t); found {
		w.unpublished = slices.Delete(w.unpublished, i, i+1)
	}
	w.publishTries = 0 // nodes publish
	z.armPublications(s)
	z.mayLeave(s)
}

func (z *Zone) armPublications(s *state) {
	w := s.sold
	if w == nil {
		return
	}
	at := quantity.Never
	if len(w.unpublished) > 0 {
		at = z.publishAgain(w)
	}
	z.publishing.Set(&w.slots.publishing, s, at)
}

// publishAgain is when nodes are asked again about a job's output: after Retry, which doubles while nothing is published.
func (z *Zone) publishAgain(w *work) quantity.Instant {
	return w.publishAsked.Add(z.cfg.Retry << min(w.publishTries, outbox.Doublings))
}

// published: the output of a commit is in its place.
func (z *Zone) published(now quantity.Instant, in *protocol.Message, out *protocol.Out) {
	s := z.jobs[in.Job]
	if s == nil {
		return
	}
	if _, found := s.publication(in.Token); !found {
		return
	}
	z.fact(out, protocol.Fact{Kind: protocol.OutputPublished, Job: s.Job, Token: in.Token})
	if len(s.work().claims) == 0 {
		z.settled(now, s, out)
	}
}

// askPublications says again what was committed, to nodes that have not said that it is published: what they said may be
// lost, or they may have forgotten it in a crash.
func (z *Zone) askPublications(now quantity.Instant, s *state, out *protocol.Out) {
	w := s.makeWork()
	w.publishAsked = now
	w.publishTries++
	for range min(mostAsked, len(w.unpublished)) {
		w.publishTurn = (w.publishTurn + 1) % len(w.unpublished)
		p := &w.unpublished[w.publishTurn]
		z.send(out, protocol.Message{
			Kind: protocol.ResultAck, To: protocol.Address{Role: protocol.Node, ID: string(p.Node)}, Token: p.Token, Job: s.Job, Range: p.Range,
		})
	}
	z.armPublications(s)
}

// finished says that nothing of a job is left to wait for.
func (s *state) finished() bool {
	return s.complete() && (len(s.work().unpublished) == 0 || planted.In(planted.FinishUnpublished))
}
