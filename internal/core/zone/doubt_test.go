package zone_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
)

// TestASliceThatNobodyOffersIsNotDoubted: a zone comes up again while a node, on which it sold a slice to several jobs, is gone. What
// these ask there is not answered, time and again; a gang that fits another node begins all the same.
func TestASliceThatNobodyOffersIsNotDoubted(t *testing.T) {
	w := newWorld(t, 256, 512, 512)
	w.slices[0].node = "away"
	w.config.Skew = time.Minute // so long they are waited for
	w.z, w.twin = w.make(), &twin{}
	w.twin.restart(w)
	gone := false
	w.lose = func(m *protocol.Message) bool {
		return m.Kind == protocol.Result || gone && (m.To.ID == "away" || m.Kind == protocol.Offer && m.View.Slice.ID == "s0")
	}
	for i := range 4 {
		w.submit(rigid(t, fmt.Sprint("sold", i), 2*time.Second, 100, 1))
		for end := w.now.Add(4 * time.Second); w.now < end; {
			w.tick()
		}
	}
	gone = true
	w.restart()
	for end := w.now.Add(3 * time.Second); w.now < end; {
		w.tick()
	}
	w.submit(rigid(t, "gang", 10*time.Second, 400, 2))
	for end := w.now.Add(3 * time.Second); w.now < end; {
		w.tick()
	}
	if j, _ := w.z.Job(w.now, "gang"); j.Running != 1 {
		t.Errorf("the gang is %v: %s", j.State, j.Reason)
	}
}
