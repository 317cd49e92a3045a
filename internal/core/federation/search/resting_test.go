package search

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/federation/flow"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestWhoRests against a list that is sorted.
func TestWhoRests(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r resting
		var rests, all []*guest
		for i := range 12 {
			all = append(all, &guest{Errand: protocol.Errand{Ticket: flow.Ticket{
				ID: flow.TicketID(i / 2), Home: flow.ZoneID(i % 2), Class: flow.Class(i % 3),
				Deadline: quantity.Instant(rapid.IntRange(0, 2).Draw(t, "deadline")),
				Born:     quantity.Instant(rapid.IntRange(0, 1).Draw(t, "born")),
			}}})
		}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			x := all[rapid.IntRange(0, len(all)-1).Draw(t, "guest")]
			rests = slices.DeleteFunc(rests, func(o *guest) bool { return o == x })
			if rapid.Bool().Draw(t, "rests") {
				r.put(x)
				rests = append(rests, x)
			} else {
				r.drop(x)
			}
			if r.any() != (len(rests) > 0) {
				t.Fatalf("somebody rests: %v, and %d do", r.any(), len(rests))
			}
			for c := range flow.Class(3) {
				served := slices.DeleteFunc(slices.Clone(rests), func(o *guest) bool { return o.Class > c })
				var want *guest
				if len(served) > 0 {
					want = slices.MinFunc(served, givesUp)
				}
				if got := r.first(c); got != want {
					t.Fatalf("class %d: first is %+v, want %+v", c, got, want)
				}
			}
		}
	})
}

// TestRoomWakesTheEarliestDeadline: three tickets rest in a zone; each report of room lets one of them ask, in the order in which their
// owners give up.
func TestRoomWakesTheEarliestDeadline(t *testing.T) {
	d := newDesk(t)
	g := d.h.Ground()
	full := func(version uint64) *flow.Summary { return &flow.Summary{Version: version, Usable: true} }
	g.Hear("n1", full(2))
	deadlines := []time.Duration{0, time.Minute, 10 * time.Second}
	for i, after := range deadlines {
		e := &protocol.Errand{Ticket: flow.Ticket{ID: flow.TicketID(i + 1), Home: 1, Demand: 100, Born: d.now, Since: d.now,
			Kind: flow.Lasting, Hops: 1}, Least: time.Second, Most: time.Minute}
		if after > 0 {
			e.Deadline = d.now.Add(after)
		}
		g.Arrive(d.now, job.ID(rune('a'+i)), e, &d.out)
	}
	if d.tick(0); len(d.out.Effects) != 0 {
		t.Fatalf("they ask a node that is full: %+v", d.out.Effects)
	}
	for i, want := range []flow.TicketID{3, 2, 1} {
		version := uint64(10 * (i + 1))
		g.Hear("n1", &flow.Summary{Version: version, Usable: true, Free: flow.Fragments{1}})
		d.tick(0)
		q := d.said(protocol.Probe).Body.(*protocol.Inquiry)
		if q.Ticket != want || len(d.out.Effects) != 1 || q.Short != (i < 2) {
			t.Fatalf("word %d: ticket %d asks, of %d words; somebody else waits: %v. Want ticket %d alone", i, q.Ticket, len(d.out.Effects),
				q.Short, want)
		}
		g.Hear("n1", &flow.Summary{Version: version, Usable: true, Free: flow.Fragments{1}})
		if d.tick(0); len(d.out.Effects) != 0 {
			t.Fatalf("the same word again: %+v", d.out.Effects)
		}
		g.Probed(d.now, "n1", &protocol.Response{Ticket: want, Home: 1, Hop: q.Hop, Place: place(version), Room: *full(version + 1)},
			&d.out)
	}
}
