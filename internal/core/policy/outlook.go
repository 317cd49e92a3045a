package policy

import (
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// Outlook is what the slices of one class hold for a job that can run there: what an index is made of.
type Outlook struct {
	// Worth of having the job over, which its priority decides, in parts of 2^50.
	Worth int64
	// Left is the time that what is unsold of it takes on that class.
	Left time.Duration
	// Advantage is its speed there over the class's own, Best the greatest of those on all classes; in millionths, Best at least 1.
	Advantage, Best int64
}

// Density is what a millisecond there is worth to the job: the value of having it over, spread over the time that what is left of it
// takes (Smith's rule: W. E. Smith, Naval Research Logistics Quarterly 3, 1956), times its advantage as a share of its best (adr
// 0031). So of two jobs that are as long the one that is no faster on a large slice leaves it to the other.
func (o Outlook) Density() int64 {
	return quantity.MulDiv(o.Worth/max(1, o.Left.Milliseconds()), o.Advantage, o.Best)
}

// Indexer is a policy of motion ByClass: it gives a job the index that its order reads.
type Indexer interface {
	Policy
	// Index is at least 0. What it reads changes with the job alone. It takes the outlook by value: behind an interface a pointer would
	// be an allocation for every job that is looked at.
	Index(o Outlook) int64
}
