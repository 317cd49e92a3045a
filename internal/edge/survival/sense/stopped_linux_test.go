package sense

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/survival"
)

// TestWhoWaitsInTheKernelCountsAsStopped: it was seen waiting there (D), and stops on its way back, as it has by now.
func TestWhoWaitsInTheKernelCountsAsStopped(t *testing.T) {
	cmd := exec.Command("sleep", "3600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	pid := cmd.Process.Pid
	if err := unix.Kill(pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	if _, err := unix.Wait4(pid, &status, unix.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("it has status %v: %v", status, err)
	}
	w := NewWalker(4)
	for state, want := range map[byte]bool{'T': true, 't': true, 'D': true, 'R': false, 'S': false} {
		if got := w.Stopped(&Process{PID: pid, State: state}); got != want {
			t.Errorf("seen as %c, which is to stand: %v", state, got)
		}
	}
}

// TestStallsAreInThousandths of the time, of the line that is asked for.
func TestStallsAreInThousandths(t *testing.T) {
	var some, full survival.Rate
	var s, f int64
	for i := range 20 {
		text := fmt.Appendf(nil, "some avg10=1.00 avg60=2.00 avg300=3.00 total=%d\nfull avg10=1.00 avg60=2.00 avg300=3.00 total=%d\n",
			7_000_000+i*50_000, 3_000_000+i*10_000)
		now := time.Hour + time.Duration(i)*250*time.Millisecond
		s, f = stalled(&some, now, text, "some "), stalled(&full, now, text, "full ")
	}
	if s != 200 || f != 40 {
		t.Errorf("a fifth of the time is %d, a twenty-fifth %d", s, f)
	}
}

// TestSoonIsTwoSecondsAhead: one that grows, and is less full then than the machine is now, is not the shortest.
func TestSoonIsTwoSecondsAhead(t *testing.T) {
	k := newKernel(t, "a")
	k.machine(100 << 10 * mib)
	k.group("a", "memory.max", 1000*mib)
	for i := range 8 {
		k.group("a", "memory.current", (10+25*quantity.Amount(i))*mib)
		if m := k.sense(); m.Capacity != 200<<10*mib {
			t.Errorf("look %d: %d MiB are the shortest", i, m.Capacity/mib)
		}
	}
}

// TestWhatIsSharedInNoFileCounts: it can't be had from a process without ending it.
func TestWhatIsSharedInNoFileCounts(t *testing.T) {
	shared, err := unix.Mmap(-1, 0, int(64*mib), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(shared) }()
	for i := 0; i < len(shared); i += 4096 {
		shared[i] = 1
	}
	if resident, swapped := NewWalker(4).Memory(unix.Getpid()); resident+swapped < 64*mib {
		t.Errorf("with 64 MiB that are shared it has %d MiB and %d in swap", resident/mib, swapped/mib)
	}
}
