package auction

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/atomizer"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/market/markettest"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/policy/deadline"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// urgent is a market under the objective deadline with a slice, and a job for each deadline, which is so long after now; none for 0. All
// their other features are alike.
func urgent(t *testing.T, now quantity.Instant, plain bool, due ...time.Duration) *world {
	t.Helper()
	w := newWorld(deadline.Policy{}, Config{})
	if plain {
		w = newPlainWorld(deadline.Policy{}, Config{}, starvation.Limit{}, time.Hour)
	}
	w.offer("s", 10, 1000, protocol.Gap{Start: now, End: quantity.Never})
	for i, d := range due {
		s := markettest.Spec(t, 1)
		s.Name, s.Deadline = job.ID(rune('a'+i)), quantity.Never
		if d > 0 {
			s.Deadline = now.Add(d)
		}
		w.submit(markettest.Job{Of: s, Came: now.Add(-time.Hour)})
	}
	return w
}

// TestTheObjectiveDeadlineServesDeadlines: of jobs that are alike the one with the least slack is sold the window, by days as by minutes;
// one whose deadline is out of reach is behind those that can be in time.
func TestTheObjectiveDeadlineServesDeadlines(t *testing.T) {
	for _, c := range []struct {
		due  []time.Duration
		want job.ID
	}{
		{[]time.Duration{0, 30 * time.Hour, 31 * time.Hour}, "b"},
		{[]time.Duration{3 * time.Hour, 0, 130 * time.Minute}, "c"},
		{[]time.Duration{20 * time.Minute, 0, 40 * time.Hour}, "c"}, // it runs for 84 minutes at least
	} {
		now := quantity.Instant(1e15)
		w := urgent(t, now, false, c.due...)
		w.run(now)
		if len(w.seller.Sold) != 1 || w.jobs[c.want[0]-'a'].Busy() != 1 {
			t.Errorf("deadlines after %v: %q is sold, want a piece of %s", c.due, w.seller.Sold, c.want)
		}
	}
}

// TestWhatRunsIsNotTakenForWorkToBeDone: a subjob goes on for a deadline that it keeps if it does, though that would be out of reach with
// the work before it still to be done.
func TestWhatRunsIsNotTakenForWorkToBeDone(t *testing.T) {
	for _, plainly := range []bool{false, true} {
		now := quantity.Instant(1e15)
		w := urgent(t, now, plainly, 120*time.Minute, 200*time.Hour) // of 85 minutes of work, a margin beside
		w.parts.Index.Refresh(now)
		j, s := w.jobs[0], w.slices[0]
		j.Demand.(*markettest.Job).Claimed = job.Ranges{{To: 2500}}
		claim := &protocol.Claim{Sale: protocol.Sale{Placement: protocol.Placement{Range: job.Range{To: 2500}, Start: now.Add(-time.Minute),
			End: now.Add(51 * time.Minute)}, Speed: 1000}}
		more := &atomizer.Piece{Range: job.Range{From: 2500, To: 4000}, Run: 25 * time.Minute, Wall: 26 * time.Minute,
			Length: 27 * time.Minute}
		if spare := w.parts.Est.Laxity(j, s.Class(), claim.End); spare >= 0 {
			t.Fatalf("with %v to spare nothing is seen of what runs", spare)
		}
		if other := w.displaces(now, j, s, claim, quantity.Never, more); other != nil {
			t.Errorf("plainly %v: %s gets the window behind it", plainly, other.Name())
		}
	}
}
