package flow

import (
	"testing"
	"time"
)

func TestADrawIsTheTicketsOwn(t *testing.T) {
	s := NewSplitter(tested(), 20)
	for z := range ZoneID(20) {
		d := Digest{Zone: z, Version: 1, Alive: true, Free: [MaxClasses]uint32{uint32(z) + 1, uint32(z) + 1}}
		s.Hear(start, &d)
	}
	s.Rebuild(start)
	first := map[TicketID]ZoneID{}
	for id := range TicketID(100) {
		first[id], _ = s.Draw(&Ticket{ID: id})
	}
	different := 0
	for id := TicketID(99); id > 0; id-- { // in another order, and others draw in between
		z, _ := s.Draw(&Ticket{ID: id})
		if z != first[id] {
			t.Errorf("ticket %d is drawn to %d, and to %d in another order", id, first[id], z)
		}
		again, _ := s.Draw(&Ticket{ID: id, Draws: 1, Zone: z})
		if again == z {
			t.Errorf("ticket %d is drawn to zone %d, where it was", id, z)
		}
		if episode, _ := s.Draw(&Ticket{ID: id, Episode: 1}); episode != z {
			different++
		}
	}
	if different < 50 {
		t.Errorf("a second search is drawn elsewhere in %d of 99 cases", different)
	}
}

func TestStaleAndLateDigests(t *testing.T) {
	s := NewSplitter(tested(), 3)
	if _, ok := s.Draw(&Ticket{ID: 1}); ok {
		t.Error("a zone is drawn before anything was heard")
	}
	now := start
	for z := range ZoneID(3) {
		s.Hear(now, &Digest{Zone: z, Version: 5, Alive: true, Free: [MaxClasses]uint32{10}})
	}
	s.Rebuild(now)
	if s.Hear(now, &Digest{Zone: 1, Version: 5}) || s.Hear(now, &Digest{Zone: 1, Version: 4}) || s.Hear(now, &Digest{Zone: 3, Version: 9}) {
		t.Error("an old digest, or one of nobody, is taken in")
	}
	now = now.Add(900 * time.Millisecond)
	s.Hear(now, &Digest{Zone: 0, Version: 6, Alive: true, Free: [MaxClasses]uint32{10}})
	s.Hear(now, &Digest{Zone: 1, Version: 6}) // says that it stops
	now = now.Add(200 * time.Millisecond)     // and of zone 2 nothing was heard for 1.1 s
	s.Rebuild(now)
	for z, want := range []bool{true, false, false} {
		if got := s.Share(0, ZoneID(z)) > 0; got != want {
			t.Errorf("zone %d is drawn: %v", z, got)
		}
	}
	s.Rebuild(now.Add(time.Minute))
	if _, ok := s.Draw(&Ticket{ID: 1}); ok {
		t.Error("a zone is drawn a minute after anything was heard")
	}
}

func TestRises(t *testing.T) {
	s := NewSplitter(tested(), 2)
	hear := func(z ZoneID, version uint64, free, demand uint32) {
		d := Digest{Zone: z, Version: version, Alive: true}
		d.Free[1], d.Demand[1] = free, demand
		s.Hear(start, &d)
		s.Rebuild(start)
	}
	want := func(why string, homes, budget int) {
		t.Helper()
		if got := s.Rises(homes); got[1] != budget || got[0] != 0 {
			t.Errorf("%s: %v may be woken, want %d of class 1", why, got, budget)
		}
	}
	want("nothing was heard", 1, 0)
	hear(0, 1, 8, 0)
	hear(1, 1, 4, 0)
	want("12 fragments shared by 5 homes", 5, 3)
	want("no more came, but there is room", 5, 1)
	hear(0, 2, 0, 0)
	hear(1, 2, 4, 6)
	want("more are asked for than there are", 5, 0)
	hear(1, 3, 4, 3)
	want("one over, counted from nothing", 1, 1)
	hear(0, 3, 900, 0)
	want("bounded", 1, 16)
}
