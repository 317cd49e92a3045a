// Package workdirs keeps the stored work directories, and other files of jobs, for as long as a job needs them.
package workdirs

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/host/archivist"
	"sluice.dev/sluice/internal/host/inbox"
	"sluice.dev/sluice/internal/host/pages"
)

// Files are what the executor keeps of jobs.
type Files interface {
	// HasWorkdir reports whether a stored work directory is there.
	HasWorkdir(id string) (bool, error)
	// Stored lists the jobs that have any files.
	Stored(each func(job.ID) error) error
	// PruneWorkdirs removes the stored work directories that keep says nobody needs.
	PruneWorkdirs(keep func(id string) bool) error
	// PruneUnpacked removes what was unpacked of stored work directories, where live says no job needs it that is not over.
	PruneUnpacked(live func(id string) bool) error
}

// Keeper follows from the facts which jobs need which stored work directory, and has the others removed now and then. It belongs to the
// goroutine of the loop; the goroutines it starts to look through files end before Close returns.
type Keeper struct {
	files   Files // nil: none are kept
	inbox   *inbox.Inbox
	views   *pages.Views
	archive *archivist.Archivist
	purge   func(job.ID)
	dataDir string
	log     *slog.Logger

	counts counts
	// forgot: a job was forgotten since the others were removed, at pruned; closed: one has ended since unpacked ones were removed, at
	// prunedUnpacked.
	forgot         bool
	pruned         quantity.Instant
	closed         bool
	prunedUnpacked quantity.Instant
	background     sync.WaitGroup
}

// New returns a keeper that knows of no job. It follows facts from then on, and works on files after Serve.
func New(b *inbox.Inbox, v *pages.Views, dataDir string, log *slog.Logger) *Keeper {
	return &Keeper{inbox: b, views: v, dataDir: dataDir, log: log, counts: newCounts()}
}

// Serve keeps these files. purge has the files of a job removed; it is called from within the loop.
func (k *Keeper) Serve(files Files, a *archivist.Archivist, purge func(job.ID)) {
	k.files, k.archive, k.purge = files, a, purge
}

// Close waits for the goroutines that look through files.
func (k *Keeper) Close() { k.background.Wait() }

// pruneEvery is the least time between two looks for stored work directories that nobody needs any more. Files younger
// than that are never removed anyway.
const pruneEvery = time.Hour

// pruneUnpackedEvery is the same for unpacked ones: one that is missing is unpacked again.
const pruneUnpackedEvery = time.Minute

// Tidy removes now and then files of jobs that are over or forgotten.
func (k *Keeper) Tidy(now quantity.Instant) {
	if k.files != nil && k.closed && now >= k.prunedUnpacked.Add(pruneUnpackedEvery) {
		k.prunedUnpacked = now
		k.pruneUnpacked()
	}
	if k.files != nil && k.forgot && now >= k.pruned.Add(pruneEvery) {
		k.pruned = now
		k.pruneWorkdirs()
	}
}

// Fact notes how a fact changes which jobs need which stored work directory.
func (k *Keeper) Fact(f *protocol.Fact) {
	k.counts.fact(f)
	k.closed = k.closed || f.Kind == protocol.JobClosed
	k.forgot = k.forgot || f.Kind == protocol.JobForgotten
}

func (k *Keeper) pruneUnpacked() {
	k.closed = false
	if err := k.files.PruneUnpacked(func(id string) bool { return k.counts.live[id] > 0 }); err != nil {
		k.log.Warn("could not remove unpacked work directories that nobody needs any more", "error", err)
	}
}

// pruneWorkdirs looks through the stored work directories beside the loop. A job that leaves memory meanwhile is in the archive
// before it does, one that is taken back stays there until it is over again, and one that is submitted has a young file.
func (k *Keeper) pruneWorkdirs() {
	k.forgot = false
	needed := maps.Clone(k.counts.needs)
	k.background.Go(func() {
		err := k.files.PruneWorkdirs(func(id string) bool {
			if needed[id] > 0 {
				return true
			}
			needs, err := k.archive.NeedsWorkdir(id)
			if err != nil {
				k.log.Warn("could not look who needs a stored work directory", "snapshot", id, "error", err)
			}
			return needs || err != nil
		})
		if err != nil {
			k.log.Warn("could not remove work directories that nobody needs any more", "error", err)
		}
	})
}

// Sweep removes the files of jobs that nobody knows any more, beside the loop: a Purge may have been lost with an earlier boot.
func (k *Keeper) Sweep() {
	if k.files == nil {
		return
	}
	k.pruneWorkdirs()
	k.pruneUnpacked()
	k.background.Go(func() {
		err := k.files.Stored(func(id job.ID) error {
			select {
			case <-k.inbox.Done():
				return inbox.ErrStopping()
			default:
			}
			if life, err := k.archive.Life(id); err == nil && life == 0 {
				k.purgeUnknown(id)
			}
			return nil
		})
		if err != nil && errkind.Of(err) != errkind.Unavailable {
			k.log.Warn("could not look for files that nobody needs any more", "error", err)
		}
	})
}

// purgeUnknown removes the files of a job if neither the gate nor the archive knows it. The executor does it before it returns, so
// that a job of that name which is accepted later finds the place clear.
func (k *Keeper) purgeUnknown(id job.ID) {
	failed, err := inbox.Ask(context.Background(), k.inbox, func(quantity.Instant) error {
		if k.views.Life(id) != 0 {
			return nil
		}
		life, err := k.archive.Life(id) // it may have left memory just now
		if err == nil && life == 0 {
			k.purge(id)
		}
		return err
	})
	if err = errors.Join(failed, err); err != nil && errkind.Of(err) != errkind.Unavailable {
		k.log.Warn("could not look whether anybody needs the files of a job", "job", string(id), "error", err)
	}
}

// mostNamed bounds how many jobs without their work directory are named one by one.
const mostNamed = 20

// Missing names the unfinished jobs whose stored work directory is gone: they can't run, and nobody else would say
// so before their next start.
func (k *Keeper) Missing(now quantity.Instant) {
	if k.files == nil {
		return
	}
	gone := map[string]bool{}
	var lost []job.ID
	for _, name := range slices.Sorted(maps.Keys(k.counts.of)) {
		id := k.counts.of[name].id
		if _, looked := gone[id]; !looked {
			there, err := k.files.HasWorkdir(id)
			if err != nil {
				k.log.Warn("could not look for a stored work directory", "snapshot", id, "error", err)
			}
			gone[id] = err == nil && !there
		}
		if !gone[id] {
			continue
		}
		if v, known := k.views.Job(now, name); !known || !v.State.Final() {
			lost = append(lost, name)
		}
	}
	for _, name := range lost[:min(len(lost), mostNamed)] {
		k.log.Error("the stored work directory of a job is missing, and it can not run without it",
			"job", string(name), "snapshot", k.counts.of[name].id, "below", k.dataDir,
			"todo", "restore the file from a backup, or submit the same job again from its work directory")
	}
	if more := len(lost) - mostNamed; more > 0 {
		k.log.Error("the stored work directories of further jobs are missing", "jobs", more)
	}
}
