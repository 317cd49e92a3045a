package airlock

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestWhoGoesOnTakesItsRoom: what it has outside comes back, and nobody else goes on into that.
func TestWhoGoesOnTakesItsRoom(t *testing.T) {
	for _, parked := range []quantity.Amount{8 * gib, 4 * gib} {
		s := Snapshot{Capacity: 100 * gib, Used: 80 * gib, Tasks: []Task{
			{Token: job.Token{Epoch: 1, Seq: 1}, Start: 1, State: Resuming, Parked: parked, Entries: 1},
			{Token: job.Token{Epoch: 1, Seq: 2}, Start: 1, State: Suspended, Parked: 5 * gib, Since: t0.Add(-time.Second), Entries: 1},
		}}
		d := New(Config{}).Decide(t0, &s)
		if goes := len(d.Actions) == 1 && d.Actions[0].Step == Resume; goes != (parked == 4*gib) || !goes && len(d.Actions) > 0 {
			t.Errorf("%d GiB are to come back, and 92 may be used: %v", (parked+5*gib)/gib, d)
		}
	}
}

// TestWhatIsOutsideTakesItsRoom: at most half of the memory is outside, however much swap there is.
func TestWhatIsOutsideTakesItsRoom(t *testing.T) {
	s := Snapshot{Capacity: 100 * gib, Used: 93 * gib, Room: 60 * gib, Tasks: []Task{
		{Token: job.Token{Epoch: 1, Seq: 1}, Start: 1, State: Suspended, Parked: 48 * gib, Since: t0.Add(-time.Second), Entries: 1},
		{Token: job.Token{Epoch: 1, Seq: 2}, Start: 1, Resident: 20 * gib},
	}}
	if d := New(Config{}).Decide(t0, &s); d.Room != 2*gib || len(d.Actions) != 1 || d.Actions[0].Step != Suspend ||
		d.Actions[0].Relief != 2*gib {
		t.Errorf("48 of 50 GiB are outside: %v", d)
	}
}
