package window

import (
	"cmp"
	"slices"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Supply is what a board asks whoever owns a slice. Answers hold until it is told otherwise (Board.Invalidate).
type Supply interface {
	// Name of the slice, and the node that it is of.
	Name() job.SliceID
	Node() job.NodeID
	// Usable says whether anything of it may ever be for sale as it is.
	Usable() bool
	// Unsold puts its gaps from now on into out, in order: time that nothing is reserved, sold or asked for in.
	Unsold(now quantity.Instant, out []protocol.Gap) []protocol.Gap
	// Safe is until when a gap that is there at an instant is likely to last, whatever end it is offered with; Never where nothing is
	// known of that.
	Safe(from quantity.Instant) quantity.Instant
}

// Slice is one slice as a board keeps it; whoever owns the slice holds it, with its side as the Supply. All of it is soft. Invariant: its
// windows are in order and apart, and each lay within its unsold time when they were announced.
type Slice struct {
	Supply
	class *Class
	// usable: as its owner said when it was placed last.
	usable bool
	// at is its place among the slices.
	at      int
	windows []Window
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

// At is its place among the slices of the board. Place may change it.
func (s *Slice) At() int { return s.at }

// Windows are those of the last announcement, in order. They are good until the next one.
func (s *Slice) Windows() []Window { return s.windows }

// Find is the window of an id as it is now; nil if it is gone or was cut.
func (s *Slice) Find(id uint64) *Window {
	for i := range s.windows {
		if w := &s.windows[i]; w.id == id {
			return w
		}
	}
	return nil
}

// Dirty says whether its time for sale may have changed since its windows were announced.
func (s *Slice) Dirty() bool { return s.dirty }

// Sold says whether some of a window was sold in this step, so that it is not what it was.
func (s *Slice) Sold(w *Window) bool { return s.dirty && w.won && !w.offered }

// Standing says whether a window of the slice has begun.
func (s *Slice) Standing(now quantity.Instant) bool {
	return slices.ContainsFunc(s.windows, func(w Window) bool { return w.start <= now })
}

// Asked says whether everybody has been asked about a window that has begun.
func (s *Slice) Asked(now quantity.Instant) bool {
	return slices.ContainsFunc(s.windows, func(w Window) bool { return w.start <= now && w.offered })
}

// Waits says whether agents are waited for before a window of the slice is sold.
func (s *Slice) Waits() bool {
	return slices.ContainsFunc(s.windows, func(w Window) bool { return w.round != 0 })
}

// EndedEarly says that a subjob on the slice ended clearly before its time: what was sold behind it may begin earlier. TakeEarly says
// whether one has since it was last asked.
func (s *Slice) EndedEarly() { s.early = true }

// TakeEarly says whether a subjob has ended early since it was last asked.
func (s *Slice) TakeEarly() (early bool) {
	early, s.early = s.early, false
	return early
}

// Another counts a round of the slice in this instant, unless it has had as many as there may be.
func (s *Slice) Another(now quantity.Instant, most int) bool {
	if s.instant != now {
		s.instant, s.rounds = now, 0
	}
	s.rounds++
	return s.rounds <= most
}

// Shown is the slice's time for sale, for people: nothing is kept of it.
func (s *Slice) Shown(now quantity.Instant) []protocol.Gap {
	if s.dirty {
		return s.Supply.Unsold(now, nil)
	}
	return s.unsold // of an earlier instant, and nothing has changed since
}

// smaller orders slices by capacity, then id.
func smaller(a, b *Slice) int {
	return cmp.Or(cmp.Compare(a.class.Capacity[trp.Memory], b.class.Capacity[trp.Memory]), cmp.Compare(a.Name(), b.Name()))
}
