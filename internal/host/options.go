package host

import (
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"time"

	"sluice.dev/sluice/internal/core/actor"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
	"sluice.dev/sluice/internal/core/supply"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/fabric"
	"sluice.dev/sluice/internal/edge/fabric/memory"
	"sluice.dev/sluice/internal/edge/inventory"
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/tape"
	"sluice.dev/sluice/internal/host/gather"
	"sluice.dev/sluice/internal/host/logs"
	"sluice.dev/sluice/internal/host/loop"
	"sluice.dev/sluice/internal/host/nodes"
	"sluice.dev/sluice/internal/host/requests"
	"sluice.dev/sluice/internal/host/snapshots"
	"sluice.dev/sluice/internal/host/workdirs"
)

// Files is what the executor's kind stores of jobs outside the journal. Its methods are safe for concurrent use.
type Files interface {
	requests.Store
	logs.Files
	workdirs.Files
}

// Gathers are Files that also keep what subjobs on other machines left: those of a cluster's head.
type Gathers interface{ Gathered() gather.Store }

// Lenders are pools of pilots: machines that host schedulers lend (host/pilots). Their methods are safe for concurrent use.
type Lenders interface {
	loop.Lenders
	// Pools are all of them, as they are configured.
	Pools() []supply.Pool
	// Providers are how they stand.
	Providers() []status.Provider
}

// Env is what the host gives an executor.
type Env struct {
	// Deliver takes the executor's answers. It never blocks.
	Deliver func(protocol.Message)
	// Slice describes a slice of this node by its full name. It knows them all before the first Start.
	Slice func(job.SliceID) (protocol.Slice, bool)
	// Present is the present name of a slice, given that or an earlier one.
	Present func(job.SliceID) job.SliceID
	// Use tells which processes use how much of a slice's own memory (inventory.Meter). Nil: it can't be measured.
	Use func(job.SliceID) (map[int]int64, error)
}

// Options of a host.
type Options struct {
	// DataDir holds everything durable of this daemon.
	DataDir string
	// Machine is the name of this machine, for people.
	Machine job.NodeID
	// Names are all names that the machine has had in this data directory, the last of them Machine, which all nodes' names begin with.
	// What was stored under an earlier one is read under the last (protocol.Renames). Empty: no name is kept there.
	Names []job.NodeID
	// Actors makes fresh actors with the daemon's configuration. It is called at start, and again to prove a snapshot
	// before it replaces the journal. The nodes are numbered in their order (node.Config.Number).
	Actors func() actor.Set
	// Now is the actors' time; nil: the wall clock, except that it never goes back.
	Now func() time.Time
	// Config of the actors, as JSON, for the tape.
	Config json.RawMessage
	// Journal opens the journal below the data directory.
	Journal func(dir string) (journal.Journal, error)
	// Archive opens the archive below the data directory; known: there must be one. Nil: jobs that are over stay in memory, and
	// the actors must not leave any to an archive.
	Archive func(dir string, known bool) (archive.Archive, error)
	// Executor makes the executor and what it keeps of jobs; Files may be nil: then there are no snapshots, logs and
	// outputs. See folder processes.
	Executor func(Env) (executor.Executor, Files, error)
	// Inventory is what this node has to offer. The host closes it.
	Inventory inventory.Inventory
	// Ours reports whether a process belongs to a subjob; nil: foreign processes are not looked for.
	Ours func(slice job.SliceID, pid int) bool
	// Until is when this machine is gone for good; 0: that is not known.
	Until quantity.Instant
	// Fabric between the actors; nil: the memory kind without faults. The host closes it.
	Fabric fabric.Fabric
	// Elsewhere are the machines that have joined; nil: none may. They are reached by Fabric.
	Elsewhere nodes.Elsewhere
	// Lenders are the pools of machines that host schedulers lend; nil: there are none.
	Lenders Lenders
	Log     *slog.Logger

	// SnapshotRecords and SnapshotBytes say when the journal is replaced by a snapshot: after so many records, or after an eighth
	// of them beyond so many bytes. Default 100,000, or twice as many as the last snapshot has facts, and 64 MiB.
	SnapshotRecords uint64
	SnapshotBytes   int64
	// Tape bounds the tape. NoTape turns it off.
	Tape   tape.Limits
	NoTape bool
	// Retain is how long an archived job is kept after its end, MostArchived how many are; the oldest are removed first. Default 168 h and
	// 1,000,000.
	Retain       time.Duration
	MostArchived int64

	// About is what the host can't know of the daemon: the build's version and commit, the mechanism and policy, where the API listens,
	// whether only one user is served.
	About status.About
	// Named: the journal has a name that others store with what they keep of it, so a build without names must not open it.
	Named bool
	// Guard is this machine's capability where memory runs out.
	Guard status.Guard
}

// snapshots are the limits with their defaults.
func (o *Options) snapshots() snapshots.Limits {
	return snapshots.Limits{
		Records: cmp.Or(o.SnapshotRecords, 100_000), Bytes: cmp.Or(o.SnapshotBytes, 64<<20), Grow: o.SnapshotRecords == 0,
	}
}

func (o *Options) check() error {
	var errs []error
	need := func(ok bool, what string) {
		if !ok {
			errs = append(errs, errors.New("host: Options."+what+" is not set"))
		}
	}
	need(o.Machine != "", "Machine")
	need(o.Actors != nil, "Actors")
	need(o.Journal != nil, "Journal")
	need(o.Executor != nil, "Executor")
	need(o.Inventory != nil, "Inventory")
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	if o.Fabric == nil {
		o.Fabric = memory.New(memory.Faults{})
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Retain = cmp.Or(o.Retain, 168*time.Hour)
	o.MostArchived = cmp.Or(o.MostArchived, 1_000_000)
	return nil
}
