// Package aftermath finds out how a subjob has ended whose supervisor is gone, ends what is left of it, and makes its result where it
// has none.
package aftermath

import (
	"log/slog"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/process/syncs"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// Node is what the subjobs of one node have in common.
type Node struct {
	DataDir, BootID string
	// Names syncs the names of run directories.
	Names *syncs.Shared
	Now   func() quantity.Instant
	Log   *slog.Logger
}

// Aftermath of one subjob. All but TellBehind is of the goroutine that stays with the subjob, until there is a result; then of who settles
// it.
type Aftermath struct {
	Node  *Node
	Dir   shim.Dir
	Token job.Token
	Lease *shim.Lease
	// Storing says that what the subjob has left is being stored, until what it returns is called.
	Storing func(progress int64) (stop func())
	// Reclaimed is why the machine's watcher had ended it; empty: it had not.
	Reclaimed func() string

	// Damage is why its lease could not be read; empty: it was read.
	Damage string
	// Unseen: its supervisor was dead already when this daemon started, so no daemon saw it die.
	Unseen bool

	// named is the sync of the run directory's name, nil if none was asked for; well: whoever wrote the result has synced it.
	named *syncs.Sync
	well  bool
	// told: the end is known to stand in the events file, or not to belong there.
	told bool
	// gone is when the processes that outlived a dead supervisor had been killed; 0: there were none to kill.
	gone quantity.Instant
	// locked: this executor holds the lock of the run directory, so a process that has the note open there is not its supervisor.
	locked bool
	// hit is the outcome of the limit that it had hit before its supervisor died, 0 for none, and hitWords says how.
	hit      job.Outcome
	hitWords string
}

// Patience is how long SIGKILL may take before it is said that processes remain.
const Patience = 2 * time.Second

// Remain says that processes of a dead supervisor's subjob remain, in words.
type Remain string

func (r Remain) Error() string { return string(r) }

// Name has the name of the run directory synced; nobody waits for it before the result is told.
func (a *Aftermath) Name() { a.named = a.Node.Names.Ask() }

// Seen says that its supervisor is done with it, and has seen to its result and its end in the events file if all went well.
func (a *Aftermath) Seen(well bool) { a.well, a.told = well, well }

// write writes a result that the executor has made.
func (a *Aftermath) write(res *job.Result) error {
	err := a.Dir.WriteResult(res, a.Lease)
	a.well = err == nil
	return err
}
