// Package process runs subjobs as processes of this machine, each below a supervisor (cmd/sluice-shim) that has no other at the time and
// outlives the daemon. Its state is in run directories, which a restarted daemon reads. It must not know
// how a lease was decided, and never starts a command itself.
package process

import (
	"cmp"
	"log/slog"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim"
	files "sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/survival"
)

// Cluster is the one that the machine of an executor has joined. The zero value is that of a daemon that has joined none: a head's, or one
// by itself.
type Cluster struct {
	// Owner is the word of the cluster's jobs in Store's names (StoreOwner at its head), on a machine that has joined the cluster: Store is
	// the head's, with Keep. It takes no names from this machine but those of its own subjobs, and the head removes what nobody needs. What
	// it has is dropped here once it is settled, and nothing is started while the disk is short of room.
	// Empty: the data directory's own word; the head of a cluster needs Keep as well, or its machines find no checkpoint of its subjobs.
	Owner string
	// TakesNothing: the head goes by a result that says that its subjob left nothing (job.Result.LeftNothing), and looks for no name of it.
	TakesNothing bool
}

// Options of New. DataDir, ShimPath and Deliver are needed; the rest has defaults.
type Options struct {
	// DataDir is where everything is kept; absolute. ShimPath is the supervisor's program.
	DataDir, ShimPath string
	// Deliver gets every answer, one at a time and never from within Do.
	Deliver func(protocol.Message)
	// Now is the node's clock; package time's if nil.
	Now func() time.Time
	// Slice describes a slice: its device and its memory. If nil, no slice has a device, and the memory of a lease is its
	// Demand.
	Slice func(job.SliceID) (protocol.Slice, bool)
	// Present maps the name of a slice in a run directory to its present one: the node may have been renamed since. Nil: the same name.
	Present func(job.SliceID) job.SliceID
	// Use tells which processes use how much of a slice's own memory, in bytes by pid; nil or an error: it can't be measured.
	// It is asked for slices with a device, once for every report.
	Use func(job.SliceID) (map[int]int64, error)
	// Store is where work directories lie; nil: one in the data directory. The executor does not close it.
	Store files.Store
	// Keep: output and checkpoint of a subjob are put into Store before its result is told.
	Keep bool
	// Joined is the cluster that the machine has joined, if it has.
	Joined Cluster
	// Away is why the store did not answer when it was opened: nothing is started until it does. Nil: it did.
	Away error
	// User returns the user that a queue's subjobs run as. Nil: all as the daemon's own user (single-user mode). An error refuses the
	// start.
	User func(queue string) (*shim.User, error)
	// Limits of every subjob: 8192 processes and threads, 64 GiB of scratch in a million files. Negative: no limit.
	Limits shim.Limits
	// SharedTmp leaves subjobs the machine's /tmp and /dev/shm, where they could have their own.
	SharedTmp bool
	// LogLimit and OutputLimit are defaults for jobs that give none, in bytes: 16 MiB and 64 GiB.
	LogLimit, OutputLimit int64
	// WorkdirLimit bounds one extracted work directory in bytes: 1 GiB.
	WorkdirLimit int64
	// Report is the time between reports of progress: one second.
	Report time.Duration
	// Retain says what is kept of subjobs that are over.
	Retain Retention
	// BootID names this boot of the machine; default: the kernel's boot id.
	BootID string
	// Survival senses the machine's memory and suspends subjobs; nil: neither is done. The executor closes it. Airlock has the lines,
	// which decide how often the memory is read.
	Survival survival.Survival
	Airlock  airlock.Config
	// Watch has a process of its own, the watcher, do that (edge/survival/watch): while one lives it decides and acts in the node's place,
	// also while this daemon is dead. It is the same program as the supervisor, and opens the kind that Survival is.
	Watch bool
	// Isolation overrides what the supervisor finds to work here; nil: what it finds.
	Isolation *shim.Isolation
	Logger    *slog.Logger
}

// Retention is how much is kept of subjobs that are over.
type Retention struct {
	// Logs is for how many ended subjobs logs are kept: 10000. Lost is how many directories with uncommitted work are kept for people to
	// look at: 20; negative for none. Settled is how many ended subjobs are remembered, so that a late Start does not start them again,
	// and of how many jobs it is known which life has their folders: 10000.
	Logs, Lost, Settled int
	// LogBytes and LostBytes bound the same by their size, in bytes: 4 GiB and 16 GiB. EventBytes is the size at which a new events file
	// is begun; one old file is kept: 16 MiB. The events file is looked at after every hundredth subjob.
	LogBytes, LostBytes, EventBytes int64
}

func (o *Options) defaults() {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Slice == nil {
		o.Slice = func(job.SliceID) (protocol.Slice, bool) { return protocol.Slice{}, false }
	}
	if o.Present == nil {
		o.Present = func(id job.SliceID) job.SliceID { return id }
	}
	if o.User == nil {
		o.User = func(string) (*shim.User, error) { return nil, nil }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Airlock = o.Airlock.WithDefaults()
	o.Limits.Processes = cmp.Or(o.Limits.Processes, 8192)
	o.Limits.Scratch = cmp.Or(o.Limits.Scratch, 64<<30)
	o.Limits.Files = cmp.Or(o.Limits.Files, 1_000_000)
	o.LogLimit = cmp.Or(o.LogLimit, 16<<20)
	o.OutputLimit = cmp.Or(o.OutputLimit, 64<<30)
	o.WorkdirLimit = cmp.Or(o.WorkdirLimit, 1<<30)
	o.Report = cmp.Or(o.Report, time.Second)
	o.Retain.Logs = cmp.Or(o.Retain.Logs, 10000)
	o.Retain.Lost = cmp.Or(o.Retain.Lost, 20)
	o.Retain.Settled = cmp.Or(o.Retain.Settled, 10000)
	o.Retain.LogBytes = cmp.Or(o.Retain.LogBytes, 4<<30)
	o.Retain.LostBytes = cmp.Or(o.Retain.LostBytes, 16<<30)
	o.Retain.EventBytes = cmp.Or(o.Retain.EventBytes, 16<<20)
}

func (o *Options) now() quantity.Instant { return quantity.At(o.Now()) }
