package protocol

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Strain is what a host's memory is like, as its sensors say, and what its subjobs have of it.
type Strain struct {
	// Capacity and Used; Growth is what is taken more in a second; Room is what can be parked outside the memory still.
	Capacity, Used, Growth, Room quantity.Amount
	// Stall is the share of time for which tasks were stalled for want of memory, in parts per thousand.
	Stall int64
	Uses  []Use
	// Watch is the life of the machine's watcher, which decides about its memory in the node's place; 0: none lives, and the node decides.
	// Where it is another than before everything has gone on in between.
	Watch uint64
	// Others are the subjobs of this machine's other nodes, as those rank them: who gives way is found among all, and each node sees to
	// its own.
	Others []Neighbour
}

// Neighbour is a subjob of another node of the same machine: what it has, with when its entry began, when its last one ended and how often
// it was suspended (Stand's times alone), since when it runs, its probable peak (0: not known), its rank, what Airlock does with it
// (airlock.State), and whether it may not be suspended.
type Neighbour struct {
	Use
	Job     job.ID
	Start   quantity.Instant
	Planned quantity.Amount
	Rank    Rank
	State   uint8
	Bound   bool
}

// Use is what one subjob has of a host's memory: Resident in it, Parked outside until it goes on; Growth is what it takes more in a second.
type Use struct {
	Token                    job.Token
	Resident, Parked, Growth quantity.Amount
	// Stand is what the watcher does with it, where one lives.
	Stand Stand
}

// Stand is what a machine's watcher does with a subjob.
type Stand struct {
	State Stance
	// Since is when its entry began, Resumed when its last one ended by going on; 0: it has none. Times is how often it was suspended.
	Since, Resumed quantity.Instant
	Times          uint8
}

// Stance is what a subjob does for the sake of the machine's memory.
type Stance uint8

const (
	// GoesOn: nothing, or nothing any more.
	GoesOn Stance = iota
	// IsSuspended: it was told to freeze.
	IsSuspended
	// IsToYield: it is to leave a checkpoint. Its node asks it.
	IsToYield
	// IsEnded at once.
	IsEnded

	// Stances is how many there are.
	Stances = iota
)

// Stillness says that a subjob is suspended, or not any more. Refused: it can't be.
type Stillness struct{ Still, Refused bool }

// Body marks what node and executor tell each other of memory.
func (*Strain) Body()    {}
func (*Stillness) Body() {}
