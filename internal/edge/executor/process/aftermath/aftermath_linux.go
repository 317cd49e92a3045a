// Package aftermath finishes subjobs whose supervisor is gone: it finds out how each ended, kills the processes left, and writes the
// result if there is none.
package aftermath

import (
	"log/slog"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/process/syncs"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// Node holds what all subjobs of one node share.
type Node struct {
	DataDir, BootID string
	// Names syncs the names of run directories.
	Names *syncs.Shared
	Now   func() quantity.Instant
	Log   *slog.Logger
}

// Aftermath is the end of one subjob. All but TellBehind belongs to the subjob's goroutine until there is a result, and to the settling
// goroutine from then on.
type Aftermath struct {
	Node  *Node
	Dir   shim.Dir
	Token job.Token
	Lease *shim.Lease
	// Storing reports that the subjob's output is being stored, until the function that it returns is called.
	Storing func(progress int64) (stop func())
	// Reclaimed returns why the machine's watcher ended it; empty: it did not.
	Reclaimed func() string

	// Damage is why its lease could not be read; empty: it was read.
	Damage string
	// Unseen: its supervisor was dead already when this daemon started, so no daemon saw it die.
	Unseen bool

	// named is the sync of the run directory's name, nil if none was asked for; well: the result was synced by its writer.
	named *syncs.Sync
	well  bool
	// told: the end is in the events file, or does not belong there.
	told bool
	// gone is when the processes that outlived a dead supervisor were killed; 0: there were none.
	gone quantity.Instant
	// locked: this executor holds the lock of the run directory, so a process that has the note open there is not its supervisor.
	locked bool
	// hit is the outcome of the limit that it hit before its supervisor died, 0 for none; hitWords describes it.
	hit      job.Outcome
	hitWords string
}

// Patience is how long SIGKILL may take before processes are reported to remain.
const Patience = 2 * time.Second

// Remain is the error that processes of a dead supervisor's subjob remain, with their description.
type Remain string

func (r Remain) Error() string { return string(r) }

// Name begins to sync the name of the run directory; it is waited for only before the result is told.
func (a *Aftermath) Name() { a.named = a.Node.Names.Ask() }

// Seen notes that its supervisor is done with it; well: it has synced the result and told the events file the end.
func (a *Aftermath) Seen(well bool) { a.well, a.told = well, well }

// write writes a result that the executor has made.
func (a *Aftermath) write(res *job.Result) error {
	err := a.Dir.WriteResult(res, a.Lease)
	a.well = err == nil
	return err
}
