package supervisor

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

// born starts the init of a lease with a command and returns what it says, to its end.
func born(t *testing.T, l *shim.Lease) (b *birth, said []word) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	if b, err = newBirth(shim.Dir(t.TempDir()), l, [groupFD + 1]*os.File{null, null, null, w, null}); err != nil {
		t.Fatal(err)
	}
	pid, err := b.fork()
	_ = w.Close()
	if err != nil {
		t.Fatal(err)
	}
	for {
		var w word
		if _, err := io.ReadFull(r, w.bytes()); err != nil {
			break
		}
		said = append(said, w)
		if w.Kind == exited && (w.Code != 0 || w.Signal != 0) { // it stays until what it has left was looked at
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	return b, said
}

// TestTheInitLivesBesideTheRuntime: it runs in the memory of a Go program that goes on meanwhile, collects garbage, grows stacks and
// makes threads. It does not touch any of that, and nothing touches what it needs.
func TestTheInitLivesBesideTheRuntime(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		var grow func(n int) int
		grow = func(n int) int {
			var room [512]byte
			if n == 0 {
				return int(room[0])
			}
			return grow(n-1) + int(room[n%512])
		}
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			_ = grow(100)
			garbage := make([][]byte, 100)
			for j := range garbage {
				garbage[j] = make([]byte, 16<<10)
			}
			if i%10 == 0 {
				runtime.GC()
			}
			runtime.Gosched()
		}
	}()
	for range 200 {
		_, said := born(t, &shim.Lease{Program: executor.Program{Command: []string{"sh", "-c", "exit 7"}, WorkDir: "/"}})
		if len(said) != 2 || said[0].Kind != running || said[1].Kind != exited || said[1].Code != 7 || said[1].Signal != 0 {
			t.Fatalf("the init said %+v, want that it runs and that it ended with 7", said)
		}
	}
	close(done)
	<-stopped
}

// TestWhatFailsIsNamed: whichever call of the init, or of what is to become the command, fails.
func TestWhatFailsIsNamed(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for name, c := range map[string]struct {
		lease shim.Lease
		kind  wordKind
		want  string
	}{
		"no such directory": {shim.Lease{Program: executor.Program{Command: []string{"/bin/true"}, WorkDir: "/no/such"}}, unready,
			"going to /no/such: no such file"},
		"no such program": {shim.Lease{Program: executor.Program{Command: []string{"/no/such"}, WorkDir: "/"}}, unstarted,
			"no file /no/such"},
		"no program": {shim.Lease{Program: executor.Program{Command: []string{"/etc/passwd"}, WorkDir: "/"}}, unstarted,
			"no permission to run /etc/passwd"},
	} {
		t.Run(name, func(t *testing.T) {
			b, said := born(t, &c.lease)
			if len(said) == 0 || said[0].Kind != c.kind {
				t.Fatalf("the init said %+v, want kind %d first", said, c.kind)
			}
			if err := b.explain(&c.lease, said[0]); !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// TestNothingIsMountedForTheMachine: without a mount namespace there is no init that mounts anything, whatever the lease says.
func TestNothingIsMountedForTheMachine(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	for _, iso := range []shim.Isolation{{Proc: true}, {Proc: true, Own: true}, {Proc: true, Own: true, UserNamespace: true}} {
		l := &shim.Lease{Program: executor.Program{Command: []string{"/bin/true"}, WorkDir: "/"}, Isolation: iso}
		b, err := newBirth(shim.Dir(t.TempDir()), l, [groupFD + 1]*os.File{null, null, null, null, null})
		if err != nil {
			t.Fatal(err)
		}
		if b.spaces != 0 || b.prepare.err == nil {
			t.Fatalf("%+v: namespaces %#x, error %v; want none, and an error", iso, b.spaces, b.prepare.err)
		}
		if pid, err := b.fork(); err == nil {
			t.Fatalf("%+v: there is an init, %d", iso, pid)
		}
	}
}

// TestNothingOfTheSupervisorsReachesTheCommand: no descriptor but the three, no signal that is blocked or ignored, and the limit of open
// files that the supervisor was started with.
func TestNothingOfTheSupervisorsReachesTheCommand(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	open, err := os.Open("/")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	if _, err := unix.FcntlInt(open.Fd(), unix.F_SETFD, 0); err != nil { // as a library might leave it
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	_, said := born(t,
		&shim.Lease{Program: executor.Program{Command: []string{"sh", "-c", "ls /proc/self/fd | wc -l >" + out + "; grep -E 'Sig(Blk)' " +
			"/proc/self/status >>" + out}, WorkDir: "/", Env: []string{"PATH=/bin:/usr/bin"}}})
	got, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("%v; the init said %+v", err, said)
	}
	// ls has the directory open besides the three.
	if want := "4\nSigBlk:\t0000000000000000\n"; strings.TrimLeft(string(got), " ") != want {
		t.Errorf("the command has %q, want %q", got, want)
	}
}

// TestTheLockIsHeldUntilTheInitIsGone, whoever else has let go of it: what an init that has not heard yet of its supervisor's end may
// still begin is found by nobody. The command does not hold it.
func TestTheLockIsHeldUntilTheInitIsGone(t *testing.T) {
	runtime.LockOSThread() // the init ends with it
	defer runtime.UnlockOSThread()
	dir := shim.Dir(t.TempDir())
	lock, err := dir.TryLock()
	if err != nil {
		t.Fatal(err)
	}
	shared, err := lock.Share(groupFD + 1)
	if err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = null.Close() }()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	seen := filepath.Join(t.TempDir(), "seen")
	b, err := newBirth(dir,
		&shim.Lease{Program: executor.Program{Command: []string{"sh", "-c", "ls -l /proc/$$/fd >" + seen + ".part; mv " + seen + ".part " +
			seen +
			"; exec sleep 100"}, WorkDir: "/", Env: []string{"PATH=" + os.Getenv("PATH")}}},
		[groupFD + 1]*os.File{null, null, null, w, shared})
	if err != nil {
		t.Fatal(err)
	}
	pid, err := b.fork()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []interface{ Close() error }{w, shared, lock} {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var text []byte // what the command has seen of itself
	for until := time.Now().Add(time.Minute); len(text) == 0 && time.Now().Before(until); time.Sleep(time.Millisecond) {
		text, _ = os.ReadFile(seen)
	}
	if len(text) == 0 || strings.Contains(string(text), filepath.Base(dir.Note())) {
		t.Errorf("the command has these files, want some and no lock:\n%s", text)
	}
	if _, err := dir.TryLock(); !shim.Held(err) {
		t.Errorf("while the init lives: %v, want that the lock is held", err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
	if again, err := dir.TryLock(); err != nil {
		t.Errorf("when the init is gone: %v", err)
	} else {
		_ = again.Close()
	}
}
