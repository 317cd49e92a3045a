// Package sites is what a zone knows of slices: their nodes' last views, and what the zone has sold or asked for beyond them. The free
// time of a slice is what its view leaves without the claims and asks that the node can not have told of yet. Slices that several jobs in
// a row were refused on one view are left alone for a while. It must not know to which job a slice is sold, nor why.
package sites

import (
	"slices"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/core/zone/bets"
)

// Slice is one slice as the zone knows it (window.Supply, backfill.Supply).
type Slice struct {
	id job.SliceID
	// market is what the floor keeps of it, kept what the planner of rigid jobs does.
	market window.Slice
	kept   backfill.Slice
	// view is nil as long as no node has offered the slice, or since its node was removed: only claims on it are known then.
	view    *protocol.SliceView
	epoch   uint32
	removed bool
	// memory of a slice without a view, as it was known last: of another zone, on which a job of this one landed, or of a removed node.
	memory quantity.Amount
	// stale: the node refused several jobs on this view; nothing is asked of it until then or until a view comes that differs.
	stale     quantity.Instant
	staleSlot int
	// sold are the claims on it, asks what was asked for and is not in a view yet.
	sold []Sale
	asks []*home.Ask
	// begun: the first gap of the view follows nothing, so it has begun, whatever our clock says of its node's.
	begun bool
	// touched: it is looked at when the step is over, as nobody offers it.
	touched bool
	// book is what was asked for and sold there on the expected end of its gap.
	bets *bets.Bets
	book bets.Book
	// doubter is the job that was last refused on this view, doubts how many in a row.
	doubter *home.Job
	doubts  int
}

// Sale is a claim as its slice sees it.
type Sale struct {
	bets.Sale
	Job *home.Job
	// node that has the claim's part of the slice.
	node job.NodeID
}

// Of is the slice that the floor speaks of.
func Of(s *window.Slice) *Slice { return s.Supply.(*Slice) }

// Planned is the slice that the planner speaks of.
func Planned(s *backfill.Slice) *Slice { return s.Supply.(*Slice) }

// Market is what the floor keeps of it.
func (s *Slice) Market() *window.Slice { return &s.market }

// Kept is what the planner keeps of it.
func (s *Slice) Kept() *backfill.Slice { return &s.kept }

// View is its node's last; nil: no node has offered it.
func (s *Slice) View() *protocol.SliceView { return s.view }

// Sold are the claims on it. Read only.
func (s *Slice) Sold() []Sale { return s.sold }

// Asks returns the open asks on the slice. Read only.
func (s *Slice) Asks() []*home.Ask { return s.asks }

// Book has the bets on it.
func (s *Slice) Book() *bets.Book { return &s.book }

// Memory that it has, as far as is known.
func (s *Slice) Memory() quantity.Amount {
	if s.view != nil {
		return s.view.Slice.Capacity[trp.Memory]
	}
	return s.memory
}

// Remember the memory of a slice of another zone.
func (s *Slice) Remember(m quantity.Amount) { s.memory = m }

// Name is the slice's id.
func (s *Slice) Name() job.SliceID { return s.id }

// Barred says that its node does not offer it at the moment: it can't, or was removed. Of a slice of which nothing was heard it is false.
func (s *Slice) Barred() bool {
	if s.view == nil {
		return s.removed
	}
	return !s.view.Usable
}

// Node is the one that offers it.
func (s *Slice) Node() job.NodeID { return s.view.Node }

// Usable says whether its node may grant it to anybody.
func (s *Slice) Usable() bool { return s.view.Usable }

// Class is what slices it is alike to.
func (s *Slice) Class() *window.Class { return s.market.Class() }

// At is its place among the slices.
func (s *Slice) At() int { return s.market.At() }

// Location is its node's, as its node reports it.
func (s *Slice) Location() (rack, block string) { return s.view.Slice.Rack, s.view.Slice.Block }

// Version is the version of the node's view.
func (s *Slice) Version() uint64 { return s.view.Version }

// Reserved are the reservations of the node's view.
func (s *Slice) Reserved() []protocol.Reservation { return s.view.Reserved }

// Lasting reports whether the slice may become available: its node may use it, and its present use has an end.
func (s *Slice) Lasting(now quantity.Instant) bool {
	return s.view.Usable && !slices.ContainsFunc(s.view.Reserved, func(r protocol.Reservation) bool {
		return r.Kind != protocol.ForRigid && r.Every == 0 && r.Start <= now && r.End == quantity.Never
	})
}

// Resident is the program that stays there and waits for its next subjob; nil: none does.
func (s *Slice) Resident() *protocol.Resident { return s.view.Resident }

// InDoubt says whether nothing is asked of it now.
func (s *Slice) InDoubt(now quantity.Instant) bool { return s.stale > now }

// Safe is until when the gap is likely to last in which something begins at an instant.
func (s *Slice) Safe(from quantity.Instant) quantity.Instant { return s.bets.Safe(&s.book, from) }

// Unsold is its time that is for sale: without the places of rigid jobs, whether the node knows of them or not.
func (s *Slice) Unsold(now quantity.Instant, out []protocol.Gap) []protocol.Gap {
	return s.kept.Taken(s.free(now, false, out))
}

// Free is its time for a rigid job, for which the places of such jobs count as free.
func (s *Slice) Free(now quantity.Instant, out []protocol.Gap) []protocol.Gap {
	return s.free(now, true, out)
}

func (s *Slice) free(now quantity.Instant, rigid bool, out []protocol.Gap) []protocol.Gap {
	out = out[:0]
	if !s.view.Usable || s.InDoubt(now) {
		return out
	}
	for i, g := range s.view.Gaps {
		if g.Start = max(g.Start, now); i == 0 && s.begun {
			g.Start = now
		}
		if g.Start < g.End {
			out = append(out, g)
		}
	}
	if rigid {
		out = s.giveWay(now, out)
	}
	for i := range s.sold {
		out = timeline.Carve(out, s.sold[i].Start, s.sold[i].End, protocol.ForLease)
	}
	for _, a := range s.asks {
		out = timeline.Carve(out, a.Start, a.End, protocol.ForLease)
	}
	return out
}

// giveWay adds the places that are kept for rigid jobs to ordered gaps, as far as nothing else has been put over them.
func (s *Slice) giveWay(now quantity.Instant, out []protocol.Gap) []protocol.Gap {
	for i := range s.view.Reserved {
		r := &s.view.Reserved[i]
		if r.Kind != protocol.ForRigid || r.End <= now {
			continue
		}
		rest := append(make([]protocol.Gap, 0, 4), protocol.Gap{Start: max(r.Start, now), End: r.End})
		for j := range s.view.Reserved {
			if q := &s.view.Reserved[j]; q.Kind != protocol.ForRigid {
				rest = timeline.CarveAll(rest, q)
			}
		}
		for _, g := range rest {
			out = timeline.Join(out, g)
		}
	}
	return out
}

// begun says whether the first gap of a view follows nothing: it began, by the node's clock, when the view was made.
func begun(v *protocol.SliceView) bool {
	return len(v.Gaps) > 0 && !slices.ContainsFunc(v.Reserved, func(r protocol.Reservation) bool {
		start := v.Gaps[0].Start
		o, hit := timeline.Overlap(&r, start-1, start)
		return hit && o.End == start
	})
}

// sameView says whether two views lead to the same decisions. The start of the first gap moves with the clock.
func sameView(a, b *protocol.SliceView) bool {
	return a.Usable == b.Usable && a.Slice.Bears == b.Slice.Bears && slices.Equal(a.Reserved, b.Reserved) &&
		protocol.SameResident(a.Resident, b.Resident) &&
		slices.EqualFunc(a.Gaps, b.Gaps, func(g, h protocol.Gap) bool {
			return g.End == h.End && g.Until == h.Until
		})
}
