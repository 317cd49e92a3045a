package airlock

import (
	"math/bits"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// State is what Airlock is doing with a task.
type State uint8

const (
	// Running: nothing.
	Running State = iota
	// Suspending: it was told to freeze, and has not confirmed it.
	Suspending
	// Suspended: it has confirmed that it is frozen.
	Suspended
	// Resuming: it was told to go on, and has not confirmed it. The entry is over.
	Resuming
	// Readdressing: it was asked to leave a checkpoint and yield.
	Readdressing
	// Reclaiming: it is being ended.
	Reclaiming
	// Ending: it is to end, and not for want of memory: its lease ends, or its home has it stopped. It is no step of Airlock's, but gives
	// its memory back all the same.
	Ending

	// States is how many there are.
	States = iota
)

// Leaves: it is to end, whoever decided it, and its memory counts as being freed.
func (s State) Leaves() bool { return s >= Readdressing }

// Class is how much is lost with a task, the lowest first.
type Class uint8

const (
	// Fleeting work is worth nothing later.
	Fleeting Class = iota
	// Lasting work is long.
	Lasting
	// Collective work holds several slices.
	Collective
)

// Task is one lease on the host, as it lies in a table.
type Task struct {
	Token job.Token
	// Start is when it began to run.
	Start quantity.Instant
	// Since is when its entry began, Resumed when its last one ended by going on; 0: it has none.
	Since, Resumed quantity.Instant
	// Resident is its memory, Parked the part moved out until it goes on, Growth its increase in a second.
	Resident, Parked, Growth quantity.Amount
	// Planned is its probable peak, 0: not known.
	Planned quantity.Amount

	Priority int32
	Value    uint16
	Class    Class
	State    State
	// Entries is how many times it was suspended.
	Entries uint8
	// Bound: it is one member of a gang over several nodes, and is not suspended alone. Yields: it can leave a checkpoint and yield.
	Bound, Yields bool
}

// Snapshot is a host at one moment.
type Snapshot struct {
	// Capacity and Used of its memory; Growth is what is taken more in a second; Room is what can be parked outside it still.
	Capacity, Used, Growth, Room quantity.Amount
	// Stall is the share of time for which tasks were stalled for want of memory, in parts per thousand.
	Stall int64
	// Owed is memory that ended tasks have freed already and Used does not show yet.
	Owed quantity.Amount
	// Tasks in any order, at most MaxTasks. Those of which only the memory is known are left out: they count in Used.
	Tasks []Task
}

// Outgrown says whether a task has more than nine eighths of the memory that was planned for it.
func (t *Task) Outgrown() bool {
	return t.Planned > 0 && t.Resident+t.Parked > t.Planned+t.Planned/8
}

// key of a task in the order of survival: the lowest is hit first. Ties go by token.
//
// Its fields are whether it has kept to its plan, where that counts, priority, class, value band, floor(log2(1 + seconds since its start)),
// and 63 less the footprint band: the second and third in either order.
func (c *Config) key(now quantity.Instant, t *Task) uint64 {
	priority, class := uint64(uint32(t.Priority)^1<<31), uint64(t.Class)
	head := priority<<2 | class
	if c.Order == ClassFirst {
		head = class<<32 | priority
	}
	if c.Outgrown == OutgrownFirst && !t.Outgrown() {
		head |= 1 << 34
	}
	elapsed := uint64(0)
	if t.Start != 0 && t.Start < now {
		elapsed = residence(now.Sub(t.Start))
	}
	return head<<28 | uint64(t.Value)<<12 | elapsed<<6 | (63 - footprint(t.Resident+t.Parked))
}

func log2(x uint64) uint64 { return uint64(bits.Len64(x) - 1) }

// residence and footprint are the bands of the key: floor(log2(1 + seconds)), and of MiB.
func residence(ran time.Duration) uint64 { return log2(1 + uint64(max(0, ran))/1e9) }

func footprint(a quantity.Amount) uint64 { return log2(1 + uint64(max(0, a))>>20) }
