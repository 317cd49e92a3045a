package workload

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Arrival is a job as cluster logs know it: when it came, how long it ran on whole GPUs, and little more.
type Arrival struct {
	// Key is the job's identity in its log. What is drawn for a job is keyed by it.
	Key uint64
	// Submit since the start of the log.
	Submit   quantity.Instant
	Duration time.Duration
	GPUs     int
	Queue    string
	// Walltime that its owner requested, and Memory its peak on each of its slices; 0 where they are not known.
	Walltime time.Duration
	Memory   quantity.Amount
}

// Arrivals gives arrivals in order of their submission.
type Arrivals interface {
	// Next fills a; false after the last. An error is final.
	Next(a *Arrival) (bool, error)
}

// Computes is one more than the most compute slices a GPU is cut into.
const Computes = 8

// Program is what runs: how fast on a part of a GPU, and how much memory it takes.
type Program struct {
	Name string
	// Speeds by the number of compute slices, in thousandths of a whole GPU, which has seven; 0 where none is known.
	Speeds [Computes]int64
	// Peak is the memory it needs at its peak.
	Peak quantity.Amount
}

// Shape is how use of memory evolves over a job's progress: it warms up, is steady, and bursts to its peak once.
type Shape struct {
	// Warm and Steady use in parts per thousand of the peak.
	Warm, Steady int64
	// WarmShare and BurstShare of the progress in parts per thousand; what is left is steady.
	WarmShare, BurstShare int64
}
