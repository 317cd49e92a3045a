package measure

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/lab/workload"
)

// TestLeftoverByHand: two slices, of weight 1000 and 500, over [100, 200) s. The gaps are [100, 150) and [190, 200) of the first and
// [100, 105) of the second; with a cost of 10 s, 40 s are usable, of the large one.
func TestLeftoverByHand(t *testing.T) {
	at := func(s int) quantity.Instant { return quantity.Instant(s) * quantity.Instant(time.Second) }
	l := NewLeftover(Window{From: at(100), To: at(200)}, []int64{1000, 500},
		[]Gap{{0, at(100), at(150)}, {0, at(190), at(200)}, {1, at(100), at(105)}},
		[][]quantity.Instant{{at(150)}, {at(105), at(300)}}, 10*time.Second)
	l.Arrived(at(0), 0, &workload.Job{})
	l.Began(at(90), 0, 0, 1) // nobody waits until 110
	l.Arrived(at(110), 1, &workload.Job{})
	// 20 of its 60 s are before the window or none of it: of 30 s useful and 6 s overhead within [90, 150) the window has 25 and 5.
	l.Ended(at(150), &Piece{Slot: 0, First: 0, Slices: 1, Start: at(90), End: at(150), Useful: 30 * time.Second, Overhead: 6 * time.Second})
	// It holds the second slice 3 s into the host's time.
	l.Began(at(150), 1, 0, 1)
	l.Ended(at(153), &Piece{Slot: 1, First: 1, Slices: 1, Start: at(100), End: at(108), Useful: 8 * time.Second})
	l.Done(at(180), 1, job.Finished)
	l.Done(at(190), 0, job.Finished) // nobody waits from then on
	var m Metrics
	l.Set(&m)
	for name, want := range map[string]float64{
		LeftoverUseful: (25 + 8*.5) / 40, LostWork: 20 / (20 + 25 + 4.), HostDelayMean: 3. / 2, GapMean: 65. / 3, Gaps: 3, BacklogDry: .2,
	} {
		if got := m.Get(name); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("%s is %g; want %g", name, got, want)
		}
	}
}
