package process_test

import (
	"os"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/process"
)

// TestASubjobEndsWithItsRunDirectory: somebody removes the data directory while the daemon is away. Nobody could ever learn of
// what runs there, nor stop it: a lease without an end would go on for ever.
func TestASubjobEndsWithItsRunDirectory(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		for name, start := range map[string]time.Duration{"running": 0, "not yet started": time.Hour} {
			t.Run(name, func(t *testing.T) {
				b := newBench(t, change)
				m := lease(time.Minute, "sleep", "1000")
				m.Body.(*protocol.Work).Start, m.Body.(*protocol.Work).End = m.Body.(*protocol.Work).Start.Add(start), quantity.Never
				b.do(m)
				if start == 0 {
					b.next(protocol.Started)
				}
				b.await("its supervisor", func() bool { _, err := b.dir().ReadNote(); return err == nil })
				if err := b.ex.Close(); err != nil {
					t.Fatal(err)
				}
				// It may still be writing there when the folder is being emptied.
				b.await("the data directory to go", func() bool { return os.RemoveAll(b.o.DataDir) == nil })
				b.await("everything to end", func() bool { return len(living(b.o.DataDir)) == 0 })
			})
		}
	})
}
