package process_test

import (
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
		if r := b.next(protocol.Exited).Result; r.Outcome != job.ExitFailed || r.ExitCode != 7 {
			t.Errorf("%+v, want exit 7 of the command", r)
		}
	})
}

// TestTheCommandIgnoresNoSignal, though its supervisor does.
func TestTheCommandIgnoresNoSignal(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		b.run(lease(time.Minute, "grep", "SigIgn", "/proc/self/status"), job.Done)
		if got := shim.Tail(b.dir().Stdout(), 1, 100); got != "SigIgn:\t0000000000000000" {
			t.Errorf("the command has %q", got)
		}
	})
}
