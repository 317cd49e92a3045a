package view

import (
	"fmt"
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/core/status"
)

// TestOpeningsLoseNobody: what is left of the gaps of a class lets a piece of any length begin when the first of all gaps that are as long
// does, and none is left that another beats.
func TestOpeningsLoseNobody(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var gaps, kept []protocol.Gap
		for i := range rapid.IntRange(1, 12).Draw(rt, "gaps") {
			g := protocol.Gap{Start: quantity.Instant(rapid.IntRange(0, 6).Draw(rt, fmt.Sprint("start ", i)))}
			if g.End = quantity.Never; rapid.IntRange(0, 4).Draw(rt, fmt.Sprint("end of ", i)) > 0 {
				g.End = g.Start.Add(time.Duration(rapid.IntRange(1, 6).Draw(rt, fmt.Sprint("length ", i))))
			}
			gaps, kept = append(gaps, g), widen(kept, g)
		}
		first := func(list []protocol.Gap, need time.Duration) quantity.Instant {
			at := quantity.Never
			for i := range list {
				if length(&list[i]) >= need {
					at = min(at, list[i].Start)
				}
			}
			return at
		}
		for _, need := range []time.Duration{1, 2, 3, 4, 5, 6, 7, math.MaxInt64} {
			if got, want := first(kept, need), first(gaps, need); got != want {
				rt.Fatalf("a piece of %d may begin at %d in %v, and at %d in %v", need, want, gaps, got, kept)
			}
		}
		for i := 1; i < len(kept); i++ {
			if kept[i-1].Start >= kept[i].Start || length(&kept[i-1]) >= length(&kept[i]) {
				rt.Fatalf("of %v is left %v, with one that another beats", gaps, kept)
			}
		}
	})
}

// TestAPageLooksForAPlaceOnce for all rigid jobs that need the same, however many they are, and for no more than a bounded number of
// others. What is kept for a job by the plan is not looked for.
func TestAPageLooksForAPlaceOnce(t *testing.T) {
	many := make([]int64, searchedSlices/4)
	from := make([]quantity.Instant, len(many))
	for i := range many {
		many[i], from[i] = 1024, now
	}
	s := newStand(Config{}, many, from...)
	s.found = Place{Start: now.Add(time.Hour), Speed: 500}
	for i := range 50 {
		s.adopt(t, needs(fmt.Sprintf("alike%02d", i), 100, time.Minute, 1))
	}
	s.places["alike07"] = Place{Start: now.Add(time.Minute), Speed: 1000}
	page := s.Page(now, status.JobQuery{})
	if s.searches != 1 || len(page.Jobs) != 50 {
		t.Fatalf("%d searches for %d jobs that are alike", s.searches, len(page.Jobs))
	}
	for _, j := range page.Jobs {
		want := now.Add(time.Hour)
		if j.Name == "alike07" {
			want = now.Add(time.Minute)
		}
		if j.StartEarly < want || j.Name == "alike07" && j.StartLate != want {
			t.Errorf("%s is to start from %v to %v, its place is from %v on", j.Name, j.StartEarly.Sub(now), j.StartLate.Sub(now),
				want.Sub(now))
		}
	}
	for i := range 50 {
		s.adopt(t, needs(fmt.Sprintf("other%02d", i), 100, time.Duration(i+2)*time.Minute, 1))
	}
	if s.searches = 0; len(s.Page(now, status.JobQuery{}).Jobs) != 100 || s.searches != 4 {
		t.Errorf("%d searches of %d slices each on one page, want 4", s.searches, len(many))
	}
}

// TestAJobMayBeginWhereItFits: not at the first gap, but at the first on a slice that holds it.
func TestAJobMayBeginWhereItFits(t *testing.T) {
	s := newStand(Config{}, []int64{512, 2048, 4096}, now, now.Add(time.Minute), quantity.Never)
	small, large, huge := s.adopt(t, needs("small", 100, 0, 10)), s.adopt(t, needs("large", 1000, 0, 10)),
		s.adopt(t, needs("huge", 3000, 0, 10))
	l := s.look(now)
	if at, ok := l.nextStart(small); !ok || at != now {
		t.Errorf("the small one: %v, %v", at.Sub(now), ok)
	}
	if at, ok := l.nextStart(large); !ok || at != now.Add(time.Minute) {
		t.Errorf("the large one: %v, %v", at.Sub(now), ok)
	}
	if at, ok := l.nextStart(huge); ok {
		t.Errorf("the one that fits the broken slice alone: %v", at.Sub(now))
	}
}
