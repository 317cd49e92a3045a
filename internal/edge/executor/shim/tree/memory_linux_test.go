package tree

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// python starts a program that may use the name fifo, whose other end nobody has open.
func python(t testing.TB, text string) (root Process, fifo string) {
	t.Helper()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("no python3 to fork with")
	}
	fifo = filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	return sh(t, `exec python3 -c "$PROGRAM"`, "PROGRAM=import os, time\nfifo = os.environ['FIFO']\n"+text, "FIFO="+fifo), fifo
}

// family waits until a process has so many descendants that have their 40 MiB resident, and returns all.
func family(t testing.TB, root Process, n int) (all []Member) {
	t.Helper()
	await(t, "the family", func() bool {
		all = append([]Member{{Process: root, Parent: os.Getpid()}}, Below(root.PID)...)
		big := 0
		for _, m := range all {
			if resident(m.PID) > 40<<20 {
				big++
			}
		}
		return len(all) == n+1 && big == n+1
	})
	return all
}

func TestMeterCountsSharedPagesOnce(t *testing.T) {
	// Four processes share 40 MiB that one of them made: what is resident counts it four times, the meter once.
	root, _ := python(t, `
data = bytearray(40 << 20)
for _ in range(3):
    if os.fork() == 0: break
time.sleep(60)`)
	all := family(t, root, 3)
	var sum int64
	for _, m := range all {
		sum += resident(m.PID)
	}
	m := Meter{Limit: 100 << 20}
	if used := m.Measure(all); sum < 140<<20 || used < 40<<20 || used > 90<<20 || m.Peak() != used {
		t.Errorf("used %d MiB, peak %d, resident together %d; want about 45", used>>20, m.Peak()>>20, sum>>20)
	}
}

func TestMeterCountsBorrowedMemoryOnce(t *testing.T) {
	// Until it calls exec, a child of posix_spawn lives in its parent's memory; opening the other end of a pipe holds it
	// there. This is how system(3) and popen(3) start programs.
	root, fifo := python(t, `
data = bytearray(40 << 20)
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, fifo, os.O_RDONLY, 0)])
time.sleep(60)`)
	all := family(t, root, 1)
	if !sameMemory(all[1].PID, all[1].Parent) {
		t.Skip("the kernel does not tell who shares an address space, or posix_spawn copies it here")
	}
	m := Meter{Limit: 64 << 20}
	if used := m.Measure(all); used < 40<<20 || used > 60<<20 {
		t.Errorf("used %d MiB; want about 45", used>>20)
	}
	w, err := os.OpenFile(fifo, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	await(t, "the spawned program to end", func() bool { return len(Below(root.PID)) == 0 })
}

func TestMeterAddsUpWhatIsNotShared(t *testing.T) {
	root, _ := python(t, `
os.fork()
os.fork()
data = bytearray(40 << 20)
time.sleep(60)`)
	all := family(t, root, 3)
	m := Meter{Limit: 100 << 20}
	if used := m.Measure(all); used < 160<<20 || used > 220<<20 {
		t.Errorf("used %d MiB; want about 180", used>>20)
	}
}

// BenchmarkMeter is what one look at four processes with 40 MiB in common costs: the cheap sum, and the exact one.
func BenchmarkMeter(b *testing.B) {
	root, _ := python(b, `
data = bytearray(40 << 20)
for _ in range(3):
    if os.fork() == 0: break
time.sleep(60)`)
	all := family(b, root, 3)
	b.Run("resident", func(b *testing.B) {
		m := Meter{peak: 1 << 40}
		for b.Loop() {
			m.Measure(all)
		}
	})
	b.Run("exact", func(b *testing.B) {
		for b.Loop() {
			exact(all)
		}
	})
}
