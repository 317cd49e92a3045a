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
	return sh(t, `exec python3 -c "$PROGRAM"`, "PROGRAM="+prelude+text, "FIFO="+fifo), fifo
}

// prelude is what every program starts with. A process says that its data is there by a file: what is resident passes
// 40 MiB before the last page is filled, because Python itself has some.
const prelude = `import os, time
fifo = os.environ['FIFO']
def filled(): open(fifo + '.' + str(os.getpid()), 'w').close()
`

// family waits until a process has so many descendants and so many of all have filled their data, and returns all.
func family(t testing.TB, root Process, fifo string, n, filled int) (all []Member) {
	t.Helper()
	await(t, "the family", func() bool {
		all = append([]Member{{Process: root, Parent: os.Getpid()}}, Below(root.PID)...)
		said, err := filepath.Glob(fifo + ".*")
		return err == nil && len(all) == n+1 && len(said) == filled
	})
	return all
}

func TestMeterCountsSharedPagesOnce(t *testing.T) {
	// Four processes share 40 MiB that one of them made: what is resident counts it four times, the meter once.
	root, fifo := python(t, `
data = bytearray(40 << 20)
filled()
for _ in range(3):
    if os.fork() == 0: break
time.sleep(60)`)
	all := family(t, root, fifo, 3, 1)
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
filled()
os.posix_spawn("/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, fifo, os.O_RDONLY, 0)])
time.sleep(60)`)
	all := family(t, root, fifo, 1, 1)
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
	root, fifo := python(t, `
os.fork()
os.fork()
data = bytearray(40 << 20)
filled()
time.sleep(60)`)
	all := family(t, root, fifo, 3, 4)
	m := Meter{Limit: 100 << 20}
	if used := m.Measure(all); used < 160<<20 || used > 220<<20 {
		t.Errorf("used %d MiB; want about 180", used>>20)
	}
}

// BenchmarkMeter is what one look at four processes with 40 MiB in common costs: the cheap sum, and the exact one.
func BenchmarkMeter(b *testing.B) {
	root, fifo := python(b, `
data = bytearray(40 << 20)
filled()
for _ in range(3):
    if os.fork() == 0: break
time.sleep(60)`)
	all := family(b, root, fifo, 3, 1)
	b.Run("resident", func(b *testing.B) {
		m := Meter{peak: 1 << 40}
		for b.Loop() {
			m.Measure(all)
		}
	})
	b.Run("exact", func(b *testing.B) {
		for b.Loop() {
			(&Meter{}).exact(all, 0)
		}
	})
}
