package protocol

import (
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Strain is what a host's memory is like, as its sensors say, and what the subjobs of a node have of it.
type Strain struct {
	// Capacity and Used; Growth is what is taken more in a second; Room is what can be parked outside the memory still.
	Capacity, Used, Growth, Room quantity.Amount
	// Stall is the share of time for which tasks stood still for want of memory, in parts per thousand.
	Stall int64
	Uses  []Use
}

// Use is what one subjob has of a host's memory: Resident in it, Parked outside until it goes on; Growth is what it takes more in a second.
type Use struct {
	Token                    job.Token
	Resident, Parked, Growth quantity.Amount
}

// Stillness says that a subjob stands still, or that it doesn't any more. Refused: it can't be made to.
type Stillness struct{ Still, Refused bool }

// Body marks what node and executor tell each other of memory.
func (*Strain) Body() {}

// Body implements Body.
func (*Stillness) Body() {}
