package seek

import (
	"fmt"
	"strings"
	"time"

	"sluice.dev/sluice/internal/core/federation/search"
	"sluice.dev/sluice/internal/core/home"
	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// Waits says where a job's ticket is, or why it has none.
func (z *Seek) Waits(now quantity.Instant, e *Job, j *home.Job) string {
	if e == nil { // of a job that is in the archive, or not submitted
		return "(Resources) it looks for a place"
	}
	s := &e.search
	t := s.Ticket()
	switch s.State() {
	case search.Parked:
		return fmt.Sprintf("(Resources) %v: it asked %d nodes in %d searches of a zone; it waits for room, and looks again%s", t.Why,
			t.Hops, t.Draws, negotiates(e))
	case search.Away:
		return fmt.Sprintf("(Resources) its ticket looks for a place since %v: %s", now.Sub(t.Since).Round(time.Millisecond), z.places(s))
	case search.Landed:
		return "(Resources) a place was found, its node is being asked"
	default: // idle
	}
	if why := z.zone.Waits(now, j); why != explain.Eligible {
		return "(Backoff) " + z.zone.Sentence(j, &explain.Cause{Reason: why})
	}
	if z.largestClass() < s.Wanted() {
		return fmt.Sprintf("(Resources) its next piece needs %d MiB, the largest slices there are have %d MiB", s.Wanted()>>20,
			z.largestClass()>>20)
	}
	return "(Resources) it looks for a place"
}

// negotiates names the nodes at which a job bids for time to come.
func negotiates(e *Job) string {
	var names []string
	for _, at := range e.visits.Hosts() {
		names = append(names, at.ID)
	}
	if len(names) == 0 {
		return ""
	}
	return "; it negotiates at " + strings.Join(names, ", ")
}

func (z *Seek) largestClass() quantity.Amount {
	c := z.cfg.Flow.Classes
	return c[len(c)-1]
}

// places are the zones that a ticket was in last.
func (z *Seek) places(s *search.Job) string {
	var names []string
	for _, i := range s.Trail().Zones {
		names = append(names, string(z.cfg.Zones[i].ID))
	}
	if len(names) == 0 {
		return "it searches at home first"
	}
	return "it was last in " + strings.Join(names, ", ")
}

// Trail counts what a job's tickets have met.
func (z *Seek) Trail(e *Job) (out []status.Reason) {
	if e == nil {
		return nil
	}
	s := &e.search
	tr := s.Trail()
	add := func(n int, text string) {
		if n > 0 {
			out = append(out, status.Reason{Text: text, Count: int64(n)})
		}
	}
	add(tr.Hops, "a node was asked for a place")
	add(tr.Draws, "a zone was drawn to search in; "+z.places(s))
	add(tr.Searches, "a search for a place began")
	add(tr.Tickets, "a ticket was made, each for one piece")
	lost := "a place that was found came to nothing"
	if tr.Refusal != "" {
		lost += " (" + tr.Refusal + ")"
	}
	add(tr.Lost, lost)
	add(tr.Missed, "a ticket did not come back, and another was made")
	return out
}

// Searching is what the zone says of the search in it.
func (z *Seek) Searching(now quantity.Instant) *status.Search {
	dir := z.home.Ground().Directory()
	d := dir.Now(now)
	out := &status.Search{Tickets: dir.Tickets(), Parked: z.home.Parked(), Alive: d.Alive}
	for c, level := range z.cfg.Flow.Classes {
		out.Rooms = append(out.Rooms, status.Room{Size: level, Free: int(d.Free[c]), Demand: int(d.Demand[c])})
	}
	return out
}
