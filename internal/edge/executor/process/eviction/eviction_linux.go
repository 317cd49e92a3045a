package eviction

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/process/shelf"
	"sluice.dev/sluice/internal/edge/executor/process/workdirs"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	files "sluice.dev/sluice/internal/edge/store"
)

const (
	// keptFor is for how long logs, and work that did not count, are kept for people to look at: as long as a job that is over, by default.
	keptFor = 7 * 24 * time.Hour
	// idleFor is for how long an unpacked work directory stays that no subjob uses: a job that runs here now and then finds it.
	idleFor = time.Hour
)

// Store knows what the head's store has of a subjob.
type Store interface {
	// HasCheckpoint reports whether it has a subjob's checkpoint. The head removes it once no subjob will begin from it any more.
	HasCheckpoint(ctx context.Context, j job.ID, t job.Token) (bool, error)
}

// Cache is what a machine keeps of jobs. Everything it removes is in the head's store, is there no more since nobody needs it, or is for
// people to look at. It is renamed before it is removed, so that a crash leaves nothing half removed in its place.
type Cache struct {
	Layout    folders.Layout
	Lives     *folders.Lives
	Store     Store
	Originals *workdirs.Originals
	// Lost is work that did not count, Logs are those that an older version kept, or that can't be stored.
	Lost, Logs *shelf.Shelf
	// InUse are the paths of the checkpoints that a job's running subjobs begin from. It is called with the job's folders locked.
	InUse func(job.ID) map[string]bool
	Log   *slog.Logger
}

// Tidy removes what nobody needs any more: checkpoints that the store has no longer, since there is a newer one or the job is gone; what an
// older version kept of outputs; and what was kept for long. What can't be asked for now stays.
func (c *Cache) Tidy(ctx context.Context) {
	c.checkpoints(ctx, func(has bool) bool { return !has })
	c.outputs(ctx)
	before := time.Now().Add(-keptFor)
	c.Lost.DropBefore(before)
	c.Logs.DropBefore(before)
	c.originals(idleFor)
	c.empty(ctx)
}

// MakeRoom removes besides all that can be had again, or is for people to look at.
func (c *Cache) MakeRoom(ctx context.Context) {
	c.originals(0)
	c.Lost.Empty()
	c.Logs.Empty()
	c.outputs(ctx)
	c.checkpoints(ctx, func(bool) bool { return true })
	c.empty(ctx)
}

// checkpoints removes those that no running subjob begins from and that evict says may go, by whether the store has them.
func (c *Cache) checkpoints(ctx context.Context, evict func(has bool) bool) {
	c.jobs("checkpoints", func(j job.ID) error {
		entries, err := os.ReadDir(c.Layout.Checkpoints(j))
		for _, entry := range entries {
			t, bad := job.ParseToken(entry.Name())
			if bad != nil {
				continue
			}
			has, failed := c.Store.HasCheckpoint(ctx, j, t)
			if failed == nil && evict(has) {
				failed = c.checkpoint(j, t)
			}
			if failed != nil {
				return failed
			}
		}
		return err
	})
}

// checkpoint removes one, unless a running subjob begins from it.
func (c *Cache) checkpoint(j job.ID, t job.Token) error {
	lock := c.Lives.Place(j)
	lock.Lock()
	defer lock.Unlock()
	path := c.Layout.Checkpoint(j, t)
	if c.InUse(j)[path] {
		return nil
	}
	_, err := c.Lives.Discard(path)
	_ = os.Remove(c.Layout.Checkpoints(j)) // unless there are others
	return err
}

// outputs removes those that older versions kept here: each was stored before it was told. The store is asked first, which shows that it
// is there.
func (c *Cache) outputs(ctx context.Context) {
	c.jobs("output", func(j job.ID) error {
		list, err := c.Layout.List(j)
		if err != nil {
			return err
		}
		for i := range list {
			if _, err = c.Store.HasCheckpoint(ctx, j, list[i].Token); err != nil {
				return err
			}
		}
		lock := c.Lives.Place(j)
		lock.Lock()
		defer lock.Unlock()
		_, err = c.Lives.Discard(c.Layout.Outputs(j))
		return err
	})
}

// jobs calls each for the jobs that have a folder of a kind. It stops at the first error: the store may be away, and each call waits for
// it.
func (c *Cache) jobs(kind string, each func(job.ID) error) {
	entries, err := os.ReadDir(c.Layout.In(kind))
	for _, entry := range entries {
		if j, ok := files.JobOf(entry.Name()); ok && err == nil {
			if err = each(j); errors.Is(err, fs.ErrNotExist) {
				err = nil // it went meanwhile
			}
		}
	}
	if err != nil {
		c.Log.Debug("some of what the head has stays on this machine; it is looked at again", "what", kind, "err", err)
	}
}

// originals removes the unpacked work directories that no subjob has used for so long.
func (c *Cache) originals(idle time.Duration) {
	old, err := c.Originals.Evict(idle)
	for _, path := range old {
		err = errors.Join(err, foreign.Remove(path))
	}
	if err != nil {
		c.Log.Warn("removing work directories that were unpacked", "below", filepath.Dir(c.Originals.Dir()), "err", err)
	}
}

func (c *Cache) empty(ctx context.Context) {
	if err := c.Lives.Empty(func() bool { return ctx.Err() != nil }); err != nil {
		c.Log.Warn("removing what the head has", "err", err)
	}
}
