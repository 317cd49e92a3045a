package flow

import (
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSumsAreThoseOfAllNodes: kept by differences they are what a walk over everything counts, whatever comes in whatever order.
func TestSumsAreThoseOfAllNodes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "nodes")
		cfg := tested()
		cfg.ZoneTickets = 5
		d := NewDirectory(cfg, 3, n, 41)
		known := make([]Summary, n)
		var here []*Ticket
		for step := range 40 {
			node := NodeID(rapid.IntRange(0, n-1).Draw(t, "node"))
			switch rapid.IntRange(0, 5).Draw(t, "what") {
			case 0, 1:
				s := Summary{Free: someFragments(t, 4), Version: rapid.Uint64Range(1, 20).Draw(t, "version"),
					Pressure: uint16(rapid.IntRange(0, 1000).Draw(t, "pressure")), Usable: rapid.Bool().Draw(t, "usable")}
				if newer := s.Version > known[node].Version; d.Report(node, &s) != newer {
					t.Fatalf("version %d after %d was taken in: %v", s.Version, known[node].Version, !newer)
				} else if newer {
					known[node] = s
				}
			case 2:
				if d.Silent(node); known[node].Usable { // what it said last is news then
					known[node].Usable = false
					known[node].Version--
				}
			case 3:
				tk := &Ticket{Class: Class(rapid.IntRange(0, len(levels)-1).Draw(t, "class"))}
				if ok := d.admit(tk); ok != (len(here) < 5) {
					t.Fatalf("with %d tickets there it is admitted: %v", len(here), ok)
				} else if ok {
					here = append(here, tk)
				}
			case 4:
				if len(here) > 0 {
					d.leave(here[0])
					here = here[1:]
				}
			case 5: // another of its name begins to count anew
				d.Forget(node)
				known[node] = Summary{}
			}
			got := d.Digest(start)
			var want Digest
			pressure, usable := 0, 0
			for i, s := range known {
				if h := d.Hint(NodeID(i)); !s.Usable && h != 0 || s.Usable && h != hintOf(&s.Free) {
					t.Fatalf("the hint of node %d is %b", i, h)
				}
				if !s.Usable {
					continue
				}
				usable++
				pressure += int(s.Pressure)
				for c := range MaxClasses {
					want.Free[c] += uint32(s.Free.AtLeast(Class(c)))
				}
			}
			for _, tk := range here {
				for c := range int(tk.Class) + 1 {
					want.Demand[c]++
				}
			}
			if want.Zone, want.At, want.Version, want.Alive = 3, start, 42+uint64(step), usable > 0; usable > 0 {
				want.Pressure = uint16((2*pressure + usable) / (2 * usable))
			}
			if got != want {
				t.Fatalf("the digest is\n%+v, a walk over all says\n%+v", got, want)
			}
		}
	})
}

// TestPicksAreNewAndUsable: up to 64 nodes nobody is asked twice before all were asked; above, never one with a visited bit; a node that
// is not usable never.
func TestPicksAreNewAndUsable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 130).Draw(t, "nodes")
		d := NewDirectory(tested(), 0, n, 0)
		usable := 0
		for i := range n {
			s := Summary{Version: 1, Free: Fragments{uint8(rapid.IntRange(0, 1).Draw(t, "free"))},
				Usable: rapid.IntRange(0, 3).Draw(t, "usable") > 0}
			if s.Usable {
				usable++
			}
			d.Report(NodeID(i), &s)
		}
		tk := &Ticket{ID: TicketID(rapid.Uint64().Draw(t, "id"))}
		asked := map[NodeID]bool{}
		for range n {
			before := tk.Visited
			node, ok := d.pick(tk)
			if !ok {
				if usable > 0 {
					t.Fatalf("nobody is picked of %d usable nodes", usable)
				}
				return
			}
			if !d.nodes[node].Usable {
				t.Fatalf("node %d is picked and is not usable", node)
			}
			if n <= 64 && asked[node] && len(asked) < usable {
				t.Fatalf("node %d is asked again after %d of %d", node, len(asked), usable)
			}
			if all := bits.OnesCount64(before) == min(n, 64); before>>(node&63)&1 == 1 && !all && usable == n {
				t.Fatalf("node %d is asked again, with %b asked", node, before)
			}
			asked[node] = true
			tk.Visited |= 1 << (node & 63)
			tk.Hops++
		}
	})
}

// TestThePickIsTheBetterOfTwo: with all hints but one alike it is found as often as two different nodes of all find it.
func TestThePickIsTheBetterOfTwo(t *testing.T) {
	const n, draws = 50, 200_000
	cfg := tested()
	d := NewDirectory(cfg, 0, n, 0)
	for i := range n {
		s := Summary{Version: 1, Free: Fragments{1}, Usable: true}
		if i == 17 {
			s.Free[0] = 2
		}
		d.Report(NodeID(i), &s)
	}
	var counts [n]float64
	for id := range TicketID(draws) {
		node, _ := d.pick(&Ticket{ID: id * 77})
		counts[node]++
	}
	for i, got := range counts {
		want := (1 - 2./n) / (n - 1) * draws // neither of the two is 17, and it is the first of them
		if i == 17 {
			want = 2. / n * draws
		}
		if got < .9*want || got > 1.1*want {
			t.Errorf("node %d is picked %v times, want about %.0f", i, got, want)
		}
	}
}

// TestHopsGoToWhatShowsRoom: of 50 nodes, most of them full, first to those with a fragment of just the class, then to those with a larger
// one, then anywhere; and anew when all were asked.
func TestHopsGoToWhatShowsRoom(t *testing.T) {
	d := NewDirectory(tested(), 0, 50, 0)
	for i := range 50 {
		s := Summary{Version: 1, Usable: i != 30}
		switch i {
		case 17, 40:
			s.Free = Fragments{0, 1}
		case 3:
			s.Free = Fragments{4, 0, 2, 1}
		case 30:
			s.Free = Fragments{0, 9} // not usable
		case 5:
			s.Free = Fragments{9}
		}
		d.Report(NodeID(i), &s)
	}
	for id := range TicketID(200) {
		tk := &Ticket{ID: id, Class: 1}
		var order []NodeID
		for range 49 {
			node, _ := d.pick(tk)
			order = append(order, node)
			tk.Visited |= 1 << node
			tk.Hops++
		}
		if first := slices.Sorted(slices.Values(order[:2])); !slices.Equal(first, []NodeID{17, 40}) || order[2] != 3 {
			t.Fatalf("ticket %d asks %v", id, order[:4])
		}
		if all := slices.Compact(slices.Sorted(slices.Values(order))); len(all) != 49 {
			t.Fatalf("ticket %d asks %d different nodes in 49 hops", id, len(all))
		}
		if again, ok := d.pick(tk); !ok || again != 17 && again != 40 {
			t.Fatalf("anew it asks %d", again)
		}
	}
	if _, ok := d.pick(&Ticket{Class: 100}); ok {
		t.Error("a class that is none has a node")
	}
}
