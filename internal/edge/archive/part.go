package archive

import (
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire"
)

// NewPart makes a part of the facts with which an actor's Snapshot says a job. The gate's part gets its entry from them.
// Errors: Invalid where the facts are not such, or too large.
func NewPart(role protocol.Role, name job.ID, generation job.Generation, facts []protocol.Fact) (Part, error) {
	p := Part{Role: role, Job: name, Generation: generation, Data: wire.AppendFacts(nil, facts)}
	for i := range facts {
		if facts[i].Job != name {
			return Part{}, errkind.Errorf(errkind.Invalid, "archive: fact %d of job %q is filed under job %q", facts[i].Kind, facts[i].Job,
				name)
		}
	}
	if role == protocol.Gate {
		p.Entry = entryOf(name, generation, facts)
	}
	return p, p.Check()
}

// entryOf reads the index's entry off the gate's facts; nil if they are not a finished job's.
func entryOf(name job.ID, generation job.Generation, facts []protocol.Fact) *Entry {
	e := &Entry{Job: name, Generation: generation}
	for i := range facts {
		f := &facts[i]
		switch f.Kind {
		case protocol.JobAccepted:
			e.Submitted = f.At
			if spec := f.Body.(*protocol.Acceptance).Spec; spec != nil {
				e.Queue, e.Owner, e.Workdir = spec.Queue, spec.Owner, spec.Launch.Workdir
			}
		case protocol.JobRequeued: // another life, which waits from here
			e.Submitted = f.At
		case protocol.JobClosed:
			e.State, e.Ended = f.Body.(*protocol.Final).Verdict.State, f.At
		}
	}
	if !e.State.Final() {
		return nil
	}
	return e
}

// ReadOwner has the entry say again whose the job is, from what was filed: a part that is recalled does not. What can't be read leaves it
// unknown.
func (p *Part) ReadOwner() {
	if p.Entry == nil {
		return
	}
	facts, err := p.Facts()
	if err != nil {
		return
	}
	if e := entryOf(p.Job, p.Generation, facts); e != nil {
		p.Entry.Owner = e.Owner
	}
}

// Facts hands out what the actor filed, in order. Errors: Corrupt.
func (p *Part) Facts() ([]protocol.Fact, error) {
	var facts []protocol.Fact
	err := wire.DecodeFacts(p.Data, func(f protocol.Fact) error {
		facts = append(facts, f)
		return nil
	})
	if err != nil {
		return nil, errkind.Errorf(errkind.Corrupt, "archive: job %s: %w", p.Job, err)
	}
	return facts, nil
}

// maxNames bounds the names in an entry, in bytes.
const maxNames = 1024

// Check says what is wrong with a part, with kind Invalid.
func (p *Part) Check() error {
	switch {
	case p.Role != protocol.Gate && p.Role != protocol.Zone:
		return errkind.Errorf(errkind.Invalid, "archive: job %s: a party of role %d files nothing", p.Job, p.Role)
	case !job.ValidID(p.Job):
		return errkind.Errorf(errkind.Invalid, "archive: %.80q is not the name of a job", p.Job)
	case p.Generation == 0:
		return errkind.Errorf(errkind.Invalid, "archive: job %s is filed without its generation", p.Job)
	case (p.Role == protocol.Gate) != (p.Entry != nil):
		return errkind.Errorf(errkind.Invalid, "archive: job %s: what is filed of it does not say when it was submitted, its queue, and "+
			"how it ended", p.Job)
	case p.Entry != nil && (p.Entry.Job != p.Job || p.Entry.Generation != p.Generation || !p.Entry.State.Final()):
		return errkind.Errorf(errkind.Invalid, "archive: job %s generation %d has the entry of job %s generation %d, %s", p.Job,
			p.Generation,
			p.Entry.Job, p.Entry.Generation, p.Entry.State)
	case p.Entry != nil && len(p.Entry.Queue)+len(p.Entry.Owner)+len(p.Entry.Workdir) > maxNames:
		return errkind.Errorf(errkind.Invalid, "archive: job %s: the names of its queue, owner and work directory have more than %d bytes",
			p.Job, maxNames)
	case len(p.Data) == 0 || len(p.Data) > MaxPart:
		return errkind.Errorf(errkind.Invalid, "archive: job %s: %d bytes are filed of it, want 1 to %d", p.Job, len(p.Data), MaxPart)
	}
	return nil
}

// CheckFiling says what is wrong with the parts of one call of File, with kind Invalid.
func CheckFiling(parts []Part) error {
	if len(parts) > MaxParts {
		return errkind.Errorf(errkind.Invalid, "archive: %d parts at once, want at most %d", len(parts), MaxParts)
	}
	size := 0
	for i := range parts {
		if err := parts[i].Check(); err != nil {
			return err
		}
		size += len(parts[i].Data)
	}
	if size > MaxFiling {
		return errkind.Errorf(errkind.Invalid, "archive: %d bytes at once, want at most %d", size, MaxFiling)
	}
	return nil
}

// CheckDiscard does the same for Discard.
func CheckDiscard(list []Discarded) error {
	if len(list) > MaxParts {
		return errkind.Errorf(errkind.Invalid, "archive: %d jobs to discard at once, want at most %d", len(list), MaxParts)
	}
	return nil
}
