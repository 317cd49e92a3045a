package window

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/trp"
)

type fakeSupply struct {
	name   job.SliceID
	usable bool
	gaps   []protocol.Gap
}

func (s *fakeSupply) Name() job.SliceID            { return s.name }
func (s *fakeSupply) Node() job.NodeID             { return "n" }
func (s *fakeSupply) Usable() bool                 { return s.usable }
func (s *fakeSupply) Resident() *protocol.Resident { return nil }

func (s *fakeSupply) Safe(quantity.Instant) quantity.Instant { return quantity.Never }
func (s *fakeSupply) Unsold(now quantity.Instant, out []protocol.Gap) []protocol.Gap {
	return append(out[:0], since(now, s.gaps)...)
}

// TestWindowsAreThoseOfTheGaps: whatever comes, changes and opens, a board that looks at what is dirty has the windows that all gaps of at
// least minWindow make, its slices in order, and wakes when the next one opens. A window keeps its id as long as only time passes.
func TestWindowsAreThoseOfTheGaps(t *testing.T) {
	const minWindow = 10 * time.Second
	rapid.Check(t, func(t *rapid.T) {
		b, now := NewBoard(minWindow), quantity.Instant(1e12)
		var all []*Slice
		worth := int64(0)
		place := func(s *Slice) {
			c, _ := b.ClassOf(&protocol.Slice{
				Capacity: trp.Vector{quantity.Amount(rapid.Int64Range(1, 3).Draw(t, "gib") << 30)},
				Speed:    rapid.SampledFrom([]int64{500, 1000}).Draw(t, "speed"),
			})
			_, more := b.Place(s, c)
			worth += more
			b.Invalidate(s)
		}
		for range rapid.IntRange(1, 40).Draw(t, "events") {
			switch kind := rapid.IntRange(0, 4).Draw(t, "what"); {
			case kind == 0 || len(all) == 0:
				s := &Slice{Supply: &fakeSupply{name: job.SliceID(fmt.Sprint("s", rapid.IntRange(0, 99).Draw(t, "name"), "-", len(all))),
					usable: true}}
				place(s)
				all = append(all, s)
			case kind == 1:
				s := rapid.SampledFrom(all).Draw(t, "slice")
				s.Supply.(*fakeSupply).usable = rapid.Bool().Draw(t, "usable")
				place(s)
			default:
				s := rapid.SampledFrom(all).Draw(t, "slice")
				var gaps []protocol.Gap
				at := now
				for range rapid.IntRange(0, 3).Draw(t, "gaps") {
					at = at.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "after")) * time.Second)
					end := at.Add(time.Duration(rapid.IntRange(1, 60).Draw(t, "length")) * time.Second)
					gaps, at = append(gaps, protocol.Gap{Start: at, End: end}), end.Add(time.Second)
				}
				s.Supply.(*fakeSupply).gaps = gaps
				b.Invalidate(s)
			}
			before := map[*Slice][]Window{}
			for _, s := range all {
				before[s] = slices.Clone(s.windows)
			}
			b.Advertise(now)
			opens, usable, open := quantity.Never, int64(0), 0
			for _, s := range all {
				if s.Usable() {
					usable += s.class.Speed
				}
				var want []protocol.Gap
				for _, g := range s.Supply.Unsold(now, nil) {
					if g.End.Sub(g.Start) >= minWindow {
						want = append(want, g)
					}
				}
				if len(want) != len(s.windows) {
					t.Fatalf("%s has windows %+v of gaps %+v", s.Name(), s.windows, want)
				}
				for i := range want {
					w := &s.windows[i]
					if max(now, w.start) != want[i].Start || w.end != want[i].End {
						t.Fatalf("%s has windows %+v of gaps %+v", s.Name(), s.windows, want)
					}
					if want[i].Start > now {
						opens = min(opens, want[i].Start)
					}
					for _, o := range before[s] {
						if same := o.end == w.end && o.start <= now && w.start <= now; same != (o.id == w.id) && o.start <= now {
							t.Fatalf("the window that ends at %d is %d, before it was %+v", w.end, w.id, o)
						}
					}
				}
				if s.Begun(now) {
					open++
				}
			}
			if b.Wake() != opens || b.Open() != open || usable != worth {
				t.Fatalf("it wakes at %d with %d open, worth %d; want %d, %d and %d", b.Wake(), b.Open(), worth, opens, open, usable)
			}
			if wrong := b.Audit(now); len(wrong) > 0 {
				t.Fatalf("%q", wrong)
			}
			for i := b.InTurn(0); i >= 0; i = b.InTurn(i + 1) {
				b.Done(b.slices[i])
			}
			now = now.Add(time.Duration(rapid.IntRange(0, 30).Draw(t, "later")) * time.Second)
			for _, s := range slices.Clone(b.Turning(now)) {
				b.Invalidate(s)
			}
		}
	})
}
