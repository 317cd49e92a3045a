package reservations

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/digest/digesttest"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node/holds"
	"sluice.dev/sluice/internal/core/node/inventory"
	"sluice.dev/sluice/internal/core/node/leases"
	"sluice.dev/sluice/internal/core/node/offers"
	"sluice.dev/sluice/internal/core/node/record"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestEveryFieldOfAReservationMovesItsHash: facts that lose one would fold to what looks like the same state.
func TestEveryFieldOfAReservationMovesItsHash(t *testing.T) {
	r := &protocol.Reservation{}
	digesttest.EveryField(t, r, func() uint64 { return hash(r) })
}

// TestAReservationStandsFromItsFactToTheOneThatEndsIt: held against a plain list of them, and what others hold against what was said last.
func TestAReservationStandsFromItsFactToTheOneThatEndsIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b *Reservations
		var out protocol.Out
		i := inventory.New()
		r := record.New("n", func(f *protocol.Fact) {
			if f.Kind == protocol.ReservationMade {
				b.ApplyMade(*f.Body.(*protocol.Reservation))
			} else {
				b.ApplyGone(f.Body.(*protocol.Reservation).ID)
			}
		})
		sold := leases.New(r, i)
		number := rapid.IntRange(0, 3).Draw(t, "number")
		b = New(Config{Number: number, Most: 100, PastTolerance: time.Minute}, Parts{
			Record: r, Inventory: i, Holds: holds.New(i, number), Leases: sold, Runner: leases.NewRunner(leases.Config{}, sold),
			Offers: offers.New(offers.Config{}, r, i),
		})
		i.List([]protocol.Slice{{ID: "a"}, {ID: "b"}})
		i.Confirm()
		now := quantity.Instant(1_000_000 * time.Second)
		plain := map[uint64]protocol.Reservation{}
		others := map[job.SliceID][]protocol.Reservation{}
		slice := func(t *rapid.T) job.SliceID {
			return job.SliceID(rapid.SampledFrom([]string{"a", "b"}).Draw(t, "slice"))
		}
		span := func(t *rapid.T) (start, end quantity.Instant) {
			start = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "start")) * time.Second)
			return start, start.Add(time.Duration(rapid.IntRange(1, 20).Draw(t, "length")) * time.Second)
		}
		t.Repeat(map[string]func(*rapid.T){
			"reserve": func(t *rapid.T) {
				is := protocol.Reservation{Kind: protocol.ForMaintenance, Slice: slice(t)}
				is.Start, is.End = span(t)
				made, err := b.Reserve(now, &protocol.Booking{Reservation: &is}, &out)
				if err != nil || len(made) != 1 || NumberOf(made[0].ID) != number {
					t.Fatalf("%+v is made %+v: %v", is, made, err)
				}
				if _, stood := plain[made[0].ID]; stood != made[0].Stood {
					t.Fatalf("%d stood before: %v", made[0].ID, made[0].Stood)
				}
				if !made[0].Stood {
					is.ID = made[0].ID
					plain[is.ID] = is
				}
			},
			"unreserve": func(t *rapid.T) {
				id := uint64(number)<<numberShift + uint64(rapid.IntRange(1, 9).Draw(t, "id"))
				_, stands := plain[id]
				if err := b.Unreserve(&protocol.Booking{Reservation: &protocol.Reservation{ID: id}}, &out); (err == nil) != stands {
					t.Fatalf("%d stands: %v, and is withdrawn: %v", id, stands, err)
				}
				delete(plain, id)
			},
			"others": func(t *rapid.T) {
				id := slice(t)
				others[id] = nil
				for range rapid.IntRange(0, 3).Draw(t, "holds") {
					is := protocol.Reservation{Kind: protocol.ForMaintenance}
					is.Start, is.End = span(t)
					others[id] = append(others[id], is)
				}
				b.Held(now, i.Of(id), others[id], &out)
			},
			"time": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 9000).Draw(t, "ms")) * time.Millisecond)
			},
			"": func(t *rapid.T) {
				b.Depart(now)
				b.Prune(now, &out)
				next, sum := quantity.Never, uint64(0)
				for id, x := range plain {
					if x.End <= now {
						delete(plain, id)
						continue
					}
					sum += hash(&x)
					if got, s := b.Of(id); s == nil || got != x {
						t.Fatalf("%d is %+v, want %+v", id, got, x)
					}
				}
				closed := len(plain)
				for _, list := range others {
					for _, x := range list {
						if x.End > now {
							closed++
							next = min(next, x.End)
						}
					}
				}
				for _, s := range i.All() {
					closed -= len(s.Closed())
				}
				if closed != 0 || sum != b.Sum() || next != b.Next() || len(b.on) != len(plain) {
					t.Fatalf("%d are not closed; %d of %d are indexed; the next is over at %v, want %v", closed, len(b.on), len(plain),
						b.Next(), next)
				}
			},
		})
	})
}
