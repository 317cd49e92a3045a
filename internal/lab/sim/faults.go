package sim

import (
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// FaultKind is what goes wrong.
type FaultKind uint8

// The faults. A kill of a daemon between two of its steps, with what it loses on the way in and out, stands for one at any
// moment: facts that were not durable yet are an input that never came, effects that never left are messages that were
// lost.
const (
	// NodeCrash takes a node away for a time. What ran there is lost, unless Keep.
	NodeCrash FaultKind = iota + 1
	// DaemonCrash takes all gates, all zones and one node away for a time: one process. What runs goes on.
	DaemonCrash
	// Partition cuts a node off: all messages from and to it are lost. PartitionIn and PartitionOut cut one way.
	Partition
	PartitionIn
	PartitionOut
	// ClockSet makes a node's clock show the true time plus Offset and run Drift fast, for a time or, with For 0, for good.
	// A clock never goes back: it stands until the time it has shown is there.
	ClockSet
	// ZoneCrash takes one zone away for a time. What runs goes on.
	ZoneCrash
	// GateCrash takes one gate away for a time.
	GateCrash
)

var faultNames = [...]string{"", "node-crash", "daemon-crash", "partition", "partition-in", "partition-out", "clock", "zone-crash",
	"gate-crash"}

// String is the fault's name.
func (k FaultKind) String() string {
	if int(k) < len(faultNames) {
		return faultNames[k]
	}
	return "unknown"
}

// Fault is one fault.
type Fault struct {
	Kind FaultKind
	At   quantity.Instant
	For  time.Duration
	// Node it happens to; for a DaemonCrash the node of the same process, the first one if empty.
	Node job.NodeID
	// Zone that a ZoneCrash takes away.
	Zone job.ZoneID
	// Gate that a GateCrash takes away; empty where there is one.
	Gate job.GateID
	// Keep: supervisors keep what runs there alive while the node's daemon is away.
	Keep bool
	// Offset and Drift of a ClockSet; Drift in parts per million.
	Offset time.Duration
	Drift  int64
}

// Rate makes faults at random: on every node (ZoneCrash: in every zone; GateCrash: on every gate; DaemonCrash: in all) one in a while,
// exponentially distributed with this mean, each for an exponentially distributed time with mean For. At, Node and Zone say nothing here.
type Rate struct {
	Fault
	Every time.Duration
}

// Faults are what goes wrong in a simulation. The zero value is nothing.
type Faults struct {
	Schedule []Fault
	Random   []Rate
	// Offset and Drift (parts per million) are the most by which a node's clock is wrong from the start, either way.
	Offset time.Duration
	Drift  int64
}

// maxDrift keeps clocks going forwards.
const maxDrift = 500_000

func (k FaultKind) crash() bool {
	return k == NodeCrash || k == DaemonCrash || k == ZoneCrash || k == GateCrash
}

// check lists what is wrong.
func (f *Faults) check(nodes map[job.NodeID]bool, zones map[job.ZoneID]bool, gates map[job.GateID]bool, rebuild bool) (errs []error) {
	wrong := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, errkind.Errorf(errkind.Invalid, "simulation: "+format, args...))
		}
	}
	one := func(where string, i int, x *Fault) {
		wrong(x.Kind < NodeCrash || x.Kind > GateCrash, "%s[%d]: there is no fault %d", where, i, x.Kind)
		wrong(x.For < 0 || x.For == 0 && x.Kind != ClockSet, "%s[%d]: a %v lasts %v; say how long", where, i, x.Kind, x.For)
		wrong(x.Drift < -maxDrift || x.Drift > maxDrift, "%s[%d]: a drift of %d parts per million; at most %d either way", where, i,
			x.Drift, maxDrift)
		wrong(x.Kind.crash() && !rebuild, "%s[%d]: after a %v actors must be made anew; give Rebuild", where, i, x.Kind)
	}
	for i := range f.Schedule {
		x := &f.Schedule[i]
		one("schedule", i, x)
		wrong(x.Kind == ZoneCrash && !zones[x.Zone], "schedule[%d]: there is no zone %q", i, x.Zone)
		wrong(x.Kind == GateCrash && !gates[x.Gate], "schedule[%d]: there is no gate %q", i, x.Gate)
		wrong(x.Kind != ZoneCrash && x.Kind != GateCrash && !nodes[x.Node] && (x.Kind != DaemonCrash || x.Node != ""),
			"schedule[%d]: there is no node %q", i, x.Node)
	}
	for i := range f.Random {
		x := &f.Random[i]
		one("random", i, &x.Fault)
		wrong(x.Every <= 0, "random[%d]: one in %v; say a mean time between two", i, x.Every)
	}
	wrong(f.Offset < 0 || f.Drift < 0 || f.Drift > maxDrift, "clocks off by %v and %d parts per million; both from 0, the drift to %d",
		f.Offset, f.Drift, maxDrift)
	return errs
}
