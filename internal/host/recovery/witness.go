package recovery

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/host/datadir"
)

// Files are those that the executor keeps of jobs.
type Files interface {
	// Stored lists the jobs that have any files.
	Stored(each func(job.ID) error) error
}

// Found asks the executor what is left of earlier boots and holds each witness against the journal: one that the journal does
// not have means that the journal lost what it had promised.
func Found(ctx context.Context, x executor.Executor, j journal.Journal, dataDir string) ([]protocol.Found, error) {
	found, err := x.Find(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for subjobs of earlier boots: %w", err)
	}
	list, witnesses := make([]protocol.Found, len(found)), make([]journal.Position, len(found))
	for i := range found {
		// One without a witness has a run directory that was never completed: nothing was started under it.
		list[i], witnesses[i] = found[i].Found, found[i].Witness
	}
	var lost []error
	for i, err := range j.Check(witnesses) {
		if f := &found[i]; err != nil {
			lost = append(lost, fmt.Errorf("run directory of subjob %v of job %s (below %s) names record %s of the journal: %w",
				f.Token, f.Job, dataDir, f.Witness, err))
		}
	}
	if len(lost) > 0 {
		return nil, errkind.Errorf(errkind.Corrupt, "the journal has lost records that subjobs were started under; nothing was changed, "+
			"restore the journal in %s from a copy that has them: %w", filepath.Join(dataDir, datadir.JournalDir), errors.Join(lost...))
	}
	return list, nil
}

// LostJournal refuses a data directory that has outputs of jobs but a new journal: the old one is gone, and the next start would remove
// the files as those of unknown jobs.
func LostJournal(files Files, dataDir string) error {
	return files.Stored(func(one job.ID) error {
		return errkind.Errorf(errkind.Corrupt, "%s has no journal, but files of jobs, %q is one: restore the journal's directory from a "+
			"backup; "+
			"or move output, checkpoints and logs away to begin with no jobs. Nothing was removed", dataDir, one)
	})
}
