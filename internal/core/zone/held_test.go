package zone_test

import (
	"slices"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/backfill"
	"sluice.dev/sluice/internal/core/market/starvation"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// TestWhatACancelledGangHeldIsTheNextOnes: of two late gangs one place is held at a time. When the one that holds it is cancelled, the
// other is given one, and the plain zone, to which it is just as gone, says the same.
func TestWhatACancelledGangHeldIsTheNextOnes(t *testing.T) {
	w := newWorld(t, 512, 512)
	w.config.Rigid = backfill.Discipline{Overtake: true}
	w.config.Starvation = starvation.Limit{After: 20 * time.Second, Slowdown: 1, Share: 1000, Places: 1}
	w.z, w.twin = w.make(), &twin{}
	w.twin.restart(w)
	w.submit(rigid(t, "one", 5*time.Minute, 400, 1), rigid(t, "two", 6*time.Minute, 400, 1))
	w.tick()
	w.submit(rigid(t, "first", 10*time.Second, 400, 2), rigid(t, "second", 10*time.Second, 400, 2))
	holds := func() (of []string) {
		for _, s := range w.slices {
			for _, r := range s.busy {
				if r.Kind == protocol.ForRigid {
					of = append(of, string(r.Job))
				}
			}
		}
		return of
	}
	until := func(at time.Duration) {
		for w.now < quantity.Instant(at) {
			w.tick()
		}
	}
	until(time.Minute)
	if got := holds(); !slices.Equal(got, []string{"first", "first"}) {
		t.Fatalf("places are held for %v", got)
	}
	w.step(protocol.Message{Kind: protocol.Cancel, Job: "first", Epoch: 1, Body: &protocol.Cancellation{Text: "cancelled"}})
	until(70 * time.Second)
	if got := holds(); !slices.Equal(got, []string{"second", "second"}) {
		t.Errorf("after it is cancelled places are held for %v", got)
	}
}
