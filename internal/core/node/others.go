package node

import (
	"slices"

	"sluice.dev/sluice/internal/core/civil"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/timeline"
)

// What others hold of slices, or will, is what the inventory says of it: closed time that no fact stands for. A restart hears it again.

// softID is the bit that marks the ids of such reservations; those on one slice are counted. The ids of durable ones are below it.
const softID = 1 << 62

// mostHolds is how many are kept apart on one slice. What is beyond them closes the slice from the first of it on.
const mostHolds = 64

// soft says whether a reservation is one that the inventory says, by its id.
func soft(id uint64) bool { return id>>62 == 1 }

// foreign takes in all that others hold of a slice, and all that is kept of it for who waits, in place of what was before. What may
// truncate cuts short what runs in its time.
func (n *Node) foreign(now quantity.Instant, s *slice, others, kept []protocol.Reservation, out *protocol.Out) {
	if slices.Equal(s.others, others) && slices.Equal(s.kept, kept) {
		return
	}
	said := slices.Concat(others, kept)
	var since []quantity.Instant
	for _, r := range said {
		since = append(since, n.since(now, s, r))
	}
	n.clearHolds(s)
	s.others, s.kept, s.since = others, kept, since
	for k, r := range said {
		if r.Start = since[k]; k >= mostHolds {
			r.Start, r.End, r.Every, r.Truncate, r.Calendar = slices.Min(since[k:]), quantity.Never, 0, false, civil.Calendar{}
		}
		n.close(now, s, k, r)
		if k >= mostHolds {
			break
		}
	}
	n.heldAnew(s)
	n.giveWay(now, s, out)
}

// since is from when on a hold counts that is said to be there now: since it was said first, whatever was said of its end.
func (n *Node) since(now quantity.Instant, s *slice, r protocol.Reservation) quantity.Instant {
	if r.Start != 0 {
		return r.Start
	}
	before := slices.Concat(s.others, s.kept)
	if k := slices.IndexFunc(before, func(o protocol.Reservation) bool { o.End = r.End; return o == r }); k >= 0 {
		return s.since[k]
	}
	return now
}

// close takes a hold's time off the market, unless it is over. Somebody who is there stays for as long as the inventory says so, whatever
// was known of the end; and what makes no sense is there for good.
func (n *Node) close(now quantity.Instant, s *slice, k int, r protocol.Reservation) {
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
	r.ID, r.Slice = softID+uint64(k), s.id
	s.time.Close(r)
}

// clearHolds takes all that others hold of a slice out of its timeline.
func (n *Node) clearHolds(s *slice) {
	for _, r := range slices.Clone(s.time.Closed()) {
		if soft(r.ID) {
			s.time.Reopen(r.ID)
		}
	}
}

// heldAnew says that what others hold of a slice has changed: of its gaps, and of what waits there to begin.
func (n *Node) heldAnew(s *slice) {
	first := quantity.Never
	for _, r := range s.time.Closed() {
		if soft(r.ID) && r.Every == 0 {
			first = min(first, r.End)
		}
	}
	n.departures.Set(&s.departing, s, first)
	for _, l := range n.leasesOn(s) {
		n.stir(l)
	}
	n.show(s)
}

// giveWay cuts short what runs on a slice in the time that others may take. Before the boot is confirmed nobody knows what runs.
func (n *Node) giveWay(now quantity.Instant, s *slice, out *protocol.Out) {
	if !n.confirmed {
		return
	}
	for _, r := range slices.Clone(s.time.Closed()) {
		if soft(r.ID) && r.Truncate {
			n.makeWay(now, s, &r, out)
		}
	}
}

// depart looks at what others were to hold until now.
func (n *Node) depart(now quantity.Instant) {
	for s, ok := n.departures.Due(now); ok; s, ok = n.departures.Due(now) {
		for _, r := range slices.Clone(s.time.Closed()) {
			if soft(r.ID) && r.Every == 0 && r.End <= now {
				s.time.Reopen(r.ID)
				n.close(now, s, int(r.ID-softID), r)
			}
		}
		n.heldAnew(s)
	}
}

// heldBy is what others hold of a slice now, until the instant at which its time is theirs no more.
func (s *slice) heldBy(now quantity.Instant) (by protocol.Reservation, held bool) {
	for _, r := range s.time.Closed() {
		if !soft(r.ID) {
			continue
		}
		if o, hit := timeline.Overlap(&r, now, now+1); hit && (!held || o.End > by.End) {
			by, held = o, true
		}
	}
	return by, held
}

// tries is when a lease that is due looks again whether its place is free, if nothing changes before: when what others hold of it ends, at
// the latest at its own end.
func (n *Node) tries(now quantity.Instant, l *lease) quantity.Instant {
	at := l.end
	n.each(l.slice, l.also, func(s *slice) {
		if r, held := s.heldBy(now); held {
			at = min(at, r.End)
		}
	})
	return at
}
