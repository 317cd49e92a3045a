package timeline

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/invariant"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

const s = quantity.Instant(time.Second)

func sold(id uint64, from, to quantity.Instant) protocol.Reservation {
	return protocol.Reservation{ID: id, Kind: protocol.ForLease, Start: from * s, End: to * s}
}

func closed(id uint64, kind protocol.ReservationKind, from, to quantity.Instant, every time.Duration) protocol.Reservation {
	r := protocol.Reservation{ID: id, Kind: kind, Start: from * s, End: to * s, Every: every}
	if to == quantity.Never {
		r.End = to
	}
	return r
}

func gap(from, to quantity.Instant, until protocol.ReservationKind) protocol.Gap {
	if to < quantity.Never {
		to *= s
	}
	return protocol.Gap{Start: from * s, End: to, Until: until}
}

func TestInsertNamesWhatIsInTheWay(t *testing.T) {
	for _, c := range []struct {
		name     string
		from, to quantity.Instant
		blocker  uint64 // 0: it goes in
	}{
		{"before", 0, 10, 0},
		{"touches both", 20, 30, 0},
		{"after", 40, 50, 0},
		{"reaches into the first", 5, 11, 1},
		{"starts in the first", 19, 25, 1},
		{"same", 10, 20, 1},
		{"inside", 12, 13, 1},
		{"around", 5, 25, 1},
		{"reaches into the second", 25, 31, 2},
		{"around the second", 25, 100, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tl Timeline
			tl.Insert(sold(2, 30, 40))
			tl.Insert(sold(1, 10, 20))
			before := tl.Version()
			got, ok := tl.Insert(sold(3, c.from, c.to))
			if ok != (c.blocker == 0) || got.ID != c.blocker {
				t.Errorf("Insert = %d, %v; want %d in the way", got.ID, ok, c.blocker)
			}
			if (tl.Version() != before) != ok {
				t.Errorf("version went from %d to %d although ok is %v", before, tl.Version(), ok)
			}
		})
	}
}

func TestEndsMove(t *testing.T) {
	var tl Timeline
	tl.Insert(sold(1, 10, 20))
	tl.Insert(sold(2, 30, 40))
	for _, c := range []struct {
		name string
		got  bool
		want bool
	}{
		{"truncate to nothing", tl.Truncate(1, 10*s), false},
		{"truncate later", tl.Truncate(1, 25*s), false},
		{"truncate unknown", tl.Truncate(9, 15*s), false},
		{"truncate", tl.Truncate(1, 15*s), true},
		{"remove unknown", tl.Remove(9), false},
		{"reopen unknown", tl.Reopen(9), false},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if b, ok := tl.Extend(1, 31*s); ok || b.ID != 2 {
		t.Errorf("Extend into the next lease = %d, %v", b.ID, ok)
	}
	if _, ok := tl.Extend(1, 15*s); ok {
		t.Error("Extend to the same end succeeded")
	}
	if _, ok := tl.Extend(1, 30*s); !ok {
		t.Error("Extend up to the next lease failed")
	}
	if _, ok := tl.Extend(2, quantity.Never); !ok {
		t.Error("the last lease can't be extended without end")
	}
	if got := tl.Sold()[0].End; got != 30*s {
		t.Errorf("end is %d, want 30 s", got/s)
	}
}

func TestGaps(t *testing.T) {
	hour := time.Hour
	for _, c := range []struct {
		name   string
		sold   []protocol.Reservation
		closed []protocol.Reservation
		now    quantity.Instant
		want   []protocol.Gap
		more   bool
	}{
		{name: "empty", now: 5, want: []protocol.Gap{{Start: 5 * s, End: quantity.Never}}},
		{
			name: "between leases", now: 5, sold: []protocol.Reservation{sold(1, 10, 20), sold(2, 30, 40)},
			want: []protocol.Gap{gap(5, 10, protocol.ForLease), gap(20, 30, protocol.ForLease), gap(40, quantity.Never, 0)},
		},
		{name: "within a lease", now: 12, sold: []protocol.Reservation{sold(1, 10, 20)}, want: []protocol.Gap{gap(20, quantity.Never, 0)}},
		{name: "a lease past its end is still in use", now: 20, sold: []protocol.Reservation{sold(1, 10, 20)}},
		{name: "too short", now: 0, sold: []protocol.Reservation{sold(1, 1, 20)}, want: []protocol.Gap{gap(20, quantity.Never, 0)}},
		{name: "closed for good", now: 0, closed: []protocol.Reservation{closed(1, protocol.ForOwner, 0, quantity.Never, 0)}},
		{
			name: "a drain behind a lease", now: 0, sold: []protocol.Reservation{sold(1, 0, 20)},
			closed: []protocol.Reservation{closed(2, protocol.ForDrain, 10, 30, 0), closed(3, protocol.ForMaintenance, 40, 50, 0)},
			want:   []protocol.Gap{gap(30, 40, protocol.ForMaintenance), gap(50, quantity.Never, 0)},
		},
		{
			name: "serving hours up to the horizon", now: 0, more: true,
			closed: []protocol.Reservation{closed(1, protocol.ForServing, 1000, 2000, 1500*time.Second)},
			want: []protocol.Gap{
				gap(0, 1000, protocol.ForServing), gap(2000, 2500, protocol.ForServing), gap(3500, 4000, protocol.ForServing),
			},
		},
		{
			name: "round the clock", now: 0, more: true,
			closed: []protocol.Reservation{closed(1, protocol.ForServing, 0, 10, 10*time.Second)},
		},
		{
			name: "beyond the horizon", now: 0, more: true,
			closed: []protocol.Reservation{closed(1, protocol.ForDrain, 0, 4000, 0)},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var tl Timeline
			for _, r := range c.sold {
				tl.Insert(r)
			}
			for _, r := range c.closed {
				tl.Close(r)
			}
			got, more := tl.Gaps(c.now*s, hour, 2*time.Second, nil)
			if !slices.Equal(got, c.want) || more != c.more {
				t.Errorf("Gaps = %v, more %v; want %v, more %v", got, more, c.want, c.more)
			}
		})
	}
}

func TestAnOwnPlaceIsNoObstacle(t *testing.T) {
	var tl Timeline
	r := closed(1, protocol.ForRigid, 10, 20, 0)
	r.Job = "mine"
	tl.Close(r)
	for own, want := range map[job.ID]bool{"mine": true, "other": false, "": false} {
		if _, ok := tl.Free(0, 5*s, 15*s, own); ok != want {
			t.Errorf("free for %q: %v, want %v", own, ok, want)
		}
	}
}

func TestImpossibleTimeIsABug(t *testing.T) {
	for name, f := range map[string]func(*Timeline){
		"empty":          func(tl *Timeline) { tl.Insert(sold(1, 5, 5)) },
		"sold repeating": func(tl *Timeline) { tl.Insert(closed(1, protocol.ForLease, 0, 1, time.Minute)) },
		"closed empty":   func(tl *Timeline) { tl.Close(sold(1, 5, 5)) },
		"too often":      func(tl *Timeline) { tl.Close(protocol.Reservation{End: 1, Every: MinEvery - 1}) },
		"into itself":    func(tl *Timeline) { tl.Close(closed(1, protocol.ForServing, 0, 61, time.Minute)) },
		"too many": func(tl *Timeline) {
			for i := range quantity.Instant(Max + 1) {
				tl.Insert(sold(uint64(i), i, i+1))
			}
		},
		"too many closed": func(tl *Timeline) {
			for i := range quantity.Instant(Max + 1) {
				tl.Close(sold(uint64(i), i, i+1))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if _, broken := recover().(invariant.Broken); !broken {
					t.Error("no broken invariant")
				}
			}()
			f(new(Timeline))
		})
	}
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	var tl Timeline
	for i := range quantity.Instant(30) {
		tl.Insert(sold(uint64(i), 10*i, 10*i+5))
	}
	tl.Close(closed(100, protocol.ForServing, 0, 10, time.Minute))
	gaps := make([]protocol.Gap, 0, 256)
	ids := make([]uint64, 0, 8)
	i := quantity.Instant(30)
	n := testing.AllocsPerRun(200, func() {
		tl.Remove(uint64(i - 30))
		tl.Insert(sold(uint64(i), 10*i, 10*i+5))
		tl.Close(closed(101, protocol.ForDrain, 0, 1, 0))
		ids = tl.Past(2*s, ids[:0])
		tl.Reopen(ids[0])
		tl.Free(0, 0, 5*s, "")
		gaps, _ = tl.Gaps(0, time.Hour, time.Second, gaps[:0])
		i++
	})
	if n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// second marks what a brute-force timeline knows of one second.
type second struct{ sold, closed bool }

const span = 120

// TestAgainstBitmap throws random operations at a timeline and at one bit per second, and compares every answer.
func TestAgainstBitmap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tl Timeline
		live, shut := map[uint64]protocol.Reservation{}, map[uint64]protocol.Reservation{}
		var next uint64
		paint := func() (bits [span]second) {
			for _, r := range live {
				for i := r.Start / s; i < min(span, r.End/s); i++ {
					bits[i].sold = true
				}
			}
			for _, r := range shut {
				for i := range quantity.Instant(span) {
					d := i*s - r.Start
					if d >= 0 && r.Every > 0 {
						d %= quantity.Instant(r.Every)
					}
					if d >= 0 && d < r.End-r.Start {
						bits[i].closed = true
					}
				}
			}
			return bits
		}
		draw := func() (from, to quantity.Instant) {
			from = quantity.Instant(rapid.IntRange(0, span-2).Draw(t, "from"))
			return from, from + quantity.Instant(rapid.IntRange(1, min(25, span-1-int(from))).Draw(t, "length"))
		}
		anyID := func() uint64 { return rapid.Uint64Range(1, next+1).Draw(t, "id") }
		t.Repeat(map[string]func(*rapid.T){
			"insert": func(t *rapid.T) {
				from, to := draw()
				next++
				bits := paint()
				free := true
				for i := from; i < to; i++ {
					free = free && !bits[i].sold
				}
				r := sold(next, from, to)
				got, ok := tl.Insert(r)
				if ok != free {
					t.Fatalf("insert [%d,%d): %v, the bitmap says %v", from, to, ok, free)
				}
				if !ok && (live[got.ID] != got || got.Start >= r.End || r.Start >= got.End) {
					t.Fatalf("insert [%d,%d): %v is not in the way", from, to, got)
				}
				if ok {
					live[next] = r
				}
			},
			"close": func(t *rapid.T) {
				from, to := draw()
				next++
				r := closed(next, protocol.ForServing, from, to, 0)
				if rapid.Bool().Draw(t, "repeats") {
					r.Every = r.End.Sub(r.Start) + time.Duration(rapid.IntRange(0, 20).Draw(t, "pause"))*time.Second
				}
				tl.Close(r)
				shut[next] = r
			},
			"remove": func(t *rapid.T) {
				id := anyID()
				_, known := live[id]
				if got := tl.Remove(id); got != known {
					t.Fatalf("remove %d: %v, want %v", id, got, known)
				}
				delete(live, id)
			},
			"reopen": func(t *rapid.T) {
				id := anyID()
				_, known := shut[id]
				if got := tl.Reopen(id); got != known {
					t.Fatalf("reopen %d: %v, want %v", id, got, known)
				}
				delete(shut, id)
			},
			"move end": func(t *rapid.T) {
				id := anyID()
				r, known := live[id]
				end := quantity.Instant(rapid.IntRange(0, span-1).Draw(t, "end"))
				bits := paint()
				shorter := known && end*s < r.End && end*s > r.Start
				longer := known && end*s > r.End
				for i := r.End / s; longer && i < end; i++ {
					longer = !bits[i].sold
				}
				if got := tl.Truncate(id, end*s); got != shorter {
					t.Fatalf("truncate %d to %d: %v, want %v", id, end, got, shorter)
				}
				if !shorter {
					if _, got := tl.Extend(id, end*s); got != longer {
						t.Fatalf("extend %d to %d: %v, want %v", id, end, got, longer)
					}
				}
				if shorter || longer {
					r.End = end * s
					live[id] = r
				}
			},
			"past": func(t *rapid.T) {
				now := quantity.Instant(rapid.IntRange(0, span).Draw(t, "now")) * s
				got := tl.Past(now, nil)
				n := 0
				for id, r := range shut {
					if over := r.Every == 0 && r.End <= now; over {
						n++
						if !slices.Contains(got, id) {
							t.Fatalf("past(%d) lacks %d", now, id)
						}
					}
				}
				if n != len(got) {
					t.Fatalf("past(%d) = %v, want %d", now, got, n)
				}
			},
			"": func(t *rapid.T) {
				bits := paint()
				checkGaps(t, &tl, live, bits)
				checkFree(t, &tl, live, bits)
			},
		})
	})
}

func seconds(n quantity.Instant) time.Duration { return time.Duration(n) * time.Second }

// overdue says whether sold time is past its end at now and still there.
func overdue(live map[uint64]protocol.Reservation, now quantity.Instant) bool {
	for _, r := range live {
		if r.End <= now {
			return true
		}
	}
	return false
}

func checkGaps(t *rapid.T, tl *Timeline, live map[uint64]protocol.Reservation, bits [span]second) {
	now := quantity.Instant(rapid.IntRange(0, span-1).Draw(t, "now"))
	minimum := quantity.Instant(rapid.IntRange(0, 8).Draw(t, "minimum"))
	got, _ := tl.Gaps(now*s, seconds(span-1-now), seconds(minimum), nil)
	var in [span]bool
	for i, g := range got {
		if g.End.Sub(g.Start) < seconds(minimum) || (i > 0 && g.Start < got[i-1].End) {
			t.Fatalf("gap %d of %v is short or out of order", i, got)
		}
		for j := g.Start / s; j < min(span, g.End/s); j++ {
			in[j] = true
		}
	}
	late := overdue(live, now*s)
	for i := now; i < span-1; {
		j := i
		for j < span && !bits[j].sold && !bits[j].closed {
			j++
		}
		// A free run that reaches the edge of the bitmap may end just beyond it: only that it isn't offered late is known.
		want := !late && j-i >= minimum
		for k := i; k < j && k < span-1; k++ {
			if in[k] != want && (j < span || late) {
				t.Fatalf("second %d of the free run [%d,%d) is offered: %v, want %v (now %d, minimum %d): %v", k, i, j, in[k], want, now,
					minimum, got)
			}
		}
		for j < span && (bits[j].sold || bits[j].closed) {
			if in[j] {
				t.Fatalf("second %d is reserved and offered: %v", j, got)
			}
			j++
		}
		i = j
	}
}

func checkFree(t *rapid.T, tl *Timeline, live map[uint64]protocol.Reservation, bits [span]second) {
	now := quantity.Instant(rapid.IntRange(0, span-1).Draw(t, "at"))
	from := quantity.Instant(rapid.IntRange(0, span-2).Draw(t, "free from"))
	to := quantity.Instant(rapid.IntRange(int(from)+1, span-1).Draw(t, "free to"))
	want := !overdue(live, now*s)
	for i := from; i < to; i++ {
		want = want && !bits[i].sold && !bits[i].closed
	}
	if _, got := tl.Free(now*s, from*s, to*s, ""); got != want {
		t.Fatalf("free [%d,%d) at %d: %v, want %v", from, to, now, got, want)
	}
}

func BenchmarkLife(b *testing.B) {
	var tl Timeline
	for i := range quantity.Instant(30) {
		tl.Insert(sold(uint64(i), 10*i, 10*i+5))
	}
	gaps := make([]protocol.Gap, 0, 128)
	i := quantity.Instant(30)
	b.ReportAllocs()
	for b.Loop() {
		tl.Remove(uint64(i - 30))
		tl.Insert(sold(uint64(i), 10*i, 10*i+5))
		gaps, _ = tl.Gaps((10*i-290)*s, time.Hour, time.Second, gaps[:0])
		i++
	}
}
