// Package executor is the contract of what runs subjobs on one node. Kinds live in folders below; every kind passes executortest. An
// executor gets messages (package protocol, kinds Start, Deadline, Stop, Settle, Purge) and answers with messages (Started, Exited, Stuck,
// Settled, Report). It decides nothing about scheduling.
package executor

import (
	"context"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/journal"
)

// Executor runs subjobs. Do is idempotent by token: a repeated Start of a subjob that runs or has ended starts nothing
// and repeats the answer. Of subjobs that were settled this holds until the executor is closed: a node starts none that was leased
// in an earlier boot.
type Executor interface {
	// Find looks for subjobs of earlier boots before anything else is done: it fences run directories whose supervisor
	// never came up, so that none can start later, takes over living ones, and reports each with the witness that its
	// lease carries.
	Find(ctx context.Context) ([]Found, error)
	// Do carries out one effect. It returns at once; answers come through the deliver function the kind was made with.
	// witness is the position of the lease's record, stored in the run directory with Start.
	Do(m protocol.Message, witness journal.Position)
	// Isolation says in a few words which containment level holds here, for people.
	Isolation() string
	// Close stops watching. Running subjobs go on.
	Close() error
}

// Workdir is a stored copy of a work directory.
type Workdir struct {
	// ID names it: equal ones have one.
	ID string
	// Files and Bytes are its size unpacked; directories and links count as files.
	Files, Bytes int64
}

// Part is the subjob's part of its job.
type Part struct {
	Token job.Token
	Job   job.ID
	// Generation of the job's life that it is of; 0, as older versions wrote, is the first.
	Generation job.Generation
	Slice      job.SliceID
	Kind       job.Kind
	Range      job.Range
	// Member of a gang over several nodes that this is of Members; Members is 0 of what runs on one node.
	Member, Members int `json:",omitempty"`
	// Saves: of a rigid job (job.Spec).
	Saves bool `json:",omitempty"`
	// Total and Grid of the job, to judge what the progress file says.
	Total, Grid int64
	// Bars are what was known of a sweep's trials when the subjob was sold.
	Bars []job.Bar `json:",omitempty"`
}

// Program is what a supervisor starts for a subjob.
type Program struct {
	// WarnSignal is sent WarnBefore ahead of the lease's end; 0 for none.
	WarnSignal int
	WarnBefore time.Duration

	Command []string
	// Adapter runs the command, if one is given: it is then the program that is started, and hears the signals that ask for an end alone.
	Adapter job.Adapter `json:",omitzero"`
	// Env is the whole environment. WorkDir is where the command starts, in the run directory's work directory.
	Env     []string
	WorkDir string
	Umask   job.Umask
	// Base is the unpacked work directory that is shown as an overlay; empty where the work directory is a copy.
	Base string
	// Resume is the checkpoint to start from, to be kept read-only; empty at first.
	Resume string
}

// Origin is where a subjob comes from.
type Origin struct {
	// Witness is the position of the lease's record in the journal.
	Witness journal.Position
	// Node and Executor are the sender and the receiver of the request: answers go the other way.
	Node, Executor protocol.Address
}

// Found is a subjob of an earlier boot with its witness.
type Found struct {
	protocol.Found
	Witness journal.Position
}

// What is done to a running subjob (Notice.Kind). Its program reads these words.
const (
	// NoticeYield: it has been asked to end by Until, and SIGTERM with it.
	NoticeYield = "yield"
	// NoticeTruncated: its lease ends at Until, which is earlier than was promised. SIGTERM has not come yet.
	NoticeTruncated = "truncated"
	// NoticeSuspended: it is suspended since its node is short of memory. It reads this once it is resumed, or in a part that still runs.
	NoticeSuspended = "suspended"
	// NoticeResumed: it was suspended, and is resumed. Its lease did not wait.
	NoticeResumed = "resumed"
)

// Notice is what was done to a running subjob, as its program reads it in the file that SLUICE_NOTICE_FILE names. The file is
// replaced whole, says only what holds now, and is not there while nothing was done, or once that was taken back.
type Notice struct {
	// Sequence numbers what one subjob is told, from 1. Where one is missing the program did not look in between.
	Sequence int64
	Kind     string
	// Until is when the subjob is killed if it still runs, whatever was done.
	Until quantity.Instant
	// Why, for people.
	Why string
}

// GoneResident is why a subjob that was cut for a program that stays (protocol.Plan.Resident) has not begun: there is none.
const GoneResident = "the program that stayed is gone"

// Outbox hands an executor's answers over one at a time and in order, from a goroutine of its own that lives only while there are any: a
// poster never waits for the listener. Make it with NewOutbox; it is safe for concurrent use.
type Outbox struct {
	deliver func(protocol.Message)

	mu           sync.Mutex
	queue        []protocol.Message
	busy, closed bool
}

// NewOutbox makes an empty outbox.
func NewOutbox(deliver func(protocol.Message)) *Outbox { return &Outbox{deliver: deliver} }

// Post queues a message; after Close it drops it.
func (b *Outbox) Post(m protocol.Message) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	b.queue = append(b.queue, m)
	if !b.busy {
		b.busy = true
		go b.drain()
	}
}

func (b *Outbox) drain() {
	for {
		b.mu.Lock()
		if b.closed || len(b.queue) == 0 {
			b.busy = false
			b.mu.Unlock()
			return
		}
		m := b.queue[0]
		b.queue = b.queue[1:]
		b.mu.Unlock()
		b.deliver(m)
	}
}

// Close drops what was not delivered. A delivery that has begun goes on.
func (b *Outbox) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed, b.queue = true, nil
}
