package process

import (
	"sluice.dev/sluice/internal/edge/executor"
)

// PutSnapshot, TakeSnapshot, HasSnapshot and PruneSnapshots are those of the node's artifacts: see there.
func (e *Executor) PutSnapshot(data []byte, limit int64) (executor.Snapshot, error) {
	return e.artifacts.PutWork(data, limit)
}

// TakeSnapshot keeps a work directory that is in the store already.
func (e *Executor) TakeSnapshot(id string) (executor.Snapshot, error) {
	return e.artifacts.TakeWork(id)
}

// HasSnapshot reports whether a stored work directory exists.
func (e *Executor) HasSnapshot(id string) (bool, error) { return e.artifacts.HasWork(id) }

// PruneSnapshots removes stored work directories that keep says nobody needs.
func (e *Executor) PruneSnapshots(keep func(id string) bool) error {
	return e.artifacts.PruneWork(keep)
}
