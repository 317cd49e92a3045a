package process

import (
	"errors"
	"fmt"
	"os"

	"sluice.dev/sluice/internal/edge/executor/process/workdirs"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// workDir gives the run directory that is being built its work directory: what the job was submitted with, for the subjob to
// change as it likes, seen by nobody else.
func (r *run) workDir(build shim.Dir, user *shim.User) error {
	id := r.work().Spec.Launch.Snapshot
	if id == "" {
		return nil
	}
	o := r.e.originals
	base, waited, err := o.Get(o.Name(id, user), r.token, func(into string) error {
		return r.e.artifacts.Extract(id, into, user)
	})
	if err != nil {
		return fmt.Errorf("unpacking the work directory: %w", err)
	}
	if waited {
		r.unpacked = r.e.o.now()
	}
	if r.e.iso.Work == shim.WorkOverlay {
		r.base = base
		return errors.Join(os.Mkdir(build.Upper(), 0o700), shim.Give(build.Upper(), user), os.Mkdir(build.Overlay(), 0o700))
	}
	if err := workdirs.Copy(base, build.Work(), user); err != nil {
		return fmt.Errorf("the copy of the work directory: %w", err)
	}
	r.copied.Add(build.Work(), foreign.Usage{})
	return nil
}

// PruneUnpacked removes, in the background, the unpacked work directories that live says no living job needs. They are unpacked
// again if one does.
func (e *Executor) PruneUnpacked(live func(id string) bool) error {
	old, err := e.originals.Prune(live)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return err // the next daemon removes them
	}
	e.tasks.Go(func() {
		for _, path := range old {
			if failed := foreign.Remove(path); failed != nil {
				e.o.Logger.Warn("removing a work directory that was unpacked", "path", path, "err", failed)
			}
		}
	})
	return err
}
