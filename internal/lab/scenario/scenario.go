package scenario

import (
	"fmt"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/airlock"
	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/market/auction"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/bidder"
	"sluice.dev/sluice/internal/lab/guest"
	"sluice.dev/sluice/internal/lab/hostwork"
	"sluice.dev/sluice/internal/lab/lender"
	"sluice.dev/sluice/internal/lab/measure"
	"sluice.dev/sluice/internal/lab/scenario/outcome"
	"sluice.dev/sluice/internal/lab/sim"
	leanworld "sluice.dev/sluice/internal/lab/swarm/world"
	"sluice.dev/sluice/internal/lab/trace"
	"sluice.dev/sluice/internal/lab/workload"
	"sluice.dev/sluice/internal/lab/workload/compose"
	"sluice.dev/sluice/internal/lab/workload/synthetic"
)

// Scenario is a file as read: checked, its defaults filled. Instants are virtual and count from 0.
type Scenario struct {
	Name, Doc string
	Nodes     []Node
	// Zones is how many zones the daemon's own mechanisms have; node i offers to zone i mod Zones. At least 1.
	Zones int
	// Gates is how many gates they have; jobs are spread over them by name. At least 1.
	Gates        int
	Reservations []Reservation
	// Guests come for slices of the nodes, as others do in a cluster; nil: nobody does.
	Guests *guest.House
	// Pools of pilots that host schedulers lend; nil: nobody lends any.
	Pools *lender.Lenders
	// Host owns the slices; nil where they are the mechanisms' own.
	Host *Host
	// Swarm is a world of lean nodes under short tasks, in place of nodes and workload; nil elsewhere. Its mechanism and seed are put in
	// for each run.
	Swarm *leanworld.Options
	// SwarmLog is the log whose requests are its tasks; nil where they are drawn.
	SwarmLog *SwarmLog
	Queues   []protocol.Queue
	Settings Settings
	Workload Workload
	Model    Model
	// Memory of the hosts; nil where it is not modelled.
	Memory *HostMemory
	Faults []Fault
	Window Window
	Seeds  []uint64
	Expect []outcome.Expectation
	// Renamed says of keys of the file that have another name now which it is.
	Renamed []string

	same    []job.SpeedOn  // shared by explicit rigid jobs
	formats []trace.Format // of files of arrivals
}

// Node is one machine with its slices, whose ids begin with the node's name.
type Node struct {
	ID     job.NodeID
	Slices []protocol.Slice
}

// Reservation takes slices of the cluster off the market. It is announced At, to nodes that know it at once.
type Reservation struct {
	At   quantity.Instant
	Node job.NodeID
	protocol.Reservation
}

// Settings are the mechanisms' settings where the command line gives no others.
type Settings struct {
	// Use names the mechanisms that run by default, at least one. Expectations are about the first.
	Use []string
	// Policy of sja, and the planner of its zone's rigid jobs; empty for the defaults.
	Policy, Rigid string
	// Starvation is when a job of sja or jasda has waited too long.
	Starvation starvation.Limit
	// Horizon, MinWindow and so on as in the daemon.
	Horizon, MinWindow time.Duration
	// Theta in parts per million is what jobs accept that do not say.
	Theta int64
	// Ends is the share of subjobs in parts per million that may be cut short where the ends of gaps are learned; 0: they are not.
	Ends int64
	// Continue: a running subjob may be given the window that follows its own.
	Continue bool
	// TauMin is the least useful run of every divisible job; 0: by the rule of the core. OverheadMax in parts per thousand.
	TauMin      time.Duration
	OverheadMax int
	// Grace is the part of every lease that is left for an orderly end.
	Grace time.Duration
	// StopAll lets mechanisms that preempt stop every job, as the literature has it; otherwise only those that may be cut.
	StopAll bool
	// Restore and Checkpoint are what a preemption costs a mechanism that preempts.
	Restore, Checkpoint time.Duration
	// Market is how jasda negotiates.
	Market auction.Config
	// Flow is how tickets of laminar search.
	Flow flow.Config
}

// Workload is the work offered: explicit jobs, and streams of generated ones.
type Workload struct {
	Jobs    []Job
	Streams []Stream
	// Agents bid for jobs, where the mechanism negotiates.
	Agents []Agents
}

// NeedsData reports whether it is composed of published traces, which are below a folder of their own.
func (w *Workload) NeedsData() bool { return measured(w.Streams) }

// NeedsData says whether any of the work, the host's included, is composed of published traces.
func (s *Scenario) NeedsData() bool {
	return s.Workload.NeedsData() || s.SwarmLog != nil || s.Host != nil && measured(s.Host.Streams)
}

func measured(streams []Stream) bool {
	return slices.ContainsFunc(streams, func(s Stream) bool { return s.Measured })
}

// Job is an explicit job.
type Job struct {
	Name string
	Job  workload.Job
}

// Model is how the world differs from the plan.
type Model struct {
	Network Network
	// TimeError and MemoryError are how the declarations of generated jobs are off, in streams that do not say.
	TimeError, MemoryError compose.Error
}

// Network is what happens to each message between gate, zone and nodes.
type Network struct {
	// Delay of every message, and the mean of the exponential jitter on top.
	Delay, Jitter time.Duration
	// Loss and Duplication are chances in parts per million.
	Loss, Duplication int64
}

// Fault kinds.
const (
	// KillNode takes a machine away with all that runs on it.
	KillNode = "node"
	// KillZone takes a zone away. What runs goes on.
	KillZone = "zone"
	// KillGate takes a gate away.
	KillGate = "gate"
	// KillDaemon takes gates, zones and one node away, the parts of one process. What runs goes on.
	KillDaemon = "daemon"
	// CutNode loses all messages from and to a node: a partition.
	CutNode = "network"
	// SkewNode sets a node's clock off.
	SkewNode = "clock"
	// DrainZone makes a zone give its jobs to the others, for good. It is no fault, but a person's order.
	DrainZone = "drain"
)

// Fault is one planned fault, or a process of random ones.
type Fault struct {
	// Kind is one of the fault kinds; Node, or Zone, or Gate, whom it strikes. Random ones strike every node (or zone, or gate), each at
	// its own times.
	Kind string
	Node job.NodeID
	Zone job.ZoneID
	Gate job.GateID
	// At is when, for a planned one; Every the mean time between random ones (exponential), 0 for planned ones.
	At    quantity.Instant
	Every time.Duration
	// For is how long it lasts.
	For time.Duration
	// Keep: what runs on a killed node lives on under its supervisors.
	Keep bool
	// Offset of the clock, and its Drift in parts per million.
	Offset time.Duration
	Drift  int64
}

// Window is the time that is measured.
type Window struct {
	// Warmup is left out of the figures; no job arrives after Until; the run ends at Limit at the latest.
	Warmup, Until, Limit quantity.Instant
}

// Stays reports whether programs of any jobs stay between subjobs.
func (w *Workload) Stays() bool {
	return slices.ContainsFunc(w.Jobs, func(j Job) bool { return j.Job.Process.Resident }) ||
		slices.ContainsFunc(w.Streams, func(t Stream) bool { return t.Options.Resident })
}

// GiB is the unit that memory is shown in.
const GiB = quantity.Amount(1 << 30)

// Slices counts the slices of the cluster.
func (s *Scenario) Slices() (n int) {
	if s.Swarm != nil {
		for _, of := range s.Swarm.Cluster.Capacity() {
			n += int(of)
		}
		return n
	}
	for _, node := range s.Nodes {
		n += len(node.Slices)
	}
	for _, b := range sim.Berths(s.Pools) {
		n += len(b.Slices)
	}
	return n
}

// ZoneName is what the i-th zone is called: zone where there is one, else zone-1, zone-2 and so on.
func (s *Scenario) ZoneName(i int) job.ZoneID {
	if s.Zones <= 1 {
		return "zone"
	}
	return job.ZoneID(fmt.Sprintf("zone-%d", i+1))
}

// ZoneOf is the zone of a node, by its place.
func (s *Scenario) ZoneOf(node int) job.ZoneID { return s.ZoneName(node % max(1, s.Zones)) }

// GateNames are the names of the gates; none where there is one.
func (s *Scenario) GateNames() (names protocol.Gates) {
	for i := 0; s.Gates > 1 && i < s.Gates; i++ {
		names = append(names, job.GateID(fmt.Sprint("gate-", i+1)))
	}
	return names
}

// Classes are the nodes as the simulator has them, and behind them the berths of pilots, with the classes of their slices.
func (s *Scenario) Classes() ([]sim.Node, []measure.Class) {
	nodes := make([]sim.Node, len(s.Nodes))
	for i := range s.Nodes {
		nodes[i] = sim.Node{ID: s.Nodes[i].ID, Slices: s.Nodes[i].Slices}
	}
	nodes = append(nodes, sim.Berths(s.Pools)...)
	return nodes, sim.Classes(nodes)
}

// Host is a scheduler that owns the slices. The work offered to the mechanisms are fillers: they have what the host leaves, and give
// it back when the host wants it.
type Host struct {
	// Planner is its name, Notice how long ahead the host says that it takes a slice which no plan of its has foretold.
	Planner string
	Notice  time.Duration
	// Walltimes says whether its planner knows how long jobs may run. Without, it foretells nothing but by the calendar.
	Walltimes bool
	// Least is the shortest walltime that time-min and deadline ask for.
	Least time.Duration
	// Gaps and Stays are drawn in turn for each slice, where it has no work of its own in Streams; nil elsewhere.
	Gaps, Stays synthetic.Duration
	// Streams are its work, which is never cut. It lies on the slices that no reservation names; those are held by the calendar.
	Streams []Stream
	// Log is what it did, where that is known already: stays by slice of the cluster. nil: its planner places Streams. It is only read.
	Log hostwork.Log
}

// Stream is work that is composed of parts: arrivals and durations, programs with their speeds, shapes of memory.
type Stream struct {
	// Generator of arrivals and durations; nil: a trace's, from the file Trace or, if that is nil, the published ones.
	Generator *synthetic.Jobs
	Trace     *compose.Trace
	// Measured: programs and memory are those of the published traces; otherwise those with their statistics.
	Measured bool
	// Queue of all its jobs; empty: as in the arrivals.
	Queue string
	// Agent is the name of the agents of all its divisible jobs; empty: as the shares say.
	Agent string
	// Options but for the classes and the seed.
	Options compose.Options
}

// HostMemory is the memory of the machines that the nodes are, and what happens where it runs out.
type HostMemory struct {
	sim.HostMemory
	// Airlock is where the nodes' lines are.
	Airlock airlock.Config
	// Joint is the limit on joint excess at admission; without Memory there is none.
	Joint joint.Config
}

// Agents are the agents of external jobs of one kind. Its jobs are a group of which figures are given.
type Agents struct {
	// Name of the group: that of the strategy if none was given.
	Name     string
	Strategy bidder.Kind
	// By is the strategy's number, in parts per thousand.
	By int64
	// Share of the divisible jobs that do not say who bids for them, in parts per million.
	Share int64
	// Think is how long an agent thinks before it answers.
	Think time.Duration
}

// Own is the group of the divisible jobs that answer for themselves, in a scenario in which others have agents.
const Own = "own"

// AllShares is a share of all.
const AllShares = 1_000_000

// SwarmLog is a file of requests to language models, each of which is a short task.
type SwarmLog struct {
	Format trace.Format
	// File below the folder of the data, or from the root.
	File string
	// Prompt and Output are the time for each token.
	Prompt, Output time.Duration
}
