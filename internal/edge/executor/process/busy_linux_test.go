package process_test

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/process"
)

// TestABusyMachineIsToldApart: a subjob that works beside more programs than there are processors says how long it waited for one, and
// never more than it ran.
func TestABusyMachineIsToldApart(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		for range 2 * runtime.NumCPU() {
			other := exec.Command("sh", "-c", "while :; do :; done")
			if err := other.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() {
				_ = other.Process.Kill()
				_ = other.Wait()
			}()
		}
		b := newBench(t, change)
		m := lease(5*time.Minute, "sh", "-c", "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done")
		if r := b.run(m, job.Done); r.Waited <= 0 || r.Waited > r.Ran() {
			t.Errorf("it waited %v of the %v that it ran", r.Waited, r.Ran())
		}
	})
}
