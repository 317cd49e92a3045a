package snapshots

import (
	"testing"
	"testing/synctest"

	"sluice.dev/sluice/internal/core/capture"
	"sluice.dev/sluice/internal/core/protocol"
)

// TestTheLoopWaitsForASlowWriter once much has changed ahead of its turn, rather than hold all of it.
func TestTheLoopWaitsForASlowWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		run := &many{early: mostEarly + 1}
		w := &writer{full: make(chan captured, rooms), free: make(chan []protocol.Fact, rooms), done: make(chan error, 1)}
		s := &Snapshots{taking: &snapshotting{writer: w, runs: []capture.Run{run}, left: 1}}
		through := false
		go func() { _ = s.Turn(); through = true }()
		synctest.Wait()
		if through {
			t.Error("it went on without room")
		}
		w.free <- nil
		synctest.Wait()
		if !through || run.early != 0 {
			t.Errorf("through %v, %d facts are held", through, run.early)
		}
		if s.Turn() != nil || run.taken != 1 {
			t.Error("with little to hold it waited for room, or took without")
		}
	})
}

// many is a capture that holds facts.
type many struct{ early, taken int }

func (m *many) Early() int { return m.early }
func (m *many) Release()   {}
func (m *many) Take(_ int, out []protocol.Fact) ([]protocol.Fact, bool) {
	m.early = 0
	m.taken++
	return out, false
}
