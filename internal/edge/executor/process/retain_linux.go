package process

import (
	"errors"
	"io"
	"os"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	files "sluice.dev/sluice/internal/edge/store"
)

// LogsSince is the time since which the logs of all subjobs that wrote any are kept, as far as is known: those of one that ended
// later and has none are empty.
func (e *Executor) LogsSince() time.Time { return e.logs.Since() }

// Outputs lists the folders of a job's committed subjobs in order of progress, and those of a gang in order of its members.
func (e *Executor) Outputs(j job.ID) ([]folders.Output, error) { return e.s.List(j) }

// Stored calls each with the jobs that have any files, so that those of unknown jobs can be purged: with some jobs several times, in no
// order, and a few hundred names at a time, since there may be a million. It stops at the first error.
func (e *Executor) Stored(each func(job.ID) error) error {
	for _, d := range []string{"output", "checkpoints", "logs", "lives"} {
		if err := e.storedIn(e.s.In(d), each); err != nil {
			return err
		}
	}
	return nil
}

func (e *Executor) storedIn(dir string, each func(job.ID) error) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	for {
		names, err := f.Readdirnames(512)
		for _, name := range names {
			j, ok := files.JobOf(name)
			if !ok {
				continue
			}
			if err = each(j); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// rotateEvents begins a new events file once the one that is written has its full size, and drops the one before it.
// Supervisors open it by name for every line; one that is just writing finishes its line in the old file.
func (e *Executor) rotateEvents() {
	path := folders.Events(e.o.DataDir)
	info, err := os.Stat(path)
	if err != nil || info.Size() < e.o.EventBytes {
		return
	}
	if err := os.Rename(path, folders.OldEvents(e.o.DataDir)); err != nil {
		e.o.Logger.Warn("beginning a new events file", "path", path, "err", err)
	}
}
