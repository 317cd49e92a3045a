package process_test

import (
	"fmt"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// TestNoSignalEndsTheInit has a command send its parent, the init of the subjob, every signal but those that Go leaves to
// the C library (32 to 34) and those nobody can catch. How the command ends must be known nevertheless.
func TestNoSignalEndsTheInit(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		b.do(lease(20*time.Second, "sh", "-c", `s=1; while [ $s -le 64 ]; do
			case $s in 9|19|32|33|34) ;; *) kill -$s $PPID || exit 3 ;; esac
			s=$((s+1))
		done
		sleep 0.2; exit 7`))
		b.next(protocol.Started)
		if r := b.next(protocol.Exited).Body.(*protocol.Conclusion).Result; r.Outcome != job.ExitFailed || r.ExitCode != 7 {
			t.Errorf("%+v, want exit 7 of the command", r)
		}
	})
}

// TestTheCommandIgnoresNoSignal, though its supervisor does. Those that Go leaves to the C library are as whoever started all of this
// has them: glibc's posix_spawn, which make uses, ignores 32 and 33.
func TestTheCommandIgnoresNoSignal(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		b.run(lease(time.Minute, "grep", "SigIgn", "/proc/self/status"), job.Done)
		var mask uint64
		const libc = 7 << 31
		got := shim.Tail(b.dir().Stdout(), 1, 100)
		if _, err := fmt.Sscanf(got, "SigIgn:\t%x", &mask); err != nil || mask&^libc != 0 {
			t.Errorf("the command has %q (%v)", got, err)
		}
	})
}
