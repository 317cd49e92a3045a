// Package planner is the contract of whole-cluster placers for rigid work: first-come, backfill, best-fit, FGD and the
// rest, one folder each, with package all as the table. They are the baselines of every comparison. A planner is a deterministic state
// machine without clock, map order or randomness of its own: the same calls give the same decisions.
package planner

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// MaxClasses is how many kinds of devices a cluster may have.
const MaxClasses = 16

// Whole is the share of a device that is all of it, in thousandths.
const Whole = 1000

// Class is a kind of device that is interchangeable to a planner: a GPU model, or a MIG profile.
type Class struct {
	Name string
	// Weight is what one device counts for in fragmentation and utilization, in thousandths of a whole GPU.
	Weight int64
	// Memory of one device, for placers that score it.
	Memory quantity.Amount
}

// Node is one machine.
type Node struct {
	Name string
	// CPU in thousandths of a core and Memory in MiB; 0 of both where the host is no constraint.
	CPU, Memory int64
	// Devices lists the class of every device. Devices are numbered through the cluster in the order of its nodes.
	Devices []uint8
}

// Cluster is what there is.
type Cluster struct {
	Classes []Class
	Nodes   []Node
}

// Device numbers a device within its cluster.
type Device int32

// ID numbers a task. The caller chooses small dense numbers and may use one again after the task has left.
type ID int32

// Task is a rigid piece of work as its planner sees it.
type Task struct {
	ID ID
	// Devices it holds at once, 0 for none; Share of each in thousandths, Whole unless Devices is 1.
	Devices, Share int32
	// Spread: the devices may be on any nodes. Otherwise they are on one.
	Spread bool
	// Fixed: it can not be stopped and go on later. Planners that preempt leave it alone.
	Fixed bool
	// Classes it may use, as a set of bits: its memory fits and its owner allows it. All its devices are of one class.
	Classes uint32
	// CPU in thousandths of a core and Memory in MiB that it needs of its node. A host without either has no limit, and a
	// task that spreads asks nothing of hosts.
	CPU, Memory int64
	// Weight is how much its completion counts beside that of others, for planners that weigh them; 0 counts as 1.
	Weight int64
	// Run is the planned run time on each class, an upper bound in the eyes of its owner; nil where no planner may know it. A
	// task that runs past it is planned as ending in the next nanosecond.
	// It is shared and not written to while the task is known.
	Run *[MaxClasses]time.Duration
}

// Verb is what a decision says.
type Verb uint8

// The decisions.
const (
	// Start the task now on the devices named.
	Start Verb = iota + 1
	// Preempt a running task: it leaves a checkpoint, its devices count as taken until the caller says Leave. What is left
	// of it arrives in the same instant under the same id, with Run without the cost of the restore.
	// Only kinds marked Preempts say this.
	Preempt
	// Never: the task can not run in this cluster; it is not in the queue.
	Never
)

// Decision is one line of a plan.
type Decision struct {
	Verb Verb
	Task ID
	// Class of the devices, Node of the first one (or of a task without devices); devices are Out.Devices[From:To].
	Class    uint8
	Node     int32
	From, To int32
}

// Out collects the decisions of a call; the caller resets and reuses it.
type Out struct {
	Decisions []Decision
	Devices   []Device
}

// Reset empties o and keeps its memory.
func (o *Out) Reset() { o.Decisions, o.Devices = o.Decisions[:0], o.Devices[:0] }

// Start appends a decision to start a task on devices appended to o.Devices since from.
func (o *Out) Start(t ID, class uint8, node int32, from int) {
	o.Decisions = append(o.Decisions, Decision{Verb: Start, Task: t, Class: class, Node: node, From: int32(from),
		To: int32(len(o.Devices))})
}

// Reservation is time that a planner keeps for a waiting task.
type Reservation struct {
	Task  ID
	Class uint8
	// Start is when it expects to start the task; End by when the task is expected to be over.
	Start, End quantity.Instant
}

// Planner decides. Its methods never allocate in steady state. Time never goes back. After New the cluster is empty.
type Planner interface {
	// Arrive puts a task at the end of the queue. A task that left and comes again is a new one.
	Arrive(now quantity.Instant, t Task)
	// Leave says that a task is over: it ended, gave its devices back after Preempt, or was withdrawn from the queue.
	Leave(now quantity.Instant, id ID)
	// Plan appends what is to be done now; starts are taken as done. Called again without news in between it adds nothing.
	Plan(now quantity.Instant, out *Out)
	// Reservations appends what is kept for waiting tasks, in queue order; nothing for planners that keep none.
	Reservations(now quantity.Instant, out []Reservation) []Reservation
}

// Waker is a planner that wants to be asked though nothing happens, because what is right changes with time alone.
type Waker interface {
	// Wake is the next instant at which Plan may change without news; quantity.Never if there is none. It is asked after Plan, and is never
	// at or before now.
	Wake(now quantity.Instant) quantity.Instant
}

// Typical is a class of tasks with its share of all, for planners that look at what is yet to come (FGD).
type Typical struct {
	Task Task
	// Count of tasks of this class; only ratios matter.
	Count int64
}

// Options of a new planner. Kinds ignore what they do not need.
type Options struct {
	Cluster Cluster
	// Seed of the planner's own stream of random numbers.
	Seed uint64
	// Ranks orders the nodes where scores tie, the lowest first; nil for list order.
	Ranks []int32
	// Typical tasks, most frequent first.
	Typical []Typical
	// Restore and Checkpoint are what a preemption costs.
	Restore, Checkpoint time.Duration
}

// Kind is one planner.
type Kind struct {
	Name string
	// Summary is one line for people, with its source.
	Summary string
	// Preempts marks a baseline that stops running work.
	Preempts bool
	// New makes one. An error of kind Invalid lists what is wrong with the options.
	New func(Options) (Planner, error)
}
