package protocol

import (
	"math/bits"

	"sluice.dev/sluice/internal/core/digest"
	"sluice.dev/sluice/internal/core/job"
)

// Rank is what a lease is worth beside others when its node runs out of memory, as its home knew it when it was sold: so a node that comes
// back from a crash can say by itself who gives way to whom. What else counts there the node has anyway: the footprint, from its sensors
// or as the lease's demand, which is the probable peak of the piece; and how long it has run.
//
// The zero value is what versions before said of every lease: priority 0, lasting, of no value, all or nothing.
type Rank struct {
	Priority int32
	Class    Class
	// Value band: the queue's weight in powers of two.
	Value uint16
	// Yields: cut short, it leaves what is done, and the rest of it can go on elsewhere.
	Yields bool
}

// Class is how much a subjob loses where it is cut off.
type Class uint8

const (
	// Lasting work is long enough to shape what comes after it. The zero value.
	Lasting Class = iota
	// Fleeting work is worth nothing if it is not done at once (an F-task).
	Fleeting
	// Collective work holds several slices, maybe on several nodes, and all of it is lost with any part.
	Collective

	// Classes is how many there are.
	Classes = iota
)

var classNames = [Classes]string{"lasting", "fleeting", "collective"}

// String is the class for people.
func (c Class) String() string { return classNames[c] }

// RankOf is the rank of a piece of a job whose queue has a weight.
func RankOf(s *job.Spec, weight int64) Rank {
	r := Rank{Priority: s.Priority, Value: uint16(bits.Len64(uint64(max(1, weight))) - 1), Yields: s.Divisible() || s.Saves}
	switch {
	case s.Slices > 1:
		r.Class = Collective
	case s.Patience > 0:
		r.Class = Fleeting
	}
	return r
}

// Mix mixes a rank into a digest.
func (r *Rank) Mix(h digest.Hash) digest.Hash {
	if *r == (Rank{}) { // as it was before there were ranks
		return h
	}
	return h.Int(int64(r.Priority), int64(r.Class), int64(r.Value)).Bool(r.Yields)
}
