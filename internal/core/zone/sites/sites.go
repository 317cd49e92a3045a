package sites

import (
	"cmp"
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/alarm"
	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
	"sluice.dev/sluice/internal/core/zone/bets"
)

// Ledger is asked which jobs avoid slices, and told which slices have changed, and which are there no more.
type Ledger interface {
	Avoiding() bool
	LooksAnother(id job.SliceID)
	Removed(id job.SliceID)
}

// Sites are all slices that the zone's nodes have offered, but for nodes that were removed, and those that nobody offers here while the
// zone has something there.
type Sites struct {
	floor   *market.Floor
	planner *backfill.Planner
	ledger  Ledger
	bets    *bets.Bets
	rest    time.Duration
	all     map[job.SliceID]*Slice
	// offered counts the slices of each node, classed the classes that were first seen there; own are nodes that may have any number of
	// both, all if none is named.
	offered, classed map[job.NodeID]int
	own              []job.NodeID
	// last is the one that was looked up last; nil: none.
	last *Slice
	// foreign are those that were touched in this step and that nobody offers.
	foreign []*Slice
	// stales are when slices that are left alone are to be looked at.
	stales alarm.Heap[*Slice]
}

// New knows no slice. A slice whose view is in doubt rests for the given time. Nodes that are not among the zone's own, where any are
// named, may offer protocol.MostSlices each, of mostClasses that nobody else has.
func New(floor *market.Floor, planner *backfill.Planner, ledger Ledger, b *bets.Bets, rest time.Duration, own []job.NodeID) *Sites {
	return &Sites{floor: floor, planner: planner, ledger: ledger, bets: b, rest: rest, own: own, all: map[job.SliceID]*Slice{},
		offered: map[job.NodeID]int{}, classed: map[job.NodeID]int{}}
}

// SetView records a node's view of a slice, and reports whether it is news. A view older than the present one is dropped.
func (z *Sites) SetView(now quantity.Instant, epoch uint32, v *protocol.SliceView) bool {
	s := z.Make(v.Slice.ID)
	switch {
	case s.view == nil:
		z.offered[v.Node]++
	case epoch < s.epoch || epoch == s.epoch && v.Version <= s.view.Version:
		return false
	}
	z.show(now, s, epoch, v)
	return true
}

// Remove says that a node is none any more. From then on its slices are what they would be had the zone just come up: nobody offers them,
// and each is kept no longer than there is a claim on it. Another node of its name is a new one, whose first word counts.
func (z *Sites) Remove(now quantity.Instant, node job.NodeID) {
	for _, s := range slices.Collect(z.All()) {
		if s.view.Node == node {
			z.withdraw(now, s)
		}
	}
	delete(z.offered, node)
	delete(z.classed, node)
}

// withdraw has another slice take the place of one, without a view, and keep what is open there. Whoever still has the old one, such as a
// round that waits for agents or a job whose place it was, finds it unusable and without time.
func (z *Sites) withdraw(now quantity.Instant, s *Slice) {
	z.ledger.Removed(s.id)
	z.bets.Remove(now, &s.book)
	z.planner.Remove(&s.kept)
	z.floor.Remove(&s.market)
	z.stales.Set(&s.staleSlot, s, quantity.Never)
	heir := z.add(s.id)
	heir.memory, heir.removed = s.Memory(), true
	heir.sold, heir.asks, heir.book = s.sold, s.asks, s.book
	s.view = &protocol.SliceView{Slice: s.view.Slice, Node: s.view.Node}
	s.sold, s.asks, s.book, s.stale, s.doubter = nil, nil, bets.Book{}, 0, nil
	z.touch(heir)
}

// show makes a view the one of a slice.
func (z *Sites) show(now quantity.Instant, s *Slice, epoch uint32, v *protocol.SliceView) {
	moved := false
	if s.view != nil {
		if (s.doubter != nil || z.ledger.Avoiding()) && !sameView(s.view, v) {
			z.looksAnother(s)
		}
		moved = s.view.Node != v.Node || s.view.Slice.Rack != v.Slice.Rack || s.view.Slice.Block != v.Slice.Block
	}
	s.view, s.epoch, s.begun = v, epoch, begun(v)
	classes := len(z.floor.Classes())
	z.planner.Place(&s.kept, z.floor.Place(&s.market, &v.Slice), moved)
	z.classed[v.Node] += len(z.floor.Classes()) - classes
	z.planner.Seen(&s.kept)
	z.bets.Look(now, &s.book, v, func(yield func(bets.Sale) bool) {
		for i := range s.sold {
			if !yield(s.sold[i].Sale) {
				return
			}
		}
	})
	z.mark(s)
}

// mostClasses bounds the classes that a node brings: each is kept, and looked at by every job, for as long as the zone is up.
const mostClasses = 256

// mostEntries bounds the gaps, and the reservations, of one view.
const mostEntries = 2*timeline.Max + 1

// Takes reports whether a view may be taken in: it is sound, its slice is no other node's, and the node has not offered too many.
func (z *Sites) Takes(v *protocol.SliceView) bool {
	owner := z.Owner(v.Slice.ID)
	return (owner == "" || owner == v.Node) && sound(v) && (len(z.own) == 0 || slices.Contains(z.own, v.Node) || z.bounded(v))
}

// bounded reports whether a node may have the zone keep one more slice, or class of slices, if the view brings one.
func (z *Sites) bounded(v *protocol.SliceView) bool {
	if s := z.Find(v.Slice.ID); (s == nil || s.view == nil) && z.offered[v.Node] >= protocol.MostSlices {
		return false
	}
	return z.classed[v.Node] < mostClasses ||
		slices.ContainsFunc(z.floor.Classes(), func(c *window.Class) bool { return c.Is(&v.Slice) })
}

// Owner is the node that a slice is of: the one that offers it, else the one that has claims on it; empty if there is none.
func (z *Sites) Owner(id job.SliceID) job.NodeID {
	s := z.Find(id)
	switch {
	case s == nil:
		return ""
	case s.view != nil:
		return s.view.Node
	case len(s.sold) > 0:
		return s.sold[0].node
	}
	return ""
}

// sound reports whether a view says what can be: a node that has gone wrong must not break what counts with time.
func sound(v *protocol.SliceView) bool {
	if len(v.Gaps) > mostEntries || len(v.Reserved) > mostEntries || !v.Slice.Sound() {
		return false
	}
	last := quantity.Instant(math.MinInt64)
	for _, g := range v.Gaps {
		if g.Start < last || g.End <= g.Start || g.End > quantity.Never {
			return false
		}
		last = g.End
	}
	return !slices.ContainsFunc(v.Reserved, func(r protocol.Reservation) bool { return r.End < r.Start || r.Every < 0 })
}

// Find the slice of this id, nil if nothing is known of it. It remembers which it found last.
func (z *Sites) Find(id job.SliceID) *Slice {
	if z.last == nil || z.last.id != id {
		z.last = z.all[id]
	}
	return z.last
}

// FindOffered finds a slice by its id; nil if no node has offered it.
func (z *Sites) FindOffered(id job.SliceID) *Slice {
	if s := z.Find(id); s != nil && s.view != nil {
		return s
	}
	return nil
}

// Make finds or makes the slice of this id.
func (z *Sites) Make(id job.SliceID) *Slice {
	s := z.Find(id)
	if s == nil {
		s = z.add(id)
	}
	z.touch(s)
	return s
}

// add makes the slice of this id, of which nothing is known.
func (z *Sites) add(id job.SliceID) *Slice {
	s := &Slice{id: id, bets: z.bets}
	s.market.Supply, s.kept.Supply = s, s
	z.all[id], z.last = s, s
	return s
}

// touch has a slice looked at when the step is over, if nobody offers it.
func (z *Sites) touch(s *Slice) {
	if s.view == nil && !s.touched {
		s.touched = true
		z.foreign = append(z.foreign, s)
	}
}

// ForgetForeign drops the slices that this zone's nodes do not offer, and on which it has nothing any more: other zones have any number,
// and pilots come and go with new names.
func (z *Sites) ForgetForeign() {
	for i, s := range z.foreign {
		if s.touched = false; s.view == nil && len(s.sold)+len(s.asks) == 0 && s.book.Empty() {
			if z.all[s.id] == s { // else another has taken its place
				delete(z.all, s.id)
			}
			if z.last == s {
				z.last = nil
			}
		}
		z.foreign[i] = nil
	}
	z.foreign = z.foreign[:0]
}

// Present are the slices that something was asked of, as long as the first shows the view that this was decided on: what was
// refused on an older one is no longer on offer.
func (z *Sites) Present(version uint64, on []job.SliceID) []job.SliceID {
	if s := z.Make(on[0]); s.view != nil && s.view.Version > version {
		return nil
	}
	return on
}

// All yields the slices that nodes have offered, by capacity, then id.
func (z *Sites) All() iter.Seq[*Slice] {
	return func(yield func(*Slice) bool) {
		for _, s := range z.floor.Slices() {
			if !yield(Of(s)) {
				return
			}
		}
	}
}

// mark says that the slice's free time is no longer what it was.
func (z *Sites) mark(s *Slice) {
	if s.view == nil {
		return
	}
	z.planner.InvalidateSlice(&s.kept)
	z.Reopen(s)
}

// Reopen says that what the market may sell of the slice is no longer what it was.
func (z *Sites) Reopen(s *Slice) { z.floor.InvalidateSlice(&s.market) }

// each does something to every slice of a claim or an ask, whose free time is no longer what it was then.
func (z *Sites) each(first job.SliceID, also []job.SliceID, do func(*Slice)) {
	s := z.Make(first)
	do(s)
	z.mark(s)
	for _, id := range also {
		s := z.Make(id)
		do(s)
		z.mark(s)
	}
}

// Ask keeps the time of an ask on its slices.
func (z *Sites) Ask(a *home.Ask) {
	z.each(a.Slice, a.Also, func(s *Slice) { s.asks = append(s.asks, a) })
}

// Answered gives the time of an ask back.
func (z *Sites) Answered(a *home.Ask) {
	z.each(a.Slice, a.Also, func(s *Slice) { s.asks = slices.DeleteFunc(s.asks, func(b *home.Ask) bool { return a == b }) })
}

// Sold enters a claim of a job at its slices.
func (z *Sites) Sold(j *home.Job, c *protocol.Claim) {
	z.each(c.Slice, c.Also, func(s *Slice) {
		s.sold = append(s.sold, Sale{bets.Sale{Token: c.Token, Start: c.Start, End: c.End}, j, c.NodeOf(s.id)})
	})
}

// Freed takes it out; early: others may use the rest of its time.
func (z *Sites) Freed(j *home.Job, c *protocol.Claim, early bool) {
	z.each(c.Slice, c.Also, func(s *Slice) {
		s.sold = slices.DeleteFunc(s.sold, func(x Sale) bool { return x.Token == c.Token && x.Job == j })
		s.book.Drop(c.Token)
		if early {
			s.market.EndedEarly()
		}
	})
}

// Resold moves its end.
func (z *Sites) Resold(j *home.Job, c *protocol.Claim) {
	z.each(c.Slice, c.Also, func(s *Slice) {
		for i := range s.sold {
			if s.sold[i].Token == c.Token && s.sold[i].Job == j {
				s.sold[i].End = c.End
			}
		}
	})
}

// often is how many different jobs in a row must have been refused on one view of a slice before it is offered to
// nobody for a while. So no job alone takes a slice off the market, and a view that is wrong costs few messages.
const often = 3

// Doubt counts the different jobs in a row that a slice's node refused on its present view, and leaves the slice alone when they are many:
// what was refused to all of them is not asked again and again of the same view. Where there is no view, as of a node that is gone when the
// zone comes up, nothing is asked, and none is on its way that rigid jobs should be kept waiting for.
func (z *Sites) Doubt(now quantity.Instant, id job.SliceID, j *home.Job) {
	s := z.Make(id)
	if s.view == nil || s.doubter == j {
		return
	}
	s.doubter = j
	if s.doubts++; s.doubts >= often {
		z.setStale(s, now.Add(z.rest))
	}
}

// Trust ends the doubts about a slice: its node does what was asked of it.
func (z *Sites) Trust(id job.SliceID) { z.Make(id).trust() }

func (s *Slice) trust() { s.doubter, s.doubts = nil, 0 }

// looksAnother: a slice's view says something else than before, so what was refused may be had now.
func (z *Sites) looksAnother(s *Slice) {
	s.trust()
	if s.stale != 0 {
		z.setStale(s, 0)
	}
	if z.ledger.Avoiding() {
		z.ledger.LooksAnother(s.id)
	}
}

// setStale leaves a slice alone until an instant that is later than now, or no longer if it is 0.
func (z *Sites) setStale(s *Slice, until quantity.Instant) {
	s.stale = until
	until = cmp.Or(until, quantity.Never)
	z.stales.Set(&s.staleSlot, s, until)
	z.mark(s)
}

// Turn marks the slices whose windows open or close now, or that are no longer left alone.
func (z *Sites) Turn(now quantity.Instant) {
	for _, s := range z.floor.Turning(now) {
		z.mark(Of(s))
	}
	for {
		s, ok := z.stales.Due(now)
		if !ok {
			return
		}
		z.mark(s)
	}
}

// Next is when a slice is no longer left alone.
func (z *Sites) Next() quantity.Instant { return z.stales.Next() }

// Restate replaces what is sold and asked for on every slice, for tests that compute it in another way.
func (z *Sites) Restate(is func(id job.SliceID) ([]Sale, []*home.Ask)) {
	for s := range z.All() {
		z.Reopen(s)
		s.sold, s.asks = is(s.id)
	}
}

// IDs are those of all that are known, in order.
func (z *Sites) IDs() []job.SliceID { return slices.Sorted(maps.Keys(z.all)) }
