package view

import (
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/market/explain"
	"sluice.dev/sluice/internal/core/market/trust"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestEveryReasonHasWordsOfItsOwn: no cause of waiting is told in the words of another, or of none.
func TestEveryReasonHasWordsOfItsOwn(t *testing.T) {
	for _, c := range []Config{{}, {Trust: &trust.Settings{}}} {
		s := newStand(c, []int64{1024}, now)
		j := s.adopt(t, needs("j", 100, 0, 10))
		said := map[string]explain.Reason{}
		for r := explain.Eligible; r <= explain.Aside; r++ {
			text := s.Sentence(j, &explain.Cause{Reason: r})
			if before, known := said[text]; known {
				t.Errorf("reasons %d and %d are both %q", before, r, text)
			}
			said[text] = r
		}
	}
}

// TestAReservedPlaceIsSaidFirst: before what rounds have refused it for, and after what keeps it from every place.
func TestAReservedPlaceIsSaidFirst(t *testing.T) {
	s := newStand(Config{}, []int64{1024}, now)
	j := s.adopt(t, needs("j", 100, time.Minute, 1))
	s.counts.Several(explain.InLine, 3, now)
	if why := s.why(now, j); !strings.HasPrefix(why, "(Priority) rigid jobs start in order") {
		t.Errorf("who was asked: %q", why)
	}
	s.reserved = "j"
	if why := s.why(now, j); why != "(Resources) reserved on s0 in 1m0s" {
		t.Errorf("with a place: %q", why)
	}
	j.Paused = true
	if why := s.why(now, j); why != "paused by its owner" {
		t.Errorf("paused: %q", why)
	}
	none := newStand(Config{}, []int64{1024}, quantity.Never)
	if why := none.why(now, none.adopt(t, needs("j", 100, 0, 1))); why != "no slice is usable: it is broken" {
		t.Errorf("without slices: %q", why)
	}
	e, ok := s.Explain(now, "j")
	if !ok || len(e.Reasons) != 1 || e.Reasons[0].Count != 3 || len(e.Slices) != 1 || !e.Slices[0].Fits {
		t.Errorf("explained: %+v", e)
	}
}

// TestLengthsAreSaidShortly without what is 0, and ranges of them as one where they say the same.
func TestLengthsAreSaidShortly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		3 * time.Minute: "3m", 90 * time.Second: "1m30s", 2 * time.Hour: "2h", 2*time.Hour + time.Minute: "2h1m",
		1499 * time.Millisecond: "1s", 0: "0s",
	} {
		if got := brief(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	for _, c := range []struct {
		early, late time.Duration
		want        string
	}{
		{0, 999 * time.Millisecond, "within a second"}, {61 * time.Second, 61*time.Second + 200*time.Millisecond, "in about 1m1s"},
		{time.Minute, time.Hour, "within 1m to 1h"}, {-time.Minute, time.Hour, "within 0s to 1h"},
	} {
		if got := within(now, now.Add(c.early), now.Add(c.late)); got != c.want {
			t.Errorf("from %v to %v is %q, want %q", c.early, c.late, got, c.want)
		}
	}
}
