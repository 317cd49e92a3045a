package status

import (
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// Reclaims is who waits for devices that a node's subjobs use, and what was decided for them of late.
type Reclaims struct {
	// Wishes that are open, the longest waiting first.
	Wishes []Wish
	// Steps in order. Older ones, and those before a restart, are not known.
	Steps []ReclaimStep
}

// HostWait is how long a workload outside Sluice waited for devices that subjobs had.
type HostWait struct {
	// Number counts from 1 at each start of the node.
	Number uint64
	Node   job.NodeID
	// Wish that it was, and Who that is, such as pod ns/name.
	Wish, Who string
	// Job is whose subjob ended for it, the first by slice if there were several; Pool is what offers its slice.
	Job  job.ID
	Pool string
	// From is when it was first heard that it waits, Until when the subjobs were known to be gone.
	From, Until quantity.Instant
}

// Wish is a workload outside Sluice that waits for devices, or members of a group of such that have not come.
type Wish struct {
	ID    string
	Group string
	// Who waits, such as pod ns/name.
	Who   string
	Node  job.NodeID
	Since quantity.Instant
	// State is a word (reclaim.Verdict), Why a sentence. Until is when the state ends at the latest; 0 or Never: not known.
	State, Why string
	Until      quantity.Instant
	// Place that is kept for it; empty Machine: none. From is when it is wanted, 0: now. Devices that were chosen for it, if they have
	// names. Slices are those whose subjobs stop, at At, or later where that is not decided yet (Open); Lost and Left is what that costs.
	Machine    string
	From       quantity.Instant
	Devices    []string
	Slices     []job.SliceID
	Subjobs    []WishSubjob
	At         quantity.Instant
	Open       bool
	Lost, Left time.Duration
}

// WishSubjob is a subjob on a slice that is wanted, until End.
type WishSubjob struct {
	Job   job.ID
	Token job.Token
	Slice job.SliceID
	End   quantity.Instant
}

// ReclaimStep is one thing that was decided about a subjob for a wish.
type ReclaimStep struct {
	At   quantity.Instant
	Node job.NodeID
	// Wish, and Who that is.
	Wish, Who  string
	Job        job.ID
	Generation job.Generation
	Token      job.Token
	Slice      job.SliceID
	// Step: chosen (it is to stop), truncated (its end was moved for that), withdrawn (it had not begun) or spared (another stops).
	Step string
	// Why it and no other, or another and not it.
	Why string
	// End of the subjob as it is now; 0: withdrawn.
	End quantity.Instant
}
