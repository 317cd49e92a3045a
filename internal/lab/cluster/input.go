package cluster

import (
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
)

// Names of the contract of planners that a driver needs: with them it imports no planner.
type (
	// Machines is what there is to run on.
	Machines = planner.Cluster
	// Task is a rigid piece of work.
	Task = planner.Task
	// ID numbers a task: small and dense, free again when the task is over.
	ID = planner.ID
	// Device numbers a device within its machines.
	Device = planner.Device
	// Verb is what an effect says.
	Verb = planner.Verb
	// Reservation is time that the planner keeps for a waiting task.
	Reservation = planner.Reservation
)

// The verbs of effects.
const (
	Start   = planner.Start
	Preempt = planner.Preempt
	Never   = planner.Never
)

// Kind says what an input is.
type Kind uint8

// The kinds of inputs.
const (
	// Arrived: a task waits from now on.
	Arrived Kind = iota + 1
	// Ended: a running task is over, and its devices are free.
	Ended
	// Returned: a task that was preempted gave its devices back, and what is left of it waits.
	Returned
	// Cancelled: a task was withdrawn, waiting or running; what it held is free.
	Cancelled
	// Ticked: all inputs of this instant are in.
	Ticked
)

// Outcome is how a task ended.
type Outcome uint8

// The outcomes.
const (
	// Finished: its work is done.
	Finished Outcome = iota
	// Failed by itself or with its machine.
	Failed
	// Expired: stopped at the end of its planned run.
	Expired

	outcomes
)

// Input is one thing that happened. Make it with the functions below. It is small and passed by value, so that a step
// through an interface allocates nothing.
type Input struct {
	Kind    Kind
	Outcome Outcome
	// Task that arrived or returned; of the others only its ID.
	Task Task
}

// Arrive says that t waits.
func Arrive(t Task) Input { return Input{Kind: Arrived, Task: t} }

// End says that a running task is over.
func End(id ID, how Outcome) Input { return Input{Kind: Ended, Outcome: how, Task: Task{ID: id}} }

// Return says that a preempted task gave its devices back; t is what is left of it.
func Return(t Task) Input { return Input{Kind: Returned, Task: t} }

// Cancel says that a task was withdrawn.
func Cancel(id ID) Input { return Input{Kind: Cancelled, Task: Task{ID: id}} }

// Tick says that all inputs of this instant are in.
func Tick() Input { return Input{Kind: Ticked} }

// Effect is one thing to be done. Class, Node and the devices Out.Devices[From:To] are those of a start.
type Effect struct {
	Verb  Verb
	Class uint8
	Task  ID
	// Node of the first device, or of a task without devices.
	Node     int32
	From, To int32
	// End is the planned end of a start; quantity.Never if its run is not known.
	End quantity.Instant
}

// Out collects effects; the caller resets and reuses it.
type Out struct {
	Effects []Effect
	Devices []Device
}

// Reset empties o and keeps its memory.
func (o *Out) Reset() { o.Effects, o.Devices = o.Effects[:0], o.Devices[:0] }
