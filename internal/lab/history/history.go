// Package history is what a cluster's scheduler has written down: which job held which devices from when to when, what there was to
// hold, and what of the log is odd. Readers, one folder per kind of log, put rows into a Book in any order and from any number of
// files; its Close makes a History of them that does not depend on that order. It knows nothing of fillers and of what could be done
// with the gaps.
package history

import (
	"iter"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// History is what is known of a cluster's work in [From, To). Instants that are not known are quantity.Never.
type History struct {
	// From and To are the stretch of which all work is known. Runs may begin before and end behind it.
	From, To quantity.Instant
	// Anywhere: the log does not say on which devices jobs ran, so that what held which is an assumption.
	Anywhere bool
	// Names are the texts that runs refer to, in order; the first is empty.
	Names []string
	// Kinds of devices, by name.
	Kinds []Kind
	// Nodes by name, and Devices by node, kind and number.
	Nodes   []Node
	Devices []Device
	// Held is by device what held it: in order, never overlapping, never empty.
	Held [][]Hold
	// Used is by device what was measured of it, nil where nothing was; nil if there are no measurements at all.
	Used []*Use
	// Runs by start, then by submission and id; those that never started are last.
	Runs []Run
	// Loads are what runs ask for or hold, Places on which nodes; runs refer to both. The first of each is empty.
	Loads  [][]Part
	Places [][]int32
	// Oddities by name: what of the log is not as it should be, with what was done about it.
	Oddities []Oddity
	// Assumptions are sentences: what was taken for true because the log does not say.
	Assumptions []string
}

// Name is a text: an index into History.Names. 0 is none.
type Name uint32

// Node is a machine.
type Node struct {
	Name string
	// Devices [First, First+Count) of the history are its.
	First, Count int32
	// Partitions that it is in, by name; nil where nothing says.
	Partitions []string
	// Away are the times in which its free devices are not to be had, by begin. They may overlap.
	Away []Away
	// Invented: the log does not say where jobs ran, and this stands for all places.
	Invented bool
}

// Why says why a node's free devices are not to be had.
type Why uint8

// The reasons.
const (
	Down Why = iota + 1
	Drained
	Reserved
	// Unrecorded: nothing is known of the time, as whoever writes the log down was away.
	Unrecorded
)

// String is for people.
func (w Why) String() string {
	switch w {
	case Down:
		return "down"
	case Drained:
		return "drained"
	case Reserved:
		return "reserved"
	case Unrecorded:
		return "not recorded"
	}
	return "away"
}

// Away is [From, To) in which a node is not to be had. To is Never where its end is not known.
type Away struct {
	From, To quantity.Instant
	Why      Why
}

// Device is one GPU, or one slice of one.
type Device struct{ Node, Kind int32 }

// Hold is [From, To) in which a run holds a device; Run counts in History.Runs. To is the end of the history where the run goes on.
type Hold struct {
	From, To quantity.Instant
	Run      int32
}

// Part is a number of devices of a kind (an index into History.Kinds). Milli is the share of each, 1000 for whole ones.
type Part struct{ Kind, Count, Milli int32 }

// State of a run when the log was written.
type State uint8

// The states.
const (
	Unclear State = iota
	Pending
	Running
	Suspended
	Completed
	Failed
	Cancelled
	Timeout
	Preempted
	NodeFailed
	Requeued
)

// String is the scheduler's word, in lower case.
func (s State) String() string {
	return [...]string{"unclear", "pending", "running", "suspended", "completed", "failed", "cancelled", "timeout", "preempted",
		"node fail",
		"requeued"}[s]
}

// Run is one run of a job: a job that was requeued has several, with the same id.
type Run struct {
	// ID is the job's, as the scheduler prints it for people.
	ID string
	// Submit is when this run came into the queue, Eligible when it could have started.
	Submit, Eligible quantity.Instant
	// Start and End bound the time that it held devices. Start is Never if it never ran. Invariant: then End is what the log says, or
	// Never; otherwise Start <= End.
	Start, End quantity.Instant
	// Limit is the walltime; 0 if there is none or it is not known.
	Limit time.Duration
	// Suspended is how long of its time it was stopped, devices in hand.
	Suspended time.Duration
	// User, Account, Partition, QOS and Job (its name) are empty where they are hidden or not given.
	User, Account, Partition, QOS, Job Name
	// Load is what it asks for or holds (an index into History.Loads), Place where (into History.Places).
	Load, Place int32
	State       State
	// Open: it had not ended when the log was written. End is then the end of the history.
	Open bool
}

// Oddity is something of a log that is not as it should be.
type Oddity struct {
	// Name says what, Done what was done about it.
	Name, Done string
	Count      int64
	// Places are up to three examples.
	Places []string
}

// Ran says whether a run held anything for any time.
func (r *Run) Ran() bool { return r.Start != quantity.Never && r.End > r.Start }

// Name is the text of a name.
func (h *History) Name(n Name) string { return h.Names[n] }

// Idle gives the stretches of [h.From, h.To) in which nothing holds a device, in order. With away those are left out in which its node is
// not to be had; without it they are counted.
func (h *History) Idle(device int, away bool) iter.Seq[Gap] {
	return func(yield func(Gap) bool) {
		var absent []Away
		if away {
			absent = h.Nodes[h.Devices[device].Node].Away
		}
		at := h.From
		// free gives [at, to) without what lies in absent.
		free := func(to quantity.Instant) bool {
			from := at
			for _, a := range absent {
				if a.To <= from {
					continue
				}
				if a.From >= to {
					break
				}
				if a.From > from && !yield(Gap{from, a.From}) {
					return false
				}
				from = max(from, a.To)
			}
			return from >= to || yield(Gap{from, to})
		}
		for _, x := range h.Held[device] {
			if x.To <= h.From {
				continue
			}
			if x.From >= h.To {
				break
			}
			if x.From > at && !free(x.From) {
				return
			}
			at = max(at, x.To)
		}
		if at < h.To {
			free(h.To)
		}
	}
}
