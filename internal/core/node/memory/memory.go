// Package memory is what may be sold of the memory that a node's slices share with their host: what is sold and held on all of them
// together is within it with the chance that is accepted, as what runs on one slice is within that by theta.
//
// Nothing of it is durable but the leases' peaks: a node that starts again has learned no correlation, and counts all peaks as one.
package memory

import (
	"slices"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/joint"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

// Peaks knows what is counted for what was sold under a token.
type Peaks interface {
	Peak(t job.Token) (trp.Peak, bool)
}

// Host is the memory of one node's host.
type Host struct {
	limit           joint.Limit
	learner         joint.Learner
	horizon, minGap time.Duration
	inventory       *inventory.Inventory
	sold            []Peaks
	// seen is the version of the inventory for which it was found what each slice bears; 0: none. passes is the next time that a lease or a
	// hold is past its end, from when on it counts until further notice; 0: none will be.
	seen   uint64
	passes quantity.Instant

	tenants []tenant // room
	gap     []protocol.Gap
}

// tenant is a lease or a hold on one slice.
type tenant struct {
	start, end quantity.Instant
	peak       trp.Peak
	// waits is the slice of a program that waits there; nil: it is a lease or a hold. Whoever takes its slice goes on in it, or it ends
	// first.
	waits *inventory.Slice
}

// New returns the memory of a host with these slices and leases. Gaps are looked for within horizon, from minGap on.
func New(c joint.Config, horizon, minGap time.Duration, i *inventory.Inventory, sold ...Peaks) *Host {
	return &Host{limit: joint.NewLimit(c), horizon: horizon, minGap: minGap, inventory: i, sold: sold}
}

// Counted says whether it is known how much there is.
func (h *Host) Counted() bool { return h.limit.Counted() }

// Next is when what slices bear is to be found again although nothing changes; 0: not before.
func (h *Host) Next() quantity.Instant { return h.passes }

// correlation of the peaks on the host.
func (h *Host) correlation() int64 {
	if h.limit.Given {
		return h.limit.Correlation
	}
	return h.learner.Correlation()
}

// hosted is on how many of these slices a piece takes of the host's memory.
func (h *Host) hosted(id job.SliceID, also []job.SliceID) (pieces int) {
	if s := h.inventory.Of(id); s == nil || s.Hosted() {
		pieces++
	}
	for _, id := range also {
		if s := h.inventory.Of(id); s == nil || s.Hosted() {
			pieces++
		}
	}
	return pieces
}

// occupy appends those that have a slice now or later, except but. A subjob past its end, and not confirmed gone, has it until further
// notice.
func (h *Host) occupy(now quantity.Instant, but job.Token, list []tenant) []tenant {
	for _, s := range h.inventory.All() {
		if !s.Hosted() {
			continue
		}
		for _, r := range s.Sold() {
			if r.Token == but {
				continue
			}
			t := tenant{start: r.Start, end: r.End}
			known := false
			for i := 0; i < len(h.sold) && !known; i++ {
				t.peak, known = h.sold[i].Peak(r.Token)
			}
			if !known {
				continue
			}
			if t.end <= now {
				t.end = quantity.Never
			}
			list = append(list, t)
		}
	}
	for _, s := range h.inventory.Staying() {
		if x := s.Stay(); s.Hosted() {
			list = append(list, tenant{start: now, end: quantity.Never, peak: trp.Peak{Mean: x.Memory}, waits: s})
		}
	}
	return list
}

// occupied is the same in room of its own, good until the next time.
func (h *Host) occupied(now quantity.Instant, but job.Token) []tenant {
	h.tenants = h.occupy(now, but, h.tenants[:0])
	return h.tenants
}

// fullest is the load within [from, to) that needs most memory, with n more pieces of a peak, and without the programs that wait where
// these are to go. It changes only where a tenant begins.
func (h *Host) fullest(from, to quantity.Instant, list []tenant, peak trp.Peak, pieces int, on ...*inventory.Slice) (most joint.Load) {
	need := quantity.Amount(-1)
	at := func(t quantity.Instant) {
		var l joint.Load
		for i := range list {
			x := &list[i]
			if x.start <= t && t < x.end && (x.waits == nil || !slices.Contains(on, x.waits)) {
				l.Add(x.peak)
			}
		}
		for range pieces {
			l.Add(peak)
		}
		if m := h.limit.Need(&l, h.correlation()); m > need {
			most, need = l, m
		}
	}
	at(from)
	for i := range list {
		if x := &list[i]; x.start > from && x.start < to {
			at(x.start)
		}
	}
	return most
}

// Piece is what is to run in [From, To) on some slices, beside all that was sold but under the token But.
type Piece struct {
	From, To quantity.Instant
	Peak     trp.Peak
	Slice    job.SliceID
	Also     []job.SliceID
	But      job.Token
}

// Overcrowded says why the host has not the memory for a piece; empty if it has, or if it is not known how much there is.
func (h *Host) Overcrowded(now quantity.Instant, p Piece) string {
	if !h.limit.Counted() {
		return ""
	}
	pieces := h.hosted(p.Slice, p.Also)
	if pieces == 0 {
		return ""
	}
	var on []*inventory.Slice
	if len(h.inventory.Staying()) > 0 {
		for _, id := range append([]job.SliceID{p.Slice}, p.Also...) {
			on = append(on, h.inventory.Of(id))
		}
	}
	load := h.fullest(max(now, p.From), p.To, h.occupied(now, p.But), p.Peak, pieces, on...)
	if h.limit.Need(&load, h.correlation()) <= h.limit.Memory {
		return ""
	}
	return h.limit.Explain(&load, h.correlation())
}

// Bear finds what each slice may be offered with, if that may have changed: what is spare from its first gap on, in eighths. So nobody asks
// for what would be refused, unless another ask was faster.
func (h *Host) Bear(now quantity.Instant) {
	if !h.limit.Counted() || h.seen == h.inventory.Version() && (h.passes == 0 || now < h.passes) || !h.inventory.Confirmed() {
		return
	}
	h.seen, h.passes = h.inventory.Version(), 0
	list := h.occupied(now, job.Token{})
	for i := range list {
		if end := list[i].end; end != quantity.Never && (h.passes == 0 || end < h.passes) {
			h.passes = end
		}
	}
	for _, s := range h.inventory.All() {
		if !s.Hosted() {
			continue
		}
		from := now
		if h.gap, _ = s.Gaps(now, h.horizon, h.minGap, h.gap[:0]); len(h.gap) > 0 {
			from = max(now, h.gap[0].Start)
		}
		load := h.fullest(from, quantity.Never, list, trp.Peak{}, 0, s)
		s.Bear(h.limit.Memory, inEighths(h.limit.Spare(&load, h.correlation()), s.Capacity()))
	}
}

// eighths is the granularity of what a slice bears: similar slices stay in few classes, and small changes change nothing.
const eighths = 8

// inEighths is an amount as whole eighths of a capacity, the capacity at most.
func inEighths(a, capacity quantity.Amount) quantity.Amount {
	if a >= capacity {
		return capacity
	}
	eighth := func(k quantity.Amount) quantity.Amount { return capacity/eighths*k + capacity%eighths*k/eighths }
	k := quantity.Amount(eighths - 1)
	for ; k > 0 && eighth(k) > a; k-- {
	}
	return eighth(k)
}

// Learn records the peak of a subjob that has run since then on a slice, and ends now at the end of its range: only then was that the peak
// of all of it.
func (h *Host) Learn(now quantity.Instant, s job.SliceID, since quantity.Instant, foreseen trp.Peak, r *job.Result) {
	if h.limit.Counted() && h.hosted(s, nil) > 0 && since != 0 && r.Outcome == job.Done &&
		h.learner.Observe(since, now, foreseen, r.Peak[trp.Memory]) {
		h.seen = 0
	}
}

// Crowded is why a slice is offered with less than it has, for people; empty if it is not.
func (h *Host) Crowded(now quantity.Instant, s *inventory.Slice) string {
	bears := s.Desc().Bears
	if !h.limit.Counted() || !s.Hosted() || bears >= s.Capacity() {
		return ""
	}
	load := h.fullest(now, now+1, h.occupy(now, job.Token{}, nil), trp.Peak{}, 0, s)
	return h.limit.Offers(&load, h.correlation(), bears, s.Capacity())
}
