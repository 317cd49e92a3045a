package twin_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/lab/sim"
)

// TestEveryDisciplineComesToRest: however rigid jobs are planned, and however many of them wait for one another, every job
// comes to its end, and the places that are kept for them do not go back and forth: the simulator gives up on actors that
// go on for ever within one instant, and the oracle counts reservations.
func TestEveryDisciplineComesToRest(t *testing.T) {
	most := 0
	for _, name := range backfill.Names() {
		rigid, err := backfill.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(10) {
				p := park{nodes: 3, jobs: 150, seed: seed, gangs: true, rigid: rigid, gap: time.Minute}
				if seed%2 == 1 {
					p.network, p.faults = roughNetwork(), sim.Faults{Offset: 2 * time.Second, Drift: 100}
				}
				w, judge := p.play(t, 14*24*time.Hour)
				if ended := w.done[job.Finished] + w.done[job.Failed]; ended != p.jobs {
					t.Errorf("seed %d: jobs ended %v", seed, w.done)
				}
				if left := judge.leftover(); len(left) > 0 {
					t.Errorf("seed %d: the places %v are kept for nobody", seed, left)
				}
				if judge.reserved > 20*p.jobs {
					t.Errorf("seed %d: places were reserved %d times: they do not come to rest", seed, judge.reserved)
				}
				most = max(most, judge.reserved)
			}
		})
	}
	if most == 0 {
		t.Error("nobody waited for a place: the park shows nothing")
	}
}
