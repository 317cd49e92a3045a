// Package policy is the contract of an allocation policy: which of the jobs that signalled interest in a window is asked
// first (SJA, arXiv 2509.19086, statement S3). A policy is a pure order over candidates; it sees nothing else. Kinds live
// in folders below and are listed in policy/all.
package policy

import (
	"cmp"
	"math/bits"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Candidate is one interested job and the piece it could cut from the window.
type Candidate struct {
	Job       job.ID
	Priority  int32
	Submitted quantity.Instant
	// Attained is the memory-time the job has had, QueueAttained its whole queue, in MiB-milliseconds.
	Attained, QueueAttained int64
	// Weight of the queue's share, at least 1.
	Weight int64
	// Laxity is the time to the owner's deadline less the run time still needed; the longest duration without a deadline.
	Laxity time.Duration
	// Index is what the policy itself makes of the job on slices of this class (Indexer), 0 where it can't run or the policy has none.
	Index int64
	// Used is the piece's run time times its memory, Offered the window's time times its memory: how well it fits.
	// Both in MiB-milliseconds; Offered at least 1.
	Used, Offered int64
}

// Policy orders candidates.
type Policy interface {
	// Name is how the policy is chosen: one lower-case word.
	Name() string
	// Compare is negative if a is asked before b. It is a total order: ties end on the job's id. No job is asked earlier for having
	// attained more.
	Compare(a, b *Candidate) int
	// Key is the greater part of that order in two numbers, the first of which counts more, so that a market need not look a million jobs
	// up to find a place among them: of two candidates of one queue the one with the lesser key is asked first, and where keys are equal
	// Compare decides. It reads neither Used and Offered nor the queue's share; an order by these alone has one key for all.
	Key(c *Candidate) [2]int64
	// Motion is what the order of two jobs depends on beside themselves, so that a market may keep it instead of asking
	// again for every window.
	Motion() Motion
}

// Motion says when a policy's order of two jobs can change while nothing happens to either of them.
type Motion uint8

const (
	// Still: never, on slices of one speed. The order reads neither Used and Offered nor the queue's share, and laxity only
	// as a difference: that of all jobs shrinks alike.
	Still Motion = iota + 1
	// WithinQueue: as Still between jobs of one queue; between jobs of two queues whenever what these queues have had changes.
	WithinQueue
	// ByClass: as Still, but it reads Index, which is another on each class of slices. Such a policy is an Indexer.
	ByClass
	// Free: with every window, in a way that only Compare knows.
	Free
)

// Kept reports whether an order is fixed while nothing happens to the jobs, so that a market may keep it.
func (m Motion) Kept() bool { return m == Still || m == WithinQueue || m == ByClass }

// MiB is the memory of a demand, in MiB and a little more: never nothing.
func MiB(demand trp.Vector) int64 { return int64(demand[trp.Memory]>>20) + 1 }

// MemoryTime is memory held for a time, in MiB-milliseconds.
func MemoryTime(demand trp.Vector, d time.Duration) int64 {
	return MiB(demand) * max(0, d.Milliseconds())
}

// ByAge is the common tail of every order: priority, then submission, then the id.
func ByAge(a, b *Candidate) int {
	if c := cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Submitted, b.Submitted)); c != 0 {
		return c // names are long, and rarely needed
	}
	return cmp.Compare(a.Job, b.Job)
}

// Age is most of ByAge in one number: of two ages the lesser comes first. They may be equal within 2 ms, and of priorities of a million
// and more.
func Age(priority int32, submitted quantity.Instant) int64 {
	const most = 1<<20 - 1 // a priority takes 21 bits, and an instant the first 42 of 63
	switch {
	case priority >= most:
		return 0
	case priority <= -most:
		return 2 * most << 42
	default:
		return int64(most-priority)<<42 | int64(max(0, submitted))>>21
	}
}

// CompareShare compares a/aw with b/bw exactly, by cross-multiplying in 128 bits. Amounts are non-negative, weights at
// least 1.
func CompareShare(a, aw, b, bw int64) int {
	ahi, alo := bits.Mul64(uint64(a), uint64(bw))
	bhi, blo := bits.Mul64(uint64(b), uint64(aw))
	return cmp.Or(cmp.Compare(ahi, bhi), cmp.Compare(alo, blo))
}
