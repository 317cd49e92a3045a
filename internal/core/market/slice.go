package market

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Slice is one slice as a floor keeps it; whoever owns the slice holds it, with its side as the Supply. All of it is soft.
type Slice struct {
	Supply
	class *Class
	// usable: as its owner said when it was placed last.
	usable bool
	// at is its place among the slices.
	at      int
	windows []window
	// unsold is its time for sale, good unless dirty says that something changed since.
	unsold []protocol.Gap
	dirty  bool
	// stands: a window of it has begun. early: since it was last cleared a subjob on it ended before its time.
	stands, early bool
	// rounds that it has had in the latest instant in which it had one.
	instant quantity.Instant
	rounds  int
	slots   struct{ opens, closes int }
}

// Class of the slice; nil before it was placed.
func (s *Slice) Class() *Class { return s.class }

// At is its place among the slices of the floor. Place may change it.
func (s *Slice) At() int { return s.at }

// Slices are all that there are, by capacity, then id. They are only read, and good until the next Place.
func (f *Floor) Slices() []*Slice { return f.slices }

// Placed is what became of the order of the slices.
type Placed uint8

const (
	// Stayed: it is as it was.
	Stayed Placed = iota
	// Joined: the slice is new, and those behind it have moved up by one.
	Joined
	// Sorted: the slice is new, and all have other places.
	Sorted
)

// Place takes in what a slice is, as its owner shows it now: a new one, or one that may be another than before. The order is by
// capacity, then name, so that small windows are offered first and small pieces go to small slices.
func (f *Floor) Place(s *Slice, is *protocol.Slice) Placed {
	joins := s.class == nil
	if !joins {
		f.unsorted = f.unsorted || s.class.Capacity[trp.Memory] != is.Offered()[trp.Memory]
	}
	f.classify(s, f.classOf(is))
	if !joins {
		return Stayed
	}
	placed := Joined
	if f.unsorted {
		f.resort()
		placed = Sorted
	}
	i, _ := slices.BinarySearchFunc(f.slices, s, smaller)
	f.slices = slices.Insert(f.slices, i, s)
	for at := i; at < len(f.slices); at++ {
		f.slices[at].at = at
	}
	f.dirty.Insert(i)
	f.open.Insert(i)
	f.quiets(func(q *bitset.Set) { q.Insert(i) })
	return placed
}

// classify notes of which class a slice is, and whether it is usable.
func (f *Floor) classify(s *Slice, c *Class) {
	if s.class != nil {
		s.class.quiet.Drop(s.at)
		s.class.slices--
		if s.usable {
			s.class.usable--
			f.budget.Capacity(-s.class.cost(time.Millisecond))
		}
	}
	s.class, s.usable = c, s.Usable()
	c.slices++
	if s.usable {
		c.usable++
		f.budget.Capacity(c.cost(time.Millisecond))
	}
}

// resort brings all slices into order again after capacities have changed.
func (f *Floor) resort() {
	f.unsorted = false
	slices.SortFunc(f.slices, smaller)
	f.dirty.Clear()
	f.open.Clear()
	f.quiets(func(q *bitset.Set) { q.Clear() }) // they come up again in turn, and are
	for i, s := range f.slices {
		s.at = i
		if s.dirty {
			f.dirty.Put(i)
		}
		if s.stands {
			f.open.Put(i)
		}
	}
}

func smaller(a, b *Slice) int {
	return cmp.Or(cmp.Compare(a.class.Capacity[trp.Memory], b.class.Capacity[trp.Memory]), cmp.Compare(a.Name(), b.Name()))
}

// InvalidateSlice says that what may be sold of a slice is no longer what it was.
func (f *Floor) InvalidateSlice(s *Slice) {
	s.dirty = true
	f.dirty.Put(s.at)
}

// EndedEarly says that a subjob on a slice ended clearly before its time: what was sold behind it may begin earlier.
func (f *Floor) EndedEarly(s *Slice) { s.early = true }

// Unsold is the slice's time that is for sale, as from now on.
func (f *Floor) Unsold(s *Slice, now quantity.Instant) []protocol.Gap {
	if s.dirty {
		s.unsold, s.dirty = s.Supply.Unsold(now, s.unsold), false
	}
	return s.unsold
}

// Shown is the same for people: nothing is kept of it.
func (f *Floor) Shown(s *Slice, now quantity.Instant) []protocol.Gap {
	if s.dirty {
		return s.Supply.Unsold(now, nil)
	}
	return s.unsold // of an earlier instant, and nothing has changed since
}
