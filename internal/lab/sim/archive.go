package sim

import (
	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/archive"
)

// recalled is a message with what a party has archived of the job that it is about, if it does not have that job itself.
func (s *ground) recalled(p int, m protocol.Message) protocol.Message {
	a, ok := s.parties[p].Actor.(protocol.Archivist)
	if !ok {
		return m
	}
	name, ok := a.Recalls(&m)
	if !ok {
		return m
	}
	part, ok, err := s.o.Archive.Recall(s.parties[p].Address.Role, name)
	if ok && err == nil {
		m.Filed, err = part.Facts()
	}
	invariant.Check(err == nil, "the archive gives nothing of job %s to %s: %v", name, actor.Name(s.parties[p].Address), err)
	return m
}

// file does at once what an actor says to the archive, which no crash takes down, and answers.
func (s *ground) file(m *protocol.Message) {
	invariant.Check(s.o.Archive != nil, "%s files job %s, and there is no archive", actor.Name(m.From), m.Job)
	answer := protocol.Message{Kind: protocol.Archived, From: m.To, To: m.From, Job: m.Job, Generation: m.Generation,
		Body: &protocol.Archival{}}
	var err error
	if m.Kind == protocol.Purge {
		answer.Kind = protocol.Purged
		err = s.o.Archive.Discard([]archive.Discarded{{Job: m.Job, UpTo: m.Generation - 1}})
	} else {
		var part archive.Part
		if part, err = archive.NewPart(m.From.Role, m.Job, m.Generation.Number(), m.Filed); err == nil {
			err = s.o.Archive.File([]archive.Part{part})
		}
	}
	invariant.Check(err == nil, "the archive does not take job %s from %s: %v", m.Job, actor.Name(m.From), err)
	if !s.parties[s.index[m.From]].down {
		s.enqueue(&answer)
	}
}
