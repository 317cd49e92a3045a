package host

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// recall hands an actor what it has archived of the job that a message is about, if it does not have that job itself. It says
// false where that can't be read: the message must not be stepped, since the actor would take the job for one that is not there.
func (h *Host) recall(p *actor.Party, m *protocol.Message) bool {
	if h.archivist == nil {
		return true
	}
	a, ok := p.Actor.(protocol.Archivist)
	if !ok {
		return true
	}
	name, ok := a.Recalls(m)
	if !ok {
		return true
	}
	facts, _, err := h.filed(p.Address.Role, name)
	if err != nil {
		h.unreadable(m, err)
		return false
	}
	m.Filed = facts
	return true
}

// filed is what an actor has archived of a job, and of which life; nil and 0 if that is nothing.
func (h *Host) filed(role protocol.Role, name job.ID) ([]protocol.Fact, job.Generation, error) {
	part, ok, err := h.archivist.archive.Recall(role, name)
	if err != nil || !ok {
		return nil, 0, err
	}
	facts, err := part.Facts()
	for i := range facts {
		h.renames.Fact(&facts[i])
	}
	return facts, part.Generation, err
}

// unreadable answers a person whose job's record can't be read; everybody else says it again.
func (h *Host) unreadable(m *protocol.Message, err error) {
	h.log.Error("what was archived of a job can not be read", "job", string(m.Job), "error", err)
	if m.From.Role == protocol.Person {
		h.calls.reply(protocol.Message{Kind: protocol.Reply, Body: &protocol.Receipt{Request: m.Body.(protocol.Requested).RequestID(), Err: errkind.Errorf(errkind.Of(err), "job %s: %w", m.Job, err)}, Job: m.Job}, h.position)
	}
}

// archivedLife is the life of a job that the gate has left to the archive, 0 if there is none.
func (h *Host) archivedLife(name job.ID) (job.Generation, error) {
	if h.archivist == nil {
		return 0, nil
	}
	part, _, err := h.archivist.archive.Recall(protocol.Gate, name)
	return part.Generation, err
}

// archivedView shows a job that its home has left to the archive, and which life of it that is; 0 for none.
func archivedView[T any](h *Host, name job.ID, filed func([]protocol.Fact) (T, bool, error), life func(*T) job.Generation) (v T, of job.Generation, err error) {
	if h.archivist == nil {
		return v, 0, nil
	}
	facts, _, err := h.filed(protocol.Zone, name)
	if err != nil || facts == nil {
		return v, 0, err
	}
	v, ok, err := filed(facts)
	if err == nil && !ok {
		err = errkind.Errorf(errkind.Corrupt, "what was archived of job %s does not show it", name)
	}
	return v, life(&v), err
}

// shown is what a zone that has nothing but the job shows of it.
func shown[T any](h *Host, name job.ID, view func(actor.Zone, quantity.Instant, job.ID) (T, bool)) func([]protocol.Fact) (T, bool, error) {
	return func(facts []protocol.Fact) (T, bool, error) {
		v, ok := view(folded(h.opts.Actors, facts), quantity.At(time.Now()), name)
		return v, ok, nil
	}
}

// folded is a zone that has nothing but what was filed: what it shows follows from the facts alone.
func folded(actors func() actor.Set, facts []protocol.Fact) actor.Zone {
	z := actors().Zones[0].Zone // any would show the same
	for _, f := range facts {
		z.Apply(f)
	}
	return z
}

// forgetter is a gate that says up to which life a job of a name was forgotten, while the archive still has it.
type forgetter interface {
	Forgotten(id job.ID) job.Generation
}

// forgotten belongs to the loop.
func (h *Host) forgotten(name job.ID) job.Generation {
	if g, ok := h.actors.Gates[0].Gate.(forgetter); ok {
		return g.Forgotten(name)
	}
	return 0
}

// witness is a gate that counts the jobs which the archive alone has, and knows how many changes that had counted.
type witness interface{ Archived() (jobs, changes int64) }

// openArchive opens the archive and holds it against the gate, which is its second witness: an archive with fewer jobs than the
// gate has left to it has lost some, and one that has counted fewer changes than it told the gate is an older copy. A journal that is
// gone is not taken for an empty one while there are jobs.
func (h *Host) openArchive() error {
	if h.opts.Archive == nil {
		return nil
	}
	var known, changes int64
	if g, ok := h.actors.Gates[0].Gate.(witness); ok {
		known, changes = g.Archived()
	}
	dir := filepath.Join(h.opts.DataDir, ArchiveDir)
	a, err := h.opts.Archive(dir, known > 0 || changes > 0)
	if err != nil {
		return fmt.Errorf("open the archive of jobs that are over: %w", err)
	}
	size, err := a.Size()
	missing := max(0, known-size.Jobs-size.GivenUp)
	switch {
	case err != nil:
	case h.fresh && size.Jobs > 0:
		err = errkind.Errorf(errkind.Corrupt, "%s has no journal, but an archive of %d jobs: restore the journal's directory from a backup; "+
			"or move the archive away to begin with no jobs. Nothing was removed", h.opts.DataDir, size.Jobs)
	case missing > 0 || int64(size.Changes) < changes:
		err = errkind.Errorf(errkind.Corrupt, "the archive in %s has %d jobs that are over after %d changes, and the journal knows of %d jobs and %d changes: "+
			"restore the archive's directory from a backup that is as new; or, to go on without what is missing, `sluice archive repair --data %s --without %d --change %d`",
			dir, size.Jobs, size.Changes, known-size.GivenUp, changes, h.opts.DataDir, missing, changes)
	}
	if err != nil {
		return errors.Join(err, a.Close())
	}
	h.archivist = newArchivist(a, h)
	go h.archivist.run()
	return nil
}

// archivedAgent is the digest of an archived external job, which its agent's key is made of.
func (h *Host) archivedAgent(name job.ID) (digest string, ok bool) {
	if h.archivist == nil {
		return "", false
	}
	facts, _, err := h.filed(protocol.Gate, name)
	if err != nil {
		h.log.Error("what was archived of a job can not be read", "job", string(name), "error", err)
	}
	for i := range facts {
		if f := &facts[i]; f.Kind == protocol.JobAccepted && f.Spec != nil && f.Spec.External {
			return f.Digest, true
		}
	}
	return "", false
}
