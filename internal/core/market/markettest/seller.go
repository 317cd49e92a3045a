package markettest

import (
	"fmt"
	"slices"

	"sluice.dev/sluice/internal/core/market/award"
	"sluice.dev/sluice/internal/core/market/index"
	"sluice.dev/sluice/internal/core/market/window"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// Floor is told of what changes.
type Floor interface {
	Changed(j *index.Job)
	InvalidateJob(j *index.Job)
	InvalidateSlice(s *window.Slice)
	Retire(j *index.Job)
}

// Seller gives whatever is asked for, and writes it down, as it does with what was not for sale.
type Seller struct {
	Floor Floor
	Now   quantity.Instant
	Sold  []string
	Wrong []string
	Runs  []func()
}

// Sales is how many times it was asked for a piece.
func (x *Seller) Sales() int { return len(x.Sold) }

// Ask is award.Seller's.
func (x *Seller) Ask(now quantity.Instant, j *index.Job, s *window.Slice, p award.Piece, _ *protocol.Out) {
	has, _ := x.Purse(now, j)
	x.Sold = append(x.Sold, fmt.Sprintf("%d: %s %v %s on %s [%d,%d) window %d round %d, bid %+v", now/1e6, j.Name(), p.Range, p.Option,
		s.Name(), p.Start/1e6, p.End/1e6, p.Window, p.Round, p.Bid))
	d, slice := j.Demand.(*Job), s.Supply.(*Slice)
	if why := Unsound(now, d, s, &p); why != "" {
		x.Wrong = append(x.Wrong, x.Sold[len(x.Sold)-1]+": "+why)
	}
	if p.Bid != nil && (p.Bid.Price < 0 || p.Bid.Price > has) {
		x.Wrong = append(x.Wrong, x.Sold[len(x.Sold)-1]+": its queue can not pay that")
	}
	d.Claimed, d.Running, d.Got, d.Began = d.Claimed.Add(p.Range), d.Running+1, p.Start, append(slices.Clone(d.Began), now)
	j.Losses().Clear()
	x.Floor.InvalidateJob(j)
	old := slice.Gaps
	slice.Gaps = nil
	for _, g := range old {
		if g.Start < p.Start {
			slice.Gaps = append(slice.Gaps, protocol.Gap{Start: g.Start, End: min(g.End, p.Start)})
		}
		if g.End > p.End {
			slice.Gaps = append(slice.Gaps, protocol.Gap{Start: max(g.Start, p.End), End: g.End, Until: g.Until})
		}
	}
	x.Floor.InvalidateSlice(s)
	x.Runs = append(x.Runs, func() {
		d.Claimed, d.Committed, d.Running = d.Claimed.Remove(p.Range), d.Committed.Add(p.Range), d.Running-1
		i := slices.Index(d.Began, now)
		d.Had, d.Began = d.Had+x.Now.Sub(now).Milliseconds(), slices.Delete(slices.Clone(d.Began), i, i+1)
		x.Floor.Changed(j)
		if d.Committed.Len() == d.Of.Total {
			x.Floor.Retire(j)
		}
	})
}

// Withdraw is award.Seller's.
func (x *Seller) Withdraw(_, _ quantity.Instant, _ *window.Slice, _ *protocol.Out) int { return 0 }

// Purse of a queue is empty now and then.
func (x *Seller) Purse(_ quantity.Instant, j *index.Job) (has, full int64) {
	return int64(1200 - 130*(len(j.Spec().Queue)*len(x.Sold)%10)), 1000
}
