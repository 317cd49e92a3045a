package flow

import (
	"time"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/prng"
	"sluice.dev/sluice/internal/core/quantity"
)

// Search is the loop by which tickets find a place: every method takes a ticket through one event and says what is to be
// done next. It decides from its arguments alone; the caller sends the messages and keeps the timers.
//
//	Begin, Wake ──▶ Draw ──▶ Arrive ──▶ Ask ──▶ Granted: landed ──▶ Lost: as refused
//	                 ▲         │ ▲      │
//	                 │ crowded │ └──────┤ Refused, or no answer: Ask at once, or after a rest (Next)
//	                 └─────────┴────────┘ the zone's hops are over       ──▶ Expire, Park
type Search struct{ cfg *Config }

// NewSearch is a search of a valid configuration (Config.Checked).
func NewSearch(cfg *Config) *Search { return &Search{cfg} }

// Act is what is to be done for a ticket.
type Act uint8

const (
	// Draw a zone for it (Splitter.Draw) and have it Arrive there; where no zone is live it is Stranded.
	Draw Act = iota
	// Ask the node (Move.Node of the ticket's zone). Without an answer until Move.At it is Refused.
	Ask
	// Rest until Move.At, and call Next.
	Rest
	// Park it at home (Lot.Add) until it is woken; at Move.At, unless that is Never, call Next: its deadline is over.
	Park
	// Expire: it is over, and Why says why.
	Expire
)

// Move is the next act and what it needs. The ticket has the rest.
type Move struct {
	Act  Act
	Node NodeID
	At   quantity.Instant
}

// Begin starts the first search of a new ticket.
func (s *Search) Begin(now quantity.Instant, t *Ticket) Move {
	t.Since, t.Phase = now, Drawing
	if t.due(now) {
		return s.end(nil, t, PastDeadline)
	}
	return Move{Act: Draw}
}

// Wake starts another search of a ticket that was parked. What it has waited stays counted.
func (s *Search) Wake(now quantity.Instant, t *Ticket) Move {
	if t.Phase != Parked {
		invariant.Check(false, "flow: ticket %d is woken and is %v", t.ID, t.Phase)
	}
	t.Episode++
	t.Visited, t.Next, t.Hops, t.Here, t.Draws, t.Resplits, t.Crowded, t.Why = 0, 0, 0, 0, 0, 0, false, Unended
	return s.Begin(now, t)
}

// Stranded is a ticket that no zone could be drawn for.
func (s *Search) Stranded(now quantity.Instant, t *Ticket) Move {
	if t.due(now) {
		return s.end(nil, t, PastDeadline)
	}
	return s.end(nil, t, NoZone)
}

// Arrive brings a ticket to the zone of a directory, which it was drawn to. A zone that has as many tickets as it takes turns
// it away: once it is drawn again.
func (s *Search) Arrive(now quantity.Instant, t *Ticket, d *Directory) Move {
	if t.Phase != Drawing {
		invariant.Check(false, "flow: ticket %d arrives in zone %d and is %v", t.ID, d.zone, t.Phase)
	}
	t.Zone, t.Here, t.Visited, t.Next = d.zone, 0, 0, now
	t.Draws++
	if !d.admit(t) {
		if t.Crowded {
			return s.end(nil, t, AllCrowded)
		}
		t.Crowded = true
		return Move{Act: Draw}
	}
	t.Phase = Searching
	return s.Next(now, t, d)
}

// Next is what a ticket does now that rests, has just come, or is parked (then d is nil). It asks a node: the first Guesses of a search
// whatever they look like, since what is known of them is old, and others only where the zone knows of room for it.
func (s *Search) Next(now quantity.Instant, t *Ticket, d *Directory) Move {
	switch {
	case t.due(now):
		return s.end(d, t, PastDeadline)
	case t.Phase == Parked:
		return Move{Act: Park, At: t.until(quantity.Never)}
	case now >= t.Since.Add(s.cfg.Patience):
		return s.end(d, t, OutOfPatience)
	case int(t.Hops) >= s.cfg.MaxHops:
		return s.end(d, t, OutOfHops)
	case int(t.Here) >= s.cfg.ZoneHops && int(t.Resplits) < s.cfg.Resplits:
		return s.resplit(d, t)
	case now < t.Next:
		return s.rest(t)
	}
	if int(t.Hops) >= s.cfg.Guesses && !d.shows(t) { // it looks again instead of asking: that takes its time and no message
		t.Here = min(t.Here, 254) + 1
		t.Next = now.Add(s.pace(t))
		return s.rest(t)
	}
	node, ok := d.pick(t)
	switch {
	case ok:
	case int(t.Resplits) < s.cfg.Resplits:
		return s.resplit(d, t)
	default:
		return s.end(d, t, NoZone)
	}
	t.Node, t.Phase = node, Asking
	t.Visited |= 1 << (node & 63)
	t.Hops++
	if t.Here++; int(t.Here) >= s.cfg.Burst {
		t.Next = now.Add(s.pace(t))
	}
	return Move{Act: Ask, Node: node, At: now.Add(s.cfg.ProbeTimeout)}
}

// rest until it may hop again, or its search is over.
func (s *Search) rest(t *Ticket) Move {
	return Move{Act: Rest, At: t.until(min(t.Next, t.Since.Add(s.cfg.Patience)))}
}

// Refused is the answer no, or none in time. Report what the node said of itself to the directory before: the next hop reads it.
func (s *Search) Refused(now quantity.Instant, t *Ticket, d *Directory) Move {
	if t.Phase != Asking {
		invariant.Check(false, "flow: ticket %d is refused and is %v", t.ID, t.Phase)
	}
	t.Phase = Searching
	return s.Next(now, t, d)
}

// Granted is the answer yes: the search is over. What follows is the home's claim and the node's lease.
func (s *Search) Granted(t *Ticket, d *Directory) {
	if t.Phase != Asking {
		invariant.Check(false, "flow: ticket %d is granted and is %v", t.ID, t.Phase)
	}
	t.Phase = Landed
	d.leave(t)
}

// Lost is a grant that came to nothing: it lapsed before it was redeemed, or the lease was lost. The search goes on with what is left of
// its bounds, from a draw on.
func (s *Search) Lost(now quantity.Instant, t *Ticket) Move {
	if t.Phase != Landed {
		invariant.Check(false, "flow: ticket %d has lost its grant and is %v", t.ID, t.Phase)
	}
	t.Phase = Drawing
	t.Churn = min(t.Churn, 254) + 1
	switch {
	case t.due(now):
		return s.end(nil, t, PastDeadline)
	case now >= t.Since.Add(s.cfg.Patience):
		return s.end(nil, t, OutOfPatience)
	case int(t.Hops) >= s.cfg.MaxHops:
		return s.end(nil, t, OutOfHops)
	}
	return Move{Act: Draw}
}

// Leave takes out a ticket whose job needs no place any more: it was cancelled, or its home has moved on. d is the directory of the zone it
// searches in, nil if it searches in none.
func (s *Search) Leave(t *Ticket, d *Directory) {
	if t.Phase == Searching || t.Phase == Asking {
		d.leave(t)
	}
	t.Phase = Expired
}

// resplit leaves a zone for another one.
func (s *Search) resplit(d *Directory, t *Ticket) Move {
	d.leave(t)
	t.Phase = Drawing
	t.Resplits++
	return Move{Act: Draw}
}

// end is the end of a search without a place: fleeting work expires, and so does what has passed its deadline; the rest is parked.
func (s *Search) end(d *Directory, t *Ticket, why Why) Move {
	if t.Phase == Searching || t.Phase == Asking {
		d.leave(t)
	}
	t.Why = why
	if t.Kind == Fleeting || why == PastDeadline {
		t.Phase = Expired
		return Move{Act: Expire}
	}
	t.Phase = Parked
	return Move{Act: Park, At: t.until(quantity.Never)}
}

// pace is the time to a ticket's next hop or look: Pace on average, from a half to one and a half of it, so that tickets which came
// together do not go on together.
func (s *Search) pace(t *Ticket) time.Duration {
	stream := prng.New(s.cfg.Seed, uint64(t.ID), forPace<<32|uint64(t.Episode)<<16|uint64(t.Hops), uint64(t.Here))
	return s.cfg.Pace/2 + time.Duration(stream.Uint64()%uint64(s.cfg.Pace))
}
