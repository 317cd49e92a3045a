package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
)

// TestAPauseIsNoNeglect: a machine was paused, and by the executor's clock the lease has been over for an hour. Its supervisor has had no
// moment to see that, so it is not killed for it, and what the subjob does counts.
func TestAPauseIsNoNeglect(t *testing.T) {
	var ahead atomic.Int64
	b := newBench(t, func(o *process.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	may := filepath.Join(t.TempDir(), "may-end")
	b.do(lease(patience, "sh", "-c", fmt.Sprintf("until [ -e %q ]; do sleep 0.05; done", may)))
	b.next(protocol.Started)
	ahead.Store(int64(time.Hour))
	time.Sleep(time.Second) // several looks at it
	if err := os.WriteFile(may, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := b.next(protocol.Exited).Body.(*protocol.Conclusion).Result; r.Outcome != job.Done || r.Progress != 10 {
		t.Errorf("it ended %+v, want it done", r)
	}
}

// TestASupervisorThatIsSeenToNeglectItsSubjobIsKilled, once it has been looked at for so long: the clock may be right after all.
func TestASupervisorThatIsSeenToNeglectItsSubjobIsKilled(t *testing.T) {
	var ahead atomic.Int64
	b := newBench(t, func(o *process.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	b.do(lease(time.Hour, "sleep", "1000"))
	b.next(protocol.Started)
	ahead.Store(int64(2 * time.Hour))
	if r := b.next(protocol.Exited).Body.(*protocol.Conclusion).Result; r.Outcome != job.Lost {
		t.Errorf("it ended %+v, want it lost", r)
	}
}
