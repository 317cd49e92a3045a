package policy

import "time"

// Outlook is what the slices of one class hold for a job that can run there: what a policy makes its index of.
type Outlook struct {
	// Worth of having the job over, which its priority decides, in parts of 2^50.
	Worth int64
	// Left is the time that what is unsold of it takes on that class.
	Left time.Duration
	// Advantage is its speed there over the class's own, Best the greatest of those on all classes; in millionths, Best at least 1.
	Advantage, Best int64
}

// Indexer is a policy of motion ByClass: it gives a job the index that its order reads.
type Indexer interface {
	Policy
	// Index is at least 0. What it reads changes with the job alone. It takes the outlook by value: behind an interface a pointer would
	// be an allocation for every job that is looked at.
	Index(o Outlook) int64
}
