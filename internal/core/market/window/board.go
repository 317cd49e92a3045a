package window

import (
	"cmp"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Board is all slices with their windows. Invariant: a slice that is not dirty has the windows that its unsold time makes; the slices are
// by capacity, then id, unless a capacity has changed since the last one came; every set of slices is by their places.
type Board struct {
	minWindow time.Duration
	classes   []*Class
	// speeds of the classes, the highest first.
	speeds []int64
	// slices by capacity, then id; unsorted if a capacity has changed since.
	slices   []*Slice
	unsorted bool
	// dirty are the slices whose unsold time changed, open those with a window that has begun.
	dirty, open bitset.Set
	// turn are the slices whose windows are offered in this pass, loud room for those of open that are not quiet.
	turn, loud bitset.Set
	// opens and closes are when the next window of a slice opens, and when one becomes too short.
	opens, closes alarm.Heap[*Slice]
	// turning is room for a list of slices, spare for one of windows.
	turning []*Slice
	spare   []Window
	// windows counts those that were announced.
	windows uint64
	// staying counts the slices on which a program stays.
	staying int
}

// NewBoard is an empty one. minWindow is the shortest gap that is offered at all.
func NewBoard(minWindow time.Duration) *Board { return &Board{minWindow: minWindow} }

// Slices are all slices, by capacity, then id. Read only, valid until the next Place.
func (b *Board) Slices() []*Slice { return b.slices }

// Classes returns the classes of all slices, of removed ones too. Read only.
func (b *Board) Classes() []*Class { return b.classes }

// Speeds of the classes, the highest first.
func (b *Board) Speeds() []int64 { return b.speeds }

// Open is how many slices have a window that has begun, NextOpen the place of the first of them from one on; -1 if there is none.
func (b *Board) Open() int { return b.open.Len() }

// NextOpen is the place of the first slice from one on with a window that has begun; -1 if there is none.
func (b *Board) NextOpen(from int) int { return b.open.Next(from) }

// Staying is on how many slices a program stays between subjobs.
func (b *Board) Staying() int { return b.staying }

// Wake is when the next window opens.
func (b *Board) Wake() quantity.Instant { return b.opens.Next() }

// ClassOf is the class of a slice; first if no slice was of it before.
func (b *Board) ClassOf(s *protocol.Slice) (c *Class, first bool) {
	for _, c := range b.classes {
		if c.Is(s) {
			return c, false
		}
	}
	c = NewClass(len(b.classes), s)
	b.classes = append(b.classes, c)
	if i, known := slices.BinarySearchFunc(b.speeds, c.Speed, func(a, b int64) int { return cmp.Compare(b, a) }); !known {
		b.speeds = slices.Insert(b.speeds, i, c.Speed)
	}
	return c, true
}

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

// Place records the class of a slice, as its owner shows it now: of a new slice, or of one that may have changed. The order is by capacity,
// then name, so that small windows are offered first and small pieces go to small slices. More is the increase of its time's worth, for
// each millisecond.
func (b *Board) Place(s *Slice, c *Class) (placed Placed, more int64) {
	b.stay(s, s.Resident() != nil)
	joins := s.class == nil
	if !joins {
		b.unsorted = b.unsorted || s.class.Capacity[trp.Memory] != c.Capacity[trp.Memory]
	}
	more = b.classify(s, c)
	if !joins {
		return Stayed, more
	}
	placed = Joined
	if b.unsorted {
		b.resort()
		placed = Sorted
	}
	i, _ := slices.BinarySearchFunc(b.slices, s, smaller)
	b.slices = slices.Insert(b.slices, i, s)
	for at := i; at < len(b.slices); at++ {
		b.slices[at].at = at
	}
	b.dirty.Insert(i)
	b.open.Insert(i)
	for _, c := range b.classes {
		c.quiet.Insert(i)
	}
	return placed, more
}

// Remove takes a slice off the board for good: those behind it move down by one. Whoever still has it, as a round that waits for agents,
// finds it without windows. Its class stays, with what is known of that. less is the decrease of its time's worth, for each millisecond.
func (b *Board) Remove(s *Slice) (less int64) {
	less = -b.unclass(s)
	b.stay(s, false)
	b.slices = slices.Delete(b.slices, s.at, s.at+1)
	for at := s.at; at < len(b.slices); at++ {
		b.slices[at].at = at
	}
	b.dirty.Remove(s.at)
	b.open.Remove(s.at)
	b.turn.Remove(s.at)
	for _, c := range b.classes {
		c.quiet.Remove(s.at)
	}
	b.opens.Set(&s.slots.opens, s, quantity.Never)
	b.closes.Set(&s.slots.closes, s, quantity.Never)
	*s = Slice{Supply: s.Supply, class: s.class, at: nowhere}
	return less
}

// stay notes whether a program stays on a slice.
func (b *Board) stay(s *Slice, stays bool) {
	if stays != s.stays {
		s.stays = stays
		if stays {
			b.staying++
		} else {
			b.staying--
		}
	}
}

// nowhere is the place of a slice that was removed.
const nowhere = -1

// unclass takes a slice out of its class, if it has one. more is the increase of its time's worth.
func (b *Board) unclass(s *Slice) (more int64) {
	if s.class != nil {
		s.class.quiet.Drop(s.at)
		s.class.slices--
		if s.usable {
			s.class.usable--
			more -= s.class.Cost(time.Millisecond)
		}
	}
	return more
}

// classify notes the class of a slice, and whether it is usable.
func (b *Board) classify(s *Slice, c *Class) (more int64) {
	more = b.unclass(s)
	s.class, s.usable = c, s.Usable()
	c.slices++
	if s.usable {
		c.usable++
		more += c.Cost(time.Millisecond)
	}
	return more
}

// resort brings all slices into order again after capacities have changed.
func (b *Board) resort() {
	b.unsorted = false
	slices.SortFunc(b.slices, smaller)
	b.dirty.Clear()
	b.open.Clear()
	for _, c := range b.classes {
		c.quiet.Clear() // they come up again in turn, and are
	}
	for i, s := range b.slices {
		s.at = i
		if s.dirty {
			b.dirty.Put(i)
		}
		if s.stands {
			b.open.Put(i)
		}
	}
}

// Invalidate says that what may be sold of a slice is no longer what it was. Of one that was removed nothing is sold.
func (b *Board) Invalidate(s *Slice) {
	if s.at == nowhere {
		return
	}
	s.dirty = true
	b.dirty.Put(s.at)
}

// Unsold is the slice's time that is for sale, as from now on.
func (b *Board) Unsold(s *Slice, now quantity.Instant) []protocol.Gap {
	if s.dirty {
		s.unsold, s.dirty = s.Supply.Unsold(now, s.unsold), false
	}
	return s.unsold
}

// Turning are the slices on which a window opens now or becomes too short. They are good until the next call.
func (b *Board) Turning(now quantity.Instant) []*Slice {
	b.turning = b.turning[:0]
	for _, a := range []*alarm.Heap[*Slice]{&b.opens, &b.closes} {
		for s := range a.Past(now) {
			b.turning = append(b.turning, s)
		}
	}
	return b.turning
}

// Advertise makes the windows of all slices that are dirty, which are in turn then.
func (b *Board) Advertise(now quantity.Instant) {
	b.turn, b.dirty = b.dirty, b.turn
	for i := b.turn.Next(0); i >= 0; i = b.turn.Next(i + 1) {
		s := b.slices[i]
		b.announce(s, now)
		if s.stands = s.Begun(now); s.stands {
			b.open.Put(i)
		} else {
			b.open.Drop(i)
		}
	}
}

// announce derives the slice's windows from its free time and sets its alarms. A window that only lost time at its front
// because the clock moved on keeps its id and its answers; one that was cut by a grant or grew is announced anew.
func (b *Board) announce(s *Slice, now quantity.Instant) {
	old := s.windows
	next := b.spare[:0]
	for _, g := range b.Unsold(s, now) {
		g.Start = max(g.Start, now)
		if g.End.Sub(g.Start) < b.minWindow {
			continue
		}
		w := Window{start: g.Start, end: g.End, until: g.Until}
		i := slices.IndexFunc(old, func(o Window) bool {
			return o.end == g.End && o.until == g.Until && (o.start == g.Start || o.start <= now && g.Start <= now)
		})
		if i >= 0 {
			w = old[i]
			w.start = g.Start
		} else {
			b.windows++
			w.id = b.windows
		}
		next = append(next, w)
	}
	s.windows, b.spare = next, old
	b.Arm(s, now)
}

// Arm sets the alarms of a slice by its windows and their plans.
func (b *Board) Arm(s *Slice, now quantity.Instant) {
	opens, closes := quantity.Never, quantity.Never
	for i := range s.windows {
		w := &s.windows[i]
		if w.start > now {
			opens = min(opens, w.start)
			continue
		}
		if w.end != quantity.Never {
			closes = min(closes, w.end.Add(1-b.minWindow))
		}
		if w.planned > now {
			opens = min(opens, w.planned)
		}
	}
	b.opens.Set(&s.slots.opens, s, opens)
	b.closes.Set(&s.slots.closes, s, closes)
}

// InTurn is the place of the first slice in turn from one on; -1 if there is none. PutInTurn puts one in turn in this pass, and Done notes
// that it had it: it is not quiet.
func (b *Board) InTurn(from int) int { return b.turn.Next(from) }

// PutInTurn makes a slice come up in this pass.
func (b *Board) PutInTurn(s *Slice) { b.turn.Put(s.at) }

// Done notes that a slice in turn came up: it is not quiet.
func (b *Board) Done(s *Slice) { b.turn.Drop(s.at); s.class.quiet.Drop(s.at) }

// AllInTurn puts all slices in turn that have a window that has begun.
func (b *Board) AllInTurn() { b.turn.Join(&b.open) }

// LoudInTurn puts the slices in turn that have a window that has begun and are not quiet.
func (b *Board) LoudInTurn() {
	b.loud.Clear()
	b.loud.Join(&b.open)
	for _, c := range b.classes {
		b.loud.Without(&c.quiet)
	}
	b.turn.Join(&b.loud)
}

// Quiet notes that everybody has been asked about the windows of a slice, and no agent is waited for: only jobs that change may use it, and
// a pass need not look at it for others. Wake it with Stir.
func (b *Board) Quiet(s *Slice) { s.class.quiet.Put(s.at) }

// Stir makes a quiet slice be looked at again, unless it was removed.
func (b *Board) Stir(s *Slice) {
	if s.at != nowhere {
		s.class.quiet.Drop(s.at)
	}
}

// NextQuiet is the place of the first quiet slice of a class from one on; -1 if there is none.
func (c *Class) NextQuiet(from int) int { return c.quiet.Next(from) }

// QuietBelow is how many quiet slices of a class there are from one place on and below another, and the last of them below it.
func (c *Class) QuietBelow(from, below int) (n, last int) {
	if n = c.quiet.Count(from, below); n > 0 {
		last = c.quiet.Last(below)
	}
	return n, last
}
