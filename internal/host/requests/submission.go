package requests

import (
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/journal"
)

// Receipt answers a submission.
type Receipt struct {
	Name job.ID
	// Created is false if the same request, or the same name with the same content, was known already.
	Created bool
	// Generation of its present life, and how an earlier call's job ended, if it is over.
	Generation job.Generation
	Verdict    job.Verdict
	// Position of the journal at which the acceptance was durable: a second witness that the person holds.
	Position journal.Position
}

// Submission is one job that somebody submits.
type Submission struct {
	// Request identifies the call; empty: the host makes one.
	Request string
	Spec    *job.Spec
	// Replace replaces a finished job of that name, whose output, checkpoints and logs are removed. A job that is not over can't be
	// replaced (Conflict).
	Replace bool
	// Workdir is the digest of a work directory that is in the store already; empty: the job has the one that came along, if one did.
	Workdir string
}

// Outcome is what became of a submission.
type Outcome struct {
	Receipt
	Err error
}

// Store keeps work directories of jobs.
type Store interface {
	// PutWorkdir stores a work directory (tar.gz) durably; the same bytes have the same id, which Launch.Workdir carries.
	// Errors are of kind Invalid or Exhausted.
	PutWorkdir(tarGz []byte) (executor.Workdir, error)
	// TakeWorkdir is PutWorkdir of one that is in the store already, by its id; NotFound: it is not.
	TakeWorkdir(id string) (executor.Workdir, error)
}

// stored is a store, or nil.
type stored struct{ Store }

// put keeps the work directory of the jobs; nothing, if there is none.
func (s stored) put(jobs []Submission, workdir []byte) (executor.Workdir, error) {
	if len(workdir) == 0 || len(jobs) == 0 {
		return executor.Workdir{}, nil
	}
	name := jobs[0].Spec.Name
	if s.Store == nil {
		return executor.Workdir{}, errNoStore(name)
	}
	dir, err := s.PutWorkdir(workdir)
	if err != nil {
		return executor.Workdir{}, errkind.Errorf(errkind.Of(err), "job %s: store the work directory: %w", name, err)
	}
	return dir, nil
}

// take keeps a work directory that is in the store already for a job.
func (s stored) take(j *Submission) (executor.Workdir, error) {
	if s.Store == nil {
		return executor.Workdir{}, errNoStore(j.Spec.Name)
	}
	dir, err := s.TakeWorkdir(j.Workdir)
	if err != nil {
		return dir, errkind.Errorf(errkind.Of(err), "job %s: spec.workdir: %w", j.Spec.Name, err)
	}
	return dir, nil
}

func errNoStore(name job.ID) error {
	return errkind.Errorf(errkind.Unsupported, "job %s: this daemon stores no work directories: submit it without one", name)
}
