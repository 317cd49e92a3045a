package archivist

import (
	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/archive"
)

// Recall hands an actor what it has archived of the job that a message is about, if it does not have that job itself. After an error the
// message must not be stepped, since the actor would take the job for one that is not there.
func (a *Archivist) Recall(p *actor.Party, m *protocol.Message) (err error) {
	if a == nil {
		return nil
	}
	who, ok := p.Actor.(protocol.Archivist)
	if !ok {
		return nil
	}
	if name, ok := who.Recalls(m); ok {
		m.Filed, _, err = a.Filed(p.Address.Role, name)
	}
	return err
}

// Filed returns what an actor has archived of a job, and the life that it is of; nil and 0 if there is nothing.
func (a *Archivist) Filed(role protocol.Role, name job.ID) ([]protocol.Fact, job.Generation, error) {
	if a == nil {
		return nil, 0, nil
	}
	part, ok, err := a.archive.Recall(role, name)
	if err != nil || !ok {
		return nil, 0, err
	}
	facts, err := part.Facts()
	for i := range facts {
		a.renames.Fact(&facts[i])
	}
	return facts, part.Generation, err
}

// Life returns the life of a job that the gate has left to the archive, 0 if there is none.
func (a *Archivist) Life(name job.ID) (job.Generation, error) {
	if a == nil {
		return 0, nil
	}
	part, _, err := a.archive.Recall(protocol.Gate, name)
	return part.Generation, err
}

// Agent is the acceptance of an archived external job, which its agent's key is made of; nil: there is none.
func (a *Archivist) Agent(name job.ID) *protocol.Acceptance {
	facts, _, err := a.Filed(protocol.Gate, name)
	if err != nil {
		a.log.Error("what was archived of a job can not be read", "job", string(name), "error", err)
	}
	for i := range facts {
		if a, ok := facts[i].Body.(*protocol.Acceptance); ok && a.Spec != nil && a.Spec.External {
			return a
		}
	}
	return nil
}

// NeedsWorkdir reports whether an archived job needs that stored work directory.
func (a *Archivist) NeedsWorkdir(id string) (bool, error) {
	if a == nil {
		return false, nil
	}
	return a.archive.NeedsWorkdir(id)
}

// Archive returns the archive, for those who only read; nil without one.
func (a *Archivist) Archive() archive.Archive {
	if a == nil {
		return nil
	}
	return a.archive
}

// Full returns why nothing can be filed for now; empty if it can.
func (a *Archivist) Full() string {
	if a != nil {
		if why := a.full.Load(); why != nil {
			return *why
		}
	}
	return ""
}
