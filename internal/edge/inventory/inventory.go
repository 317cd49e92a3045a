// Package inventory is the contract of what finds the slices a node has to offer. Kinds live in folders below; every
// kind passes inventorytest. An inventory only looks: it never changes a GPU's geometry or mode, and knows nothing of
// jobs, time on slices or who may use them.
package inventory

import (
	"context"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
)

// Inventory is the slices of one machine, or of a cluster. Its methods may be called from several goroutines.
type Inventory interface {
	// Slices lists what is there now, in order of id. Ids are unique on the machine and name a place, not an instance
	// ("gpu0", "gpu0/3g.40gb@4"), so that the same geometry has the same ids after a restart; the caller puts its node's
	// name in front. An error is of kind Unavailable where looking again may help.
	Slices(ctx context.Context) ([]protocol.Slice, error)
	// GPUs names the real GPUs behind the slices by their UUIDs, sorted, for Lock. Simulated slices have none.
	GPUs() []string
	// Describe is one line for people: what was found, and what was left out and why.
	Describe() string
	// Watch reports what others have of the slices or wait for, and what else of them changed, until ctx ends; then it
	// returns nil. ours says whether a process of that id, seen on that slice, belongs to a subjob; kinds that see no
	// processes do not ask. report is called by one goroutine at a time, only when something changed, and never after Watch
	// has returned. A kind that sees nothing of others only waits.
	Watch(ctx context.Context, ours func(slice job.SliceID, pid int) bool, report func(Sighting)) error
	// Close releases the driver. It may be called twice.
	Close() error
}

// Meter is implemented by inventories that can tell how much of a slice's own memory processes use.
type Meter interface {
	// Use lists the processes that compute on a slice now with the memory they have there, in bytes, by the pid of the
	// host's outermost namespace. One whose use is not told is left out. An error is of kind NotFound for a slice that is
	// not there, else as the driver has it.
	Use(slice job.SliceID) (map[int]int64, error)
}

// Live is implemented by inventories whose slices come and go, are held by others for a time, or whose GPUs are seen to fail.
type Live interface {
	// Held is all that others hold of slices now, and the state of their GPUs, in order of slice; a slice without either is left out. Watch
	// continues from it: the caller tells its nodes before they offer anything.
	Held() []Sighting
}

// Sighting is a change in who else uses a slice or waits for one. It becomes a message of kind Foreign, Checkup or Wished;
// Restocked and Condition are for the host.
type Sighting struct {
	Slice job.SliceID
	// Present: somebody else is there; otherwise the last one has gone.
	Present bool
	// Text says who, for people.
	Text string
	// Closures are the times for which others have the slice, now or later; they replace the last report: see protocol.Intrusion.
	Closures []protocol.Reservation
	// Restocked: the set of slices has changed; call Slices again. Slice is empty. What others hold of new slices was reported before.
	Restocked bool
	// Condition: the inventory has lost sight of who holds what, so nothing may be started, or sees it again. Slice is empty. nil: no
	// change.
	Condition *protocol.Condition
	// Vitals is what is reported of a GPU, with ids as in Slices. nil: not about a GPU.
	Vitals *protocol.Vitals
	// Wishes are the waiters for devices, and the machines' devices, with the ids of Slices. nil: not about these.
	Wishes *protocol.Wishes
}

// Message is its message to a node. named gives a slice the name that it has there.
func (s Sighting) Message(named func(job.SliceID) job.SliceID) protocol.Message {
	all := func(ids []job.SliceID) []job.SliceID {
		ids = slices.Clone(ids)
		for i := range ids {
			ids[i] = named(ids[i])
		}
		return ids
	}
	switch {
	case s.Vitals != nil:
		v := *s.Vitals
		v.Slices, v.Errors = all(v.Slices), slices.Clone(v.Errors)
		for i := range v.Errors {
			if v.Errors[i].On != "" {
				v.Errors[i].On = named(v.Errors[i].On)
			}
		}
		return protocol.Message{Kind: protocol.Checkup, Body: &v}
	case s.Wishes != nil:
		w := *s.Wishes
		w.Machines = slices.Clone(w.Machines)
		for i := range w.Machines {
			w.Machines[i] = w.Machines[i].Renamed(named)
		}
		return protocol.Message{Kind: protocol.Wished, Body: &w}
	}
	return protocol.Message{Kind: protocol.Foreign, Body: &protocol.Intrusion{Slice: named(s.Slice), Present: s.Present, Text: s.Text,
		Closures: s.Closures}}
}
