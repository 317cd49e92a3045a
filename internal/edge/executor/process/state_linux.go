package process

import (
	"sync"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/process/aftermath"
	"sluice.dev/sluice/internal/edge/executor/process/artifacts"
	"sluice.dev/sluice/internal/edge/executor/process/folders"
	"sluice.dev/sluice/internal/edge/executor/process/pool"
	"sluice.dev/sluice/internal/edge/executor/process/remote"
	"sluice.dev/sluice/internal/edge/executor/process/rooms"
	"sluice.dev/sluice/internal/edge/executor/process/shelf"
	"sluice.dev/sluice/internal/edge/executor/process/workdirs"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// Executor is the process kind of executor.Executor. Make it with New.
type Executor struct {
	o         Options
	s         folders.Layout
	originals *workdirs.Originals
	iso       shim.Isolation
	box       *executor.Outbox
	pool      pool.Pool
	done      chan struct{}
	tasks     sync.WaitGroup

	health health

	// after is shared by the ends of all subjobs.
	after aftermath.Node
	// cut: the machine was rebooted since run directories were last looked at. Used by Find alone.
	cut    bool
	rooms  hall
	sensor sensor
	// logs and lost are kept of settled subjobs: what they printed, and their uncommitted work.
	logs, lost shelf.Shelf
	// lives knows which life of a job has its folders.
	lives *folders.Lives

	artifacts *artifacts.Artifacts
	// Remote are the files of subjobs on machines that have joined this one, where it is the head of a cluster.
	Remote *remote.Files

	residents residents

	mu       sync.Mutex
	runs     map[job.Token]*run
	past     executor.Settled[*job.Result]
	settles  int
	underway map[underway]bool
	closed   bool
}

func (e *Executor) isClosed() bool { return closed(e.done) }

// run is one subjob that is not settled.
type run struct {
	e     *Executor
	dir   shim.Dir
	token job.Token
	// start is the message that asked for it; for a subjob found at start only addresses, job, slice and range are known.
	start protocol.Message
	// asked is when the start was asked for by the node's clock.
	asked quantity.Instant
	// base is the unpacked work directory that the subjob gets an overlay of, unpacked when that was ready if it was waited for, and
	// copied how much was copied instead. All are set by prepare.
	base     string
	unpacked quantity.Instant
	copied   foreign.Usage
	// room is what its run directory was made of; nil for one that was found.
	room *rooms.Room
	// resident is its program, if that has other subjobs too; nil otherwise, and for one that was found. It belongs to the subjob's
	// goroutine.
	resident *resident

	mu    sync.Mutex
	lease shim.Lease
	// onGPU is its measured peak of its slice's own memory, in bytes.
	onGPU quantity.Amount

	// told is what its node was told, control what its supervisor is.
	told    executor.Answers
	control control
	still   still
	// trouble is the node's failure that its start met. It belongs to the subjob's goroutine.
	trouble error
	// after finds out how it ended, once its supervisor is gone.
	after aftermath.Aftermath
	// settling serializes two Settles of the same subjob.
	settling sync.Mutex
}

// of sets the message that asked for it.
func (r *run) of(m protocol.Message) {
	r.start = m
	w := r.work()
	r.told.Origin = executor.Origin{Node: m.From, Executor: m.To}
	r.told.Job, r.told.Slice, r.told.Range = m.Job, w.Slice, w.Range
	r.control.lease(w.End, w.Range)
}

// work is what was asked to be run.
func (r *run) work() *protocol.Work { return r.start.Body.(*protocol.Work) }

// all are the subjobs that are not settled.
func (e *Executor) all() []*still {
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]*still, 0, len(e.runs))
	for _, r := range e.runs {
		list = append(list, &r.still)
	}
	return list
}

// health is whether the node can start anything at all.
type health struct {
	mu      sync.Mutex
	probing bool
	// cut: a subjob that had begun was the node's failure, and the disk was not seen to have room since.
	cut    bool
	trying sync.Mutex
}

// hall are the rooms, and settled run directories that wait to be removed.
type hall struct {
	rooms.Rooms
	over chan over
}

// over is a settled run directory, and the room that it was made of.
type over struct {
	path string
	room *rooms.Room
}

// underway tracks requests that are repeated until they are done: settling a subjob, or removing a job's files.
type underway struct {
	kind       protocol.Kind
	token      job.Token
	name       job.ID
	generation job.Generation
}
