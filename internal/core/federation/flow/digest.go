package flow

import "sluice.dev/sluice/internal/core/quantity"

// ZoneID numbers the zones of a flow from 0.
type ZoneID uint32

// NodeID numbers the nodes of a zone from 0.
type NodeID uint32

// Summary is what a node says of itself: with every answer to a probe, and once a period if it has changed.
type Summary struct {
	// Free fragments that nobody holds, by class. Zero while the node grants nothing.
	Free Fragments
	// Version rises with every change of the node, over its boots too: of two summaries the higher one counts.
	Version uint64
	// Pressure on its memory, in parts per thousand.
	Pressure uint16
	// Usable is false while the node is unreachable, drained or quarantined.
	Usable bool
}

// Digest is what a zone says of itself once a period.
type Digest struct {
	Zone ZoneID
	// Alive is false in the last digest of a zone that stops.
	Alive bool
	// Pressure is the mean of its usable nodes, in parts per thousand.
	Pressure uint16
	// Version rises with every digest of the zone, over its restarts too.
	Version uint64
	// At is when it was made, by the clock of the zone.
	At quantity.Instant
	// Free is how many free fragments are large enough for each class, Demand how many tickets of that class or a larger one
	// search there: both compete for the same fragments.
	Free, Demand [MaxClasses]uint32
}

// Room is how many fragments large enough for a class are free beyond what tickets already there ask for; below 0 if they
// ask for more.
func (d *Digest) Room(c Class) int64 { return int64(d.Free[c]) - int64(d.Demand[c]) }

// News reports whether those who draw zones must get this digest though they have an earlier one: the zone is alive or not, or its room for
// some class differs by more than a quarter. A difference of less than a fragment is no news.
func (d *Digest) News(said *Digest) bool {
	for c := range Class(MaxClasses) {
		was, is := said.weight(c), d.weight(c)
		if 4*max(was-is, is-was) > max(was, is, 4*1000) {
			return true
		}
	}
	return d.Alive != said.Alive
}

// weight of the room for a class, less what pressure takes of it, in thousandths of a fragment.
func (d *Digest) weight(c Class) int64 { return max(0, d.Room(c)) * (1000 - int64(d.Pressure)) }

// Body marks what messages say.
func (*Summary) Body() {}
func (*Digest) Body()  {}
