package supervisor

import (
	"log/slog"
	"os"
	"runtime"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// TestTheEndWaitsForNoLook: a look at a subjob that takes longer than its lease does not delay its end, and its cause is the deadline.
func TestTheEndWaitsForNoLook(t *testing.T) {
	runtime.LockOSThread() // the init ends with it
	defer runtime.UnlockOSThread()
	now := quantity.At(time.Now())
	dir := shim.Dir(t.TempDir())
	l := shim.Lease{Part: executor.Part{Range: job.Range{From: 0, To: 10}}, Start: now, End: now.Add(500 * time.Millisecond),
		Anchor: shim.AnchorAt(now), Program: executor.Program{Command: []string{"/bin/sleep", "1000"}, WorkDir: "/"}}
	if err := os.MkdirAll(dir.Output(), 0o700); err != nil {
		t.Fatal(err)
	}
	lock, err := dir.TryLock()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	s := &subjob{dir: dir, lock: lock, lease: l, log: slog.New(slog.DiscardHandler), terms: newTerms(&l), pause: time.Second}
	if s.child, err = startChild(dir, lock, &l); err != nil {
		t.Fatal(err)
	}
	if err := s.child.first(&l); err != nil {
		t.Fatal(err)
	}
	s.watch = newWatch(dir, &l, s.child)
	s.guarded(func() bool {
		const patience = time.Minute
		for until := time.Now().Add(patience); s.child.init.Alive(); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(until) {
				t.Errorf("it lives %v after the end of its lease, since somebody looks at it", patience)
				break
			}
		}
		return false
	})
	if said := s.accompany(); s.cause != job.DeadlineKilled || !s.forced || said.Signal == 0 {
		t.Errorf("it ended by %v (forced: %v), %+v", s.cause, s.forced, said)
	}
	s.end()
}
