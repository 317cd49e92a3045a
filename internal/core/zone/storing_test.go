package zone_test

import (
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
)

// storing is a world in which the result of a job's only subjob is held back while its node says for so long that it stores what was left.
func storing(t *testing.T, says time.Duration) (w *world, end quantity.Instant, token job.Token, released func() bool) {
	w = newWorld(t, 1024)
	w.submit(items(t, "a", 20, 100, 1))
	for len(w.slices[0].runs) == 0 {
		w.tick()
	}
	first := w.slices[0].runs[0]
	token, end = first.m.Token, first.m.Body.(*protocol.Work).End
	w.lose = func(m *protocol.Message) bool {
		return m.Kind == protocol.Result && m.Token == token && w.now < end.Add(says)
	}
	for said := w.now; w.now < end.Add(says); w.tick() {
		if w.now.Sub(said) >= time.Second {
			said = w.now
			w.step(protocol.Message{
				Kind: protocol.Report, From: w.slices[0].at(),
				To:    protocol.Address{Role: protocol.Zone, ID: "z"},
				Token: token, Job: "a", Body: &protocol.Observation{Slice: "s0", Progress: 20, At: w.now, Storing: true},
			})
		}
	}
	return w, end, token, func() bool {
		for _, f := range w.facts {
			if f.Kind == protocol.Released && f.Token == token {
				return true
			}
		}
		return false
	}
}

// TestWhatIsBeingStoredIsWaitedFor: its node says so beyond the lease's end, and its result counts when it comes.
func TestWhatIsBeingStoredIsWaitedFor(t *testing.T) {
	w, _, _, released := storing(t, 5*time.Minute)
	w.until(time.Minute)
	finished(t, w, "a")
	if released() {
		t.Error("its claim was given up while its node stored what it left")
	}
}

// TestAStoreThatIsAwayForLongCostsAPieceOfWork: it is not waited for forever, and the work is sold again.
func TestAStoreThatIsAwayForLongCostsAPieceOfWork(t *testing.T) {
	w, _, _, released := storing(t, 12*time.Minute)
	if !released() {
		t.Error("its claim is unchanged, 12 minutes after its lease's end")
	}
	w.until(5 * time.Minute)
	finished(t, w, "a")
}
