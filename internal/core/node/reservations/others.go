package reservations

import (
	"slices"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// What others have of slices, or will, is closed time as the inventory reports it, without a fact: a restart hears it again. It is no hold
// (package holds), which is a grant of ours that lapses.

// mostOthers is how many closures are kept apart on one slice. Any more close the slice from the first of them on.
const mostOthers = 64

// lastOther is the number of the closure by which a slice ends for good, behind those of all others.
const lastOther = mostOthers + 1

// Held replaces what others have of a slice, Keep what is kept of it for those who wait. A closure that may truncate does so to what runs
// in its time.
func (b *Reservations) Held(now quantity.Instant, s *inventory.Slice, others []protocol.Reservation, out *protocol.Out) {
	b.replace(now, b.slot(s), others, b.slot(s).kept, out)
}

// Keep see Held.
func (b *Reservations) Keep(now quantity.Instant, s *inventory.Slice, kept []protocol.Reservation, out *protocol.Out) {
	b.replace(now, b.slot(s), b.slot(s).others, kept, out)
}

func (b *Reservations) replace(now quantity.Instant, x *slot, others, kept []protocol.Reservation, out *protocol.Out) {
	if slices.Equal(x.others, others) && slices.Equal(x.kept, kept) {
		return
	}
	said := slices.Concat(others, kept)
	var since []quantity.Instant
	for _, r := range said {
		since = append(since, x.counts(now, r))
	}
	for _, r := range x.slice.Others {
		x.slice.Reopen(r.ID)
	}
	x.others, x.kept, x.since = others, kept, since
	for k, r := range said {
		if r.Start = since[k]; k >= mostOthers {
			r.Start, r.End, r.Every, r.Truncate, r.Calendar = slices.Min(since[k:]), quantity.Never, 0, false, civil.Calendar{}
		}
		x.close(now, k, r)
		if k >= mostOthers {
			break
		}
	}
	x.closeForGood(b.until)
	b.changed(x)
	b.TruncateForOthers(now, x.slice, out)
}

// counts is from when a closure counts that is reported to be there now: since its first report, whatever end was reported.
func (x *slot) counts(now quantity.Instant, r protocol.Reservation) quantity.Instant {
	if r.Start != 0 {
		return r.Start
	}
	before := slices.Concat(x.others, x.kept)
	if k := slices.IndexFunc(before, func(o protocol.Reservation) bool { o.End = r.End; return o == r }); k >= 0 {
		return x.since[k]
	}
	return now
}

// close takes a closure's time off the market, unless it is over. A present occupant stays for as long as the inventory reports it,
// whatever end was announced; a closure that makes no sense stays for ever.
func (x *slot) close(now quantity.Instant, k int, r protocol.Reservation) {
	stays := r.Kind == protocol.ForForeign && r.Every == 0
	switch {
	case !timeline.Sound(&r):
		r.Start, r.End, r.Every, r.Calendar = min(r.Start, now), quantity.Never, 0, civil.Calendar{}
	case r.Every != 0 || r.End > now:
	case stays:
		r.End = quantity.Never
	default:
		return
	}
	x.slice.CloseFor(k, r)
}

// closeForGood takes all time from then on off the market, if it is known when.
func (x *slot) closeForGood(until quantity.Instant) {
	if x.closes != 0 {
		x.slice.CloseFor(lastOther, protocol.Reservation{Kind: protocol.ForReclaim, Start: x.closes, End: quantity.Never, Truncate: true,
			Source: "the machine, which leaves at " + timeline.Clock(until)})
	}
}

// changed marks what others have of a slice as changed: its gaps, and what waits there to begin.
func (b *Reservations) changed(x *slot) {
	first := quantity.Never
	for _, r := range x.slice.Others {
		if r.Every == 0 {
			first = min(first, r.End)
		}
	}
	b.departures.Set(&x.departing, x, first)
	for _, l := range b.parts.Leases.On(x.slice) {
		b.parts.Leases.Stir(l)
	}
	x.slice.Mark()
}

// TruncateForOthers truncates what runs on a slice in the time that others may take. Before the boot is confirmed nobody knows what runs.
func (b *Reservations) TruncateForOthers(now quantity.Instant, s *inventory.Slice, out *protocol.Out) {
	if !b.parts.Inventory.Confirmed() {
		return
	}
	for _, r := range s.Others {
		if r.Truncate {
			b.takeBack(now, s, &r, out)
		}
	}
}

// Depart looks at what others were to have until now.
func (b *Reservations) Depart(now quantity.Instant) {
	for x, ok := b.departures.Due(now); ok; x, ok = b.departures.Due(now) {
		for k, r := range x.slice.Others {
			if r.Every == 0 && r.End <= now {
				x.slice.Reopen(r.ID)
				x.close(now, k, r)
			}
		}
		b.changed(x)
	}
}

// Next is when what others have of a slice is over.
func (b *Reservations) Next() quantity.Instant { return b.departures.Next() }
