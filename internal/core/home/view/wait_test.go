package view

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/foresight"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestThePlainEstimate of a wait is none where there is a window for everybody, else what those who wait take at the rate of late, and
// before there is a rate as long as if all were like this one.
func TestThePlainEstimate(t *testing.T) {
	s := newStand(Config{}, []int64{1024, 1024, 1024}, now, now, quantity.Never)
	for i := range 5 {
		s.adopt(t, needs(fmt.Sprint("before", i), 100, 0, 10))
	}
	j := s.adopt(t, needs("j", 100, time.Minute, 1))
	stranger := s.ledger.Book().Outsider(&protocol.Record{Job: "k", Spec: needs("k", 100, time.Minute, 1), Queue: "q"})
	expect := func(when string, mine, theirs time.Duration) {
		t.Helper()
		if a, b := s.Guess(now, j), s.Guess(now, stranger); a != mine || b != theirs {
			t.Errorf("%s: %v, and %v for one that is not here; want %v and %v", when, a, b, mine, theirs)
		}
	}
	expect("six wait for two slices", 3*time.Minute, 210*time.Second)
	s.open = 6
	expect("six wait, with six windows", 0, 210*time.Second)
	s.open = 7
	expect("six wait, with seven windows", 0, 0)
	s.open = 0
	for i := range 4 {
		var told foresight.Told
		s.Tell(&told, now.Add(-time.Hour), time.Minute)
		s.Begun(&told, now.Add(time.Duration(i-4)*10*time.Second))
	}
	expect("one begins every 10 s", time.Minute, 70*time.Second)
	broken := newStand(Config{}, []int64{1024}, quantity.Never)
	if got := broken.Guess(now, broken.adopt(t, needs("j", 100, time.Hour, 1))); got != foresight.Least {
		t.Errorf("without slices: %v", got)
	}
}
