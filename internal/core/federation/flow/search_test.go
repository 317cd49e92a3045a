package flow

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
)

// zoneOf is a zone of some nodes that look free, and are not.
func zoneOf(cfg *Config, zone ZoneID, nodes int) *Directory {
	d := NewDirectory(cfg, zone, nodes, 0)
	for i := range nodes {
		d.Report(NodeID(i), &Summary{Version: 1, Usable: true, Free: Fragments{1}})
	}
	return d
}

// story plays a search in which every node refuses at once, in two zones by turns, and lists what happened.
func story(s *Search, t *Ticket, zones []*Directory) (acts []Act, times []time.Duration) {
	now := start
	for m := s.Begin(now, t); ; {
		acts, times = append(acts, m.Act), append(times, now.Sub(start))
		switch m.Act {
		case Draw:
			m = s.Arrive(now, t, zones[int(t.Draws)%len(zones)])
		case Ask:
			m = s.Refused(now, t, zones[t.Zone])
		case Rest:
			now = m.At
			m = s.Next(now, t, zones[t.Zone])
		default:
			return acts, times
		}
	}
}

// TestASearchThatFindsNothing: four hops at once, then one about every 20 ms; after eight another zone, twice; and at 1 s it is over,
// within its bounds.
func TestASearchThatFindsNothing(t *testing.T) {
	cfg := tested()
	s, zones := NewSearch(cfg), []*Directory{zoneOf(cfg, 0, 100), zoneOf(cfg, 1, 100)}
	tk := &Ticket{ID: 5, Kind: Fleeting}
	acts, times := story(s, tk, zones)
	at, asks, draws, here := time.Duration(0), 0, 0, 0
	for i, a := range acts {
		switch a {
		case Draw:
			if draws++; draws > 1 && here != 8 {
				t.Errorf("zone %d was left after %d hops", draws-1, here)
			}
			here = 0
		case Ask:
			gap := times[i] - at
			if here < 4 && gap != 0 && draws == 1 || here >= 4 && (gap < 10*time.Millisecond || gap > 30*time.Millisecond) {
				t.Errorf("hop %d in zone %d comes after %v", here, draws, gap)
			}
			at = times[i]
			asks, here = asks+1, here+1
		case Expire:
			if times[i] != time.Second {
				t.Errorf("it expires after %v", times[i])
			}
		}
	}
	if draws != 3 || asks != int(tk.Hops) || asks < 40 || asks > 64 || tk.Phase != Expired || tk.Why != OutOfPatience {
		t.Errorf("%d draws, %d hops (the ticket says %d), it is %v: %v", draws, asks, tk.Hops, tk.Phase, tk.Why)
	}
	if zones[0].Tickets()+zones[1].Tickets() != 0 {
		t.Error("it is still counted in a zone")
	}
	if got, most := tk.Messages(0), cfg.Bound(); got > most || most != 7+128+3 {
		t.Errorf("%d messages, the bound is %d", got, most)
	}
}

// TestWhereNothingLooksFree only the burst is asked, and then it looks, in three zones; and asks again once something looks free.
func TestWhereNothingLooksFree(t *testing.T) {
	cfg := tested()
	s, zones := NewSearch(cfg), []*Directory{NewDirectory(cfg, 0, 100, 0), NewDirectory(cfg, 1, 100, 0)}
	for _, d := range zones {
		for i := range 100 {
			d.Report(NodeID(i), &Summary{Version: 1, Usable: true})
		}
	}
	tk := &Ticket{ID: 5}
	acts, times := story(s, tk, zones)
	if last := len(acts) - 1; tk.Hops != 4 || tk.Draws != 3 || tk.Why != OutOfPatience || times[last] != time.Second || last < 40 ||
		last > 110 {
		t.Errorf("%d hops, %d draws, %v after %v, in %d acts", tk.Hops, tk.Draws, tk.Why, times[last], last)
	}
	tk = &Ticket{ID: 6, Hops: 4, Here: 4, Phase: Searching, Since: start, Next: start}
	zones[0].admit(tk)
	if m := s.Next(start, tk, zones[0]); m.Act != Rest || m.At < start.Add(10*time.Millisecond) || m.At > start.Add(30*time.Millisecond) {
		t.Errorf("with nothing to ask it says %+v", m)
	}
	zones[0].Report(77, &Summary{Version: 2, Usable: true, Free: Fragments{1}})
	if m := s.Next(tk.Next, tk, zones[0]); m.Act != Ask || m.Node != 77 {
		t.Errorf("with node 77 to ask it says %+v", m)
	}
}

func TestEnds(t *testing.T) {
	base := tested()
	for _, c := range []struct {
		name   string
		change func(*Config, *Ticket)
		crowd  int // so many of the two zones are full
		act    Act
		why    Why
		after  time.Duration // at the latest
	}{
		{"fleeting work expires", func(*Config, *Ticket) {}, 0, Expire, OutOfPatience, time.Second},
		{"the rest is parked", func(_ *Config, t *Ticket) { t.Kind = Lasting }, 0, Park, OutOfPatience, time.Second},
		{"hops", func(c *Config, _ *Ticket) { c.MaxHops = 12 }, 0, Expire, OutOfHops, 300 * time.Millisecond},
		{"a deadline", func(_ *Config, t *Ticket) { t.Deadline = start.Add(55 * time.Millisecond) }, 0, Expire, PastDeadline,
			55 * time.Millisecond},
		{"a deadline of lasting work", func(_ *Config, t *Ticket) { t.Deadline, t.Kind = start.Add(55*time.Millisecond), Lasting }, 0,
			Expire, PastDeadline, 55 * time.Millisecond},
		{"a deadline that is over", func(_ *Config, t *Ticket) { t.Deadline, t.Kind = start, Lasting }, 0, Expire, PastDeadline, 0},
		{"both zones are full", func(*Config, *Ticket) {}, 2, Expire, AllCrowded, 0},
		{"both zones are full for lasting work", func(_ *Config, t *Ticket) { t.Kind = Lasting }, 2, Park, AllCrowded, 0},
	} {
		own, tk := *base, &Ticket{ID: 9}
		cfg := &own
		cfg.ZoneTickets = 1
		c.change(cfg, tk)
		zones := []*Directory{zoneOf(cfg, 0, 100), zoneOf(cfg, 1, 100)}
		for i := range c.crowd {
			zones[i].admit(&Ticket{})
		}
		s := NewSearch(cfg)
		acts, times := story(s, tk, zones)
		last := len(acts) - 1
		if acts[last] != c.act || tk.Why != c.why || times[last] > c.after || times[last] < c.after && c.why != OutOfHops {
			t.Errorf("%s: it ends %v after %v: %v", c.name, acts[last], times[last], tk.Why)
		}
		if n := zones[0].Tickets() + zones[1].Tickets(); n != c.crowd {
			t.Errorf("%s: %d tickets are counted in zones, want %d", c.name, n, c.crowd)
		}
	}
}

// TestAFullZoneTurnsAwayOnce: the second full zone ends the search; a place in the second begins it.
func TestAFullZoneTurnsAwayOnce(t *testing.T) {
	cfg := tested()
	cfg.ZoneTickets = 1
	full, open := zoneOf(cfg, 0, 3), zoneOf(cfg, 1, 3)
	full.admit(&Ticket{})
	s, tk := NewSearch(cfg), &Ticket{ID: 1}
	s.Begin(start, tk)
	if m := s.Arrive(start, tk, full); m.Act != Draw || !tk.Crowded {
		t.Fatalf("the full zone says %+v", m)
	}
	if m := s.Arrive(start, tk, open); m.Act != Ask || open.Tickets() != 1 {
		t.Fatalf("the open zone says %+v", m)
	}
	s.Granted(tk, open)
	if tk.Phase != Landed || open.Tickets() != 0 || tk.Messages(0) != 7+2+1 {
		t.Errorf("it is %v, %d count, %d messages", tk.Phase, open.Tickets(), tk.Messages(0))
	}
	// The grant lapses: another search within the same bounds.
	if m := s.Lost(start, tk); m.Act != Draw || tk.Churn != 1 {
		t.Errorf("a lost grant: %+v, churn %d", m, tk.Churn)
	}
	if m := s.Arrive(start, tk, full); m.Act != Expire || tk.Why != AllCrowded {
		t.Errorf("a full zone again: %+v, %v", m, tk.Why)
	}
	for _, c := range []struct {
		now  quantity.Instant
		hops uint8
		due  quantity.Instant
		want Why
	}{{start.Add(time.Second), 1, 0, OutOfPatience}, {start, 64, 0, OutOfHops}, {start, 1, start, PastDeadline}} {
		lost := &Ticket{Phase: Landed, Since: start, Hops: c.hops, Deadline: c.due, Churn: 255}
		if m := s.Lost(c.now, lost); m.Act != Expire || lost.Why != c.want || lost.Churn != 255 {
			t.Errorf("lost with nothing left: %+v, %v, churn %d; want %v", m, lost.Why, lost.Churn, c.want)
		}
	}
}

// TestParkedWorkWakesWithFreshBounds and what it has waited.
func TestParkedWorkWakesWithFreshBounds(t *testing.T) {
	cfg := tested()
	s, d := NewSearch(cfg), zoneOf(cfg, 0, 10)
	tk := &Ticket{ID: 1, Kind: Lasting, Born: start, Deadline: start.Add(time.Hour)}
	story(s, tk, []*Directory{d})
	if m := s.Next(start.Add(time.Minute), tk, nil); m.Act != Park || m.At != tk.Deadline {
		t.Errorf("parked it says %+v", m)
	}
	if m := s.Wake(start.Add(time.Minute), tk); m.Act != Draw || tk.Hops+tk.Here+tk.Draws+tk.Resplits != 0 || tk.Visited != 0 ||
		tk.Episode != 1 || tk.Born != start || tk.Why != Unended {
		t.Errorf("woken: %+v, %+v", m, tk)
	}
	if m := s.Stranded(start.Add(time.Minute), tk); m.Act != Park || tk.Why != NoZone {
		t.Errorf("without a zone: %+v, %v", m, tk.Why)
	}
	if m := s.Next(start.Add(time.Hour), tk, nil); m.Act != Expire || tk.Why != PastDeadline {
		t.Errorf("at its deadline: %+v, %v", m, tk.Why)
	}
	late := &Ticket{Deadline: start.Add(time.Hour), Kind: Lasting}
	if m := s.Stranded(start.Add(time.Hour), late); m.Act != Expire || late.Why != PastDeadline {
		t.Errorf("without a zone at its deadline: %+v, %v", m, late.Why)
	}
}

// TestAZoneWhoseNodesAreAllGone is left for another, and where there is none that ends it.
func TestAZoneWhoseNodesAreAllGone(t *testing.T) {
	cfg := tested()
	s := NewSearch(cfg)
	gone, tk := NewDirectory(cfg, 0, 5, 0), &Ticket{ID: 1}
	acts, _ := story(s, tk, []*Directory{gone})
	if len(acts) != 4 || acts[2] != Draw || acts[3] != Expire || tk.Why != NoZone || gone.Tickets() != 0 {
		t.Errorf("%v, %v", acts, tk.Why)
	}
}

func TestLeaving(t *testing.T) {
	cfg := tested()
	s, d := NewSearch(cfg), zoneOf(cfg, 0, 5)
	for _, tk := range []*Ticket{{ID: 1}, {ID: 2, Kind: Lasting}} {
		s.Begin(start, tk)
		s.Arrive(start, tk, d)
		if tk.Kind == Lasting {
			s.Granted(tk, d)
		}
		s.Leave(tk, d)
		if d.Tickets() != 0 || tk.Phase != Expired {
			t.Errorf("%d are counted, it is %v", d.Tickets(), tk.Phase)
		}
	}
}

// TestEventsOutOfTurnAreBugs of who calls.
func TestEventsOutOfTurnAreBugs(t *testing.T) {
	cfg := tested()
	s, d := NewSearch(cfg), zoneOf(cfg, 0, 5)
	for name, f := range map[string]func(){
		"refused without a probe": func() { s.Refused(start, &Ticket{Phase: Searching}, d) },
		"granted twice":           func() { s.Granted(&Ticket{Phase: Landed}, d) },
		"woken while it searches": func() { s.Wake(start, &Ticket{Phase: Searching}) },
		"in two zones":            func() { s.Arrive(start, &Ticket{Phase: Searching}, d) },
		"lost before it landed":   func() { s.Lost(start, &Ticket{Phase: Asking}) },
		"left and never came":     func() { d.leave(&Ticket{}) },
	} {
		if panics(t, f) == nil {
			t.Errorf("%s: nothing is said", name)
		}
	}
}

// TestHopPrefersVisitedNodesWithRoom: where only nodes that refused show room, a ticket looks again instead of asking one that shows none;
// once all were asked, they are asked again.
func TestHopPrefersVisitedNodesWithRoom(t *testing.T) {
	cfg := tested()
	s, d := NewSearch(cfg), NewDirectory(cfg, 0, 2, 0)
	d.Report(0, &Summary{Version: 1, Usable: true, Free: Fragments{1}})
	d.Report(1, &Summary{Version: 1, Usable: true})
	for _, c := range []struct {
		visited uint64
		act     Act
		node    NodeID
	}{{0b01, Rest, 0}, {0b10, Ask, 0}, {0b00, Ask, 0}, {0b11, Ask, 0}} {
		tk := &Ticket{ID: 5, Kind: Fleeting}
		s.Begin(start, tk)
		if m := s.Arrive(start, tk, d); m.Act != Ask {
			t.Fatalf("it arrives and does %+v", m)
		}
		tk.Phase, tk.Hops, tk.Visited, tk.Next = Searching, uint8(cfg.Guesses), c.visited, start
		if m := s.Next(start, tk, d); m.Act != c.act || m.Act == Ask && m.Node != c.node {
			t.Errorf("visited %b: %+v, want %v of %d", c.visited, m, c.act, c.node)
		}
		s.Leave(tk, d)
	}
}
