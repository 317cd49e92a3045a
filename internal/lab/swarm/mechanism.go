package swarm

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Mechanism is all parties of one protocol. At the beginning every party takes all slices for free: a node on which rigid work runs
// then is called (Changed) at once. Every call is made at one place, *here*: what is done in it, is done there. No call
// may allocate in steady state.
type Mechanism interface {
	// Arrive: the tasks of a job, one at least, arrive here at a gate. The slice is valid only during the call.
	Arrive(now quantity.Instant, gate int32, tasks []Task)
	// Hear: a message has arrived here, at m.To.
	Hear(now quantity.Instant, m Message)
	// Wake: a timer set here (Port.After) is due. It comes although what it was set for has passed.
	Wake(now quantity.Instant, m Message)
	// Changed: here at a node slices have become free or been taken other than by Hold, Release and Start: ended is the task that has
	// ended, 0 if rigid work came or went.
	Changed(now quantity.Instant, node int32, ended TaskID)
	// Expired: here at the gate of a task its owner gives up. It was never started, and never will be.
	Expired(now quantity.Instant, t Task)
	// Report: what a node of the zone here has told.
	Report(now quantity.Instant, zone int32, r Report)
	// Digest: what a zone has told the gate here.
	Digest(now quantity.Instant, gate int32, d *Digest)
	// Reset: the zone here comes back after all its nodes had died. Its parties know nothing, and their timers are gone. Changed is called
	// for each of its nodes right after.
	Reset(now quantity.Instant, zone int32)
}

// Teller is a mechanism that adds something of its own to a digest that the zone here is about to send; false: it is not sent.
type Teller interface {
	Tell(now quantity.Instant, zone int32, d *Digest) bool
}

// Port is the world as the party here sees it.
type Port interface {
	// Send puts a message under way. Its From is put in by the world; To must not be here. It may be lost, and is told to nobody
	// if To is dead.
	Send(m Message)
	// After calls Wake here with m in d. It costs no message.
	After(d time.Duration, m Message)
	// Task is what is known of a task that has arrived and is not over; ok is false of others. It stands for what a message
	// about the task would carry.
	Task(id TaskID) (t Task, ok bool)
	// Free slices of the node here, as a set of bits; Cluster.Room and Best read it.
	Free(node int32) uint8
	// Hold keeps the smallest free slice of the node here that is large enough, until Release or Start; -1 if there is none. A node
	// that dies forgets it.
	Hold(node int32, class uint8) (slot int8)
	// Release gives a held slice of the node here back.
	Release(node int32, slot int8)
	// StartOn starts a task on a held slice of the node here, which must be large enough. On any outcome but Started it stays held.
	StartOn(node int32, slot int8, t TaskID) Outcome
	// Told: the node here has just sent its zone what is free. It need not report that again.
	Told(node int32)
	// Start starts a task on the smallest free slice of the node here that is large enough.
	Start(node int32, t TaskID) Outcome
}

// Setup is the input of a new mechanism.
type Setup struct {
	// Seed of the mechanism's own draws.
	Seed uint64
	// Cluster is prepared, and not written to.
	Cluster *Cluster
	Gates   int
	// Period of reports and digests.
	Period time.Duration
	// Delay of a message, its mean jitter with it.
	Delay time.Duration
	// Decision is what one decision takes that looks at a view of the whole cluster, at a party that makes one after another.
	Decision time.Duration
	// Patience of tasks that are not long.
	Patience time.Duration
}

// LostAfter is how long an answer may take before what was asked counts as lost: four round trips, and 10 ms for whoever answers.
func (s Setup) LostAfter() time.Duration { return 8*s.Delay + 10*time.Millisecond }

// Kind is one mechanism.
type Kind struct {
	Name string
	// Summary is one line for people, with its source.
	Summary string
	// Omniscient: every call may look at and act on every node without a message. Only the upper line is.
	Omniscient bool
	// Reports and Digests: nodes tell their zone, and zones the gates. They are counted as messages only where they are wanted.
	Reports, Digests bool
	// Messages of its protocol, by Message.Kind.
	Messages []MessageKind
	// New makes one. An error of kind Invalid says what is wrong with the setup.
	New func(Setup, Port) (Mechanism, error)
}

// Deaf hears nothing; kinds embed it for the calls that they have no use for.
type Deaf struct{}

// Hear implements Mechanism.
func (Deaf) Hear(quantity.Instant, Message) {}

// Wake implements Mechanism.
func (Deaf) Wake(quantity.Instant, Message) {}

// Changed implements Mechanism.
func (Deaf) Changed(quantity.Instant, int32, TaskID) {}

// Expired implements Mechanism.
func (Deaf) Expired(quantity.Instant, Task) {}

// Report implements Mechanism.
func (Deaf) Report(quantity.Instant, int32, Report) {}

// Digest implements Mechanism.
func (Deaf) Digest(quantity.Instant, int32, *Digest) {}

// Reset implements Mechanism.
func (Deaf) Reset(quantity.Instant, int32) {}
