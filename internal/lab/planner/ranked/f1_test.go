package ranked

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/planner"
	"sluice.dev/sluice/internal/lab/planner/book"
)

// TestScore: log10(100) x 3 + 870 log10(1000) and its like, worked out by hand.
func TestScore(t *testing.T) {
	for _, c := range []struct {
		run       time.Duration
		devices   int32
		submitted time.Duration
		want      int64
	}{
		{100 * time.Second, 3, 1000 * time.Second, 2616_000_000},
		{time.Second, 8, 10 * time.Second, 870_000_000},
		{0, 8, 0, 0}, // both count as a second
		{10_000 * time.Second, 1, 100_000 * time.Second, 4354_000_000},
	} {
		if got := f1Score(int64(c.run), c.devices, c.submitted); got != c.want {
			t.Errorf("%v on %d devices after %v: %d, want %d", c.run, c.devices, c.submitted, got, c.want)
		}
	}
	if f1Score(book.Unknown, 1, time.Hour) <= f1Score(int64(time.Hour)*1e5, 512, 1e6*time.Hour) {
		t.Error("a task that nobody knows the run of goes before one of years")
	}
}

// TestSubmissionCountsFromTheFirst: whatever the time of day at which a log begins.
func TestSubmissionCountsFromTheFirst(t *testing.T) {
	r := f1Rule(planner.Cluster{})
	begin := quantity.Instant(1e18)
	at := func(after time.Duration) int64 {
		e := book.Entry{Task: planner.Task{Devices: 1, Classes: 1, Run: &[planner.MaxClasses]time.Duration{time.Second}},
			Since: begin.Add(after)}
		return r.First(e.Since, &e)
	}
	if got := [2]int64{at(0), at(100 * time.Second)}; got != [2]int64{0, 1740_000_000} {
		t.Errorf("the first and one after 100 s have %v", got)
	}
}
