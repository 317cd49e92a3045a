package process

import (
	"sluice.dev/sluice/internal/edge/executor"
)

// PutSnapshot, TakeSnapshot, HasSnapshot and PruneSnapshots are of the node's artifacts: see there.
func (e *Executor) PutSnapshot(data []byte, limit int64) (executor.Snapshot, error) {
	return e.artifacts.PutWork(data, limit)
}

// TakeSnapshot has a work directory that is in the store already stay there.
func (e *Executor) TakeSnapshot(id string) (executor.Snapshot, error) {
	return e.artifacts.TakeWork(id)
}

// HasSnapshot says whether a stored work directory is there.
func (e *Executor) HasSnapshot(id string) (bool, error) { return e.artifacts.HasWork(id) }

// PruneSnapshots removes stored work directories that keep says nobody needs.
func (e *Executor) PruneSnapshots(keep func(id string) bool) error {
	return e.artifacts.PruneWork(keep)
}
