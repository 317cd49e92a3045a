package status

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Guard is what can be done on a machine whose memory runs out, as its driver found it.
type Guard struct {
	// Level: full, freeze-only, observe or off.
	Level string
	// Kind that does it; empty where it is off. Why there is no more.
	Kind, Why string
}

// MemoryReading is what a host's memory was like at some moment.
type MemoryReading struct {
	// Level: calm, guarded, severe or emergency.
	Level                  string
	Used, Capacity, Growth quantity.Amount
	// Share that was used, and Stall, of time lost for want of memory, in parts per thousand.
	Share, Stall int64
	// Exhausted is until all is used, at this growth; 0: it does not grow.
	Exhausted time.Duration
}

// Strain is a host's memory in numbers, and what its node has done about it since it came up.
type Strain struct {
	// At is when the node last heard of its memory, 0: never. Old: that is too long ago for anything to follow from it.
	At  quantity.Instant
	Old bool
	MemoryReading
	// Calm, Severe and Emergency are the lines, in bytes.
	Calm, Severe, Emergency quantity.Amount
	// Room is how much can be moved out of the memory still, Parked what was.
	Room, Parked quantity.Amount
	// Standing subjobs are suspended, or are about to be.
	Standing int
	// Suspended counts subjobs suspended, Recovered those that went on, Readdressed those asked to yield, Reclaimed those ended by their
	// node; Killed ones were ended for memory by their supervisor or the kernel, such as those over their slice's.
	Suspended, Recovered, Readdressed, Reclaimed, Killed int64
	// Decisions did anything. Stood is subjob-time suspended, OverLine time over the severe line.
	Decisions       int64
	Stood, OverLine time.Duration
}

// Airlock is a node's view of its host's memory, and its recent acts.
type Airlock struct {
	Node   job.NodeID
	Guard  Guard
	Strain Strain
	// Watched: the machine's watcher decides, and the node follows it.
	Watched bool
	// Short: nothing is granted and nothing begins. Full: nothing is granted, since there is no room for what had to leave, whose largest
	// probable peak is Left.
	Short, Full bool
	Left        quantity.Amount
	// Stuck is the lowest, where nothing that is legal yet would help it; nobody above it is touched in its place.
	Stuck job.ID
	// Timer ends every entry, Entries is how many times one subjob is suspended, Order what comes first in who gives way.
	Timer   time.Duration
	Entries int
	Order   string
	Stands  []Stand
	// Steps it has taken of late, in their order; Forgotten older ones are not kept.
	Steps     []AirlockStep
	Forgotten int64
}

// Stand is a subjob to which something is being done.
type Stand struct {
	Job   job.ID
	Token job.Token
	Slice job.SliceID
	// State: suspending, suspended, resuming, yielding or ending.
	State string
	// Since when, and Until when at most; Times it was suspended.
	Since, Until quantity.Instant
	Times        int
	// Resident it has in memory, Parked outside.
	Resident, Parked quantity.Amount
	Why              string
	Place            SurvivalPlace
}

// SurvivalPlace is what a subjob's place in the order of survival follows from.
type SurvivalPlace struct {
	// Outgrown: it has more than an eighth above what was Planned for it, 0: not known.
	Outgrown bool
	Class    string
	Priority int32
	// Value band of its queue.
	Value int
	// Ran is how long it has run, Footprint what it has, resident and parked.
	Ran                time.Duration
	Footprint, Planned quantity.Amount
}

// AirlockStep is one thing that Airlock did to a subjob, or that became of one to which it had done something.
type AirlockStep struct {
	At quantity.Instant
	// Decision numbers those of a node since it came up; 0: of none of the node's.
	Decision   int64
	Node       job.NodeID
	Job        job.ID
	Generation job.Generation
	Token      job.Token
	Slice      job.SliceID
	// Step: suspended, recovered, readdressed, reclaimed, refused (it could not be suspended) or ended.
	Step string
	// Why, in a few words; of an end its outcome.
	Why string
	// Relief that was expected of it; of one that went on, the memory that it takes again.
	Relief quantity.Amount
	// Memory as it was; how much had to be freed (Deficit), was being freed already (Underway), and is freed by this decision's steps
	// (Covered).
	Memory                     MemoryReading
	Deficit, Underway, Covered quantity.Amount
	Place                      SurvivalPlace
	// Spared is the lowest that outranks all whom the decision hit, with its place, and Below by what the one that was hit is below it.
	// Empty where nobody was hit in another's stead.
	Spared      job.ID
	SparedToken job.Token
	SparedPlace SurvivalPlace
	Below       string
	// Stood is how long it had been suspended when it went on or ended, Progress the unit up to which it was complete when it ended.
	Stood    time.Duration
	Progress int64
}
