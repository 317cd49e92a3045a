// Package window makes windows of the idle time of slices: which gaps are offered, since when, and what became of the offer. It must not
// know to whom they are offered, nor how they are sold.
//
// Read window.go for the types, then board.go, which keeps it up to date.
package window

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/bitset"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Endless is the length of a window without a known end.
const Endless = time.Duration(math.MaxInt64 - 1)

// Window is one offered gap. Invariant: between two announcements its time stands, and it is in at most one round that waits for agents.
type Window struct {
	id         uint64
	start, end quantity.Instant
	until      protocol.ReservationKind
	// offered: every waiting job has been asked, and since then every job that changed.
	offered bool
	// won: somebody was asked for it, and what is left is not announced yet.
	won bool
	// heard is the generation of the jobs when all that had signalled were asked (mechanism sja, with agents), including those that had
	// changed by then.
	heard uint64
	// round that it is in while agents are waited for, 0 if it is in none.
	round uint64
	// planned is when the first part of its plan that is not sold comes up for sale, 0 if there is none.
	planned quantity.Instant
}

// Of is a window that nobody has announced, such as the one behind a subjob that runs.
func Of(id uint64, start, end quantity.Instant) *Window {
	return &Window{id: id, start: start, end: end}
}

// ID of the window. One that only lost time at its front because the clock moved on keeps it.
func (w *Window) ID() uint64 { return w.id }

// Start is when it begins, End when it is over, Never if that is not known, and Until what ends it.
func (w *Window) Start() quantity.Instant { return w.start }

// End is when it is over, Never if that is not known.
func (w *Window) End() quantity.Instant { return w.end }

// Until says what ends the window.
func (w *Window) Until() protocol.ReservationKind { return w.until }

// Length is what the window holds from now on, Endless if its end is not known.
func (w *Window) Length(now quantity.Instant) time.Duration {
	if w.end == quantity.Never {
		return Endless
	}
	return min(Endless-1, w.end.Sub(max(w.start, now)))
}

// Offered says whether every waiting job has been asked, and Won whether somebody was asked for it.
func (w *Window) Offered() bool { return w.offered }

// Won says whether somebody was asked for it.
func (w *Window) Won() bool { return w.won }

// MarkOffered notes that every waiting job has been asked, Reopen that all are to be asked again.
func (w *Window) MarkOffered() { w.offered = true }

// Reopen has everybody asked again.
func (w *Window) Reopen() { w.offered = false }

// Take notes that a node is asked for some of it: the rest is announced again.
func (w *Window) Take() { w.offered, w.won = false, true }

// MarkCleared notes that a round cleared it, or was skipped as nobody could use it: everybody was asked. Nothing of it is sold unless Take
// says so.
func (w *Window) MarkCleared() { w.offered, w.won = true, false }

// Heard is the generation of the jobs in which all who had signalled were asked.
func (w *Window) Heard() uint64 { return w.heard }

// Hear notes the generation of the jobs in which all who had signalled were asked.
func (w *Window) Hear(generation uint64) { w.heard = generation }

// Round is the one that it is in while agents are waited for, 0 if in none.
func (w *Window) Round() uint64 { return w.round }

// Await puts it in a round, 0 takes it out.
func (w *Window) Await(round uint64) { w.round = round }

// Planned is when the first part of its plan that is not sold comes up for sale, 0 if there is none.
func (w *Window) Planned() quantity.Instant { return w.planned }

// Plan makes it come up for sale again at an instant, 0 if its plan is over.
func (w *Window) Plan(again quantity.Instant) { w.planned = again }

// Due reports whether all jobs are to be asked: for the first time, or since a part of its plan comes up for sale.
func (w *Window) Due(now quantity.Instant) bool {
	return !w.offered || w.planned != 0 && w.planned <= now
}

// Class is slices that are alike to every job: two slices are of one class if and only if capacity, profile and speed are the same.
type Class struct {
	at int
	// Capacity is what pieces may need there now, Whole what the slices have: more, where their host's memory bears less (protocol.Slice).
	Capacity, Whole trp.Vector
	Profile         string
	// Speed of the slices, in parts per thousand.
	Speed int64
	// slices there are of it, and usable ones among them.
	slices, usable int
	// quiet are the places of its slices that are (Board.Quiet).
	quiet bitset.Set
	label string
}

// NewClass is the class of a slice, by its place among the classes.
func NewClass(at int, of *protocol.Slice) *Class {
	c := &Class{at: at, Capacity: of.Offered(), Whole: of.Capacity, Profile: of.Profile, Speed: of.Speed, label: of.Profile}
	if c.label == "" {
		c.label = fmt.Sprintf("%d MiB", c.Capacity[trp.Memory]>>20)
	}
	return c
}

// Is says whether a slice is of the class.
func (c *Class) Is(of *protocol.Slice) bool {
	return c.Capacity == of.Offered() && c.Whole == of.Capacity && c.Speed == of.Speed && c.Profile == of.Profile
}

// At is the place of the class among the classes.
func (c *Class) At() int { return c.at }

// Label is what people call the slices of a class.
func (c *Class) Label() string { return c.label }

// Slices is how many there are of it.
func (c *Class) Slices() int { return c.slices }

// Usable is how many slices of it may be sold to somebody.
func (c *Class) Usable() int { return c.usable }

// SpeedOf is how fast a job runs on slices of the class, in parts per thousand; 0 if it can not.
func (c *Class) SpeedOf(spec *job.Spec) int64 { return spec.SpeedOn(c.Profile, c.Speed) }

// Cost of a time on a slice of the class, as the budget for starving jobs counts it.
func (c *Class) Cost(d time.Duration) int64 { return starvation.Cost(d, c.Speed) }

// Supply is what a board asks the owner of a slice. Answers hold until Board.Invalidate.
type Supply interface {
	// Name of the slice, and the node that it is of.
	Name() job.SliceID
	Node() job.NodeID
	// Usable reports whether any of it may ever be for sale as it is.
	Usable() bool
	// Unsold puts its gaps from now on into out, in order: time that nothing is reserved, sold or asked for in.
	Unsold(now quantity.Instant, out []protocol.Gap) []protocol.Gap
	// Resident is the program that stays there and waits for its next subjob; nil: none does.
	Resident() *protocol.Resident
	// Safe is until when a gap that is there at an instant is likely to last, whatever end it is offered with; Never where nothing is
	// known of that.
	Safe(from quantity.Instant) quantity.Instant
}

// Slice is one slice as a board keeps it; the slice's owner holds it, and is its Supply. Soft. Invariant: its windows are in order and
// disjoint, and each was within its unsold time when they were announced.
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
	// stays: a program stays on it, as its owner said when it was placed last.
	stays bool
	// rounds that it has had in the latest instant in which it had one.
	instant quantity.Instant
	rounds  int
	slots   struct{ opens, closes int }
}

// Class of the slice; nil before it was placed.
func (s *Slice) Class() *Class { return s.class }

// At is its place among the slices of the board. Place may change it.
func (s *Slice) At() int { return s.at }

// Windows returns the windows of the last announcement, in order. Valid until the next one.
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

// Begun says whether a window of the slice has begun.
func (s *Slice) Begun(now quantity.Instant) bool {
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
