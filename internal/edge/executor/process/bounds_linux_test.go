package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/trp"
	"sluice.dev/sluice/internal/edge/executor/process"
	"sluice.dev/sluice/internal/edge/executor/shim"
)

func TestTooManyProcesses(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, func(o *process.Options) {
			change(o)
			o.Limits.Processes = 60
		})
		r := b.run(lease(time.Minute, "sh", "-c", "for i in $(seq 400); do sleep 60 & done; wait; sleep 60"), job.LimitKilled)
		if !strings.Contains(r.Detail, "processes and threads") || !strings.Contains(r.Detail, "limit of 60") ||
			!strings.Contains(r.Detail, "subjobs.processes") {
			t.Errorf("detail %q, want what, how much and what to do", r.Detail)
		}
		if pids := living(b.o.DataDir); len(pids) != 0 {
			t.Errorf("processes %v remain", pids)
		}
		b.settle(false, job.Range{})
		m := lease(time.Minute, "sh", "-c", "for i in $(seq 30); do sleep 0.3 & done; wait")
		m.Token.Seq++
		b.run(m, job.Done)
	})
}

func TestTooMuchScratch(t *testing.T) {
	const bytes, files = 8 << 20, 200
	for name, command := range map[string]string{
		"work directory": "head -c 9000000 /dev/zero >big; sleep 60",
		"TMPDIR":         "head -c 9000000 /dev/zero >$(mktemp); sleep 60",
		"progress":       "head -c 9000000 /dev/zero >$(dirname $SLUICE_PROGRESS_FILE)/x; sleep 60",
		"many files":     "mkdir d; for i in $(seq 300); do : >d/$i; done; sleep 60",
		"bit by bit":     "for i in $(seq 9); do head -c 1000000 /dev/zero >$i; done; sleep 60",
	} {
		t.Run(name, func(t *testing.T) {
			both(t, func(t *testing.T, change func(*process.Options)) {
				b := newBench(t, func(o *process.Options) {
					change(o)
					o.Limits.Scratch, o.Limits.Files = bytes, files
				})
				m := lease(time.Minute, "sh", "-c", command)
				m.Body.(*protocol.Work).Spec.Launch.Workdir = b.put(many(150)...) // what it was submitted with is no doing of its own
				r := b.run(m, job.LimitKilled)
				var size, many int // as it was seen, perhaps before all was written
				_, err := fmt.Sscanf(r.Detail, "%d bytes in %d files", &size, &many)
				if over := size > bytes || name == "many files" && many > files; err != nil || !over {
					t.Errorf("detail %q, want more than the limit: %v", r.Detail, err)
				}
				if !strings.Contains(r.Detail, "work directory and TMPDIR") ||
					!strings.Contains(r.Detail, "write results to SLUICE_OUTPUT_DIR") || !strings.Contains(r.Detail, "subjobs.scratch") {
					t.Errorf("detail %q, want what, how much and what to do", r.Detail)
				}
			})
		})
	}
}

func TestScratchWithinItsLimit(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, func(o *process.Options) {
			change(o)
			o.Limits.Scratch, o.Limits.Files = 8<<20, 200
		})
		m := lease(time.Minute, "sh", "-ec", "for i in 1 2 3; do head -c 6000000 /dev/zero >$TMPDIR/x; sleep 0.6; rm $TMPDIR/x; done; "+
			"head -c 9000000 /dev/zero >$SLUICE_OUTPUT_DIR/big; sleep 1.2")
		m.Body.(*protocol.Work).Spec.Launch.Workdir = b.put(many(150)...)
		b.run(m, job.Done)
	})
}

func TestTemporaryFoldersAreItsOwn(t *testing.T) {
	b := newBench(t, nil)
	if !strings.Contains(b.ex.Isolation(), "/tmp and /dev/shm of its own") {
		t.Skip("not here: " + b.ex.Isolation())
	}
	name := "sluice-test-" + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatInt(time.Now().UnixNano(), 36)
	leave := "ls -A /tmp /dev/shm; echo x >/tmp/" + name + "; echo x >/dev/shm/" + name +
		"; ipcmk -M 4096 >/dev/null; ipcs -m | grep -c ' 4096 '; echo x >$TMPDIR/t; ls $TMPDIR"
	for i := range 2 {
		m := lease(time.Minute, "sh", "-c", leave)
		m.Token.Seq = uint64(i + 1)
		b.run(m, job.Done)
		dir := shim.Dir(filepath.Join(b.o.DataDir, "runs", m.Token.String()))
		if out := shim.Tail(dir.Stdout(), 10, 1000); out != "/dev/shm:\n\n/tmp:\n1\nt" && out != "/tmp:\n\n/dev/shm:\n1\nt" {
			t.Errorf("subjob %d saw %q, want empty folders, one segment and its own TMPDIR", i, out)
		}
	}
	for _, dir := range []string{"/tmp", "/dev/shm"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); !os.IsNotExist(err) {
			t.Errorf("%s holds what a subjob wrote: %v", dir, err)
		}
	}
	b.settle(false, job.Range{})
	if _, err := os.Lstat(b.dir().Tmp()); !os.IsNotExist(err) {
		t.Errorf("TMPDIR stands after the end: %v", err)
	}
}

func TestTMPDIRIsItsOwnEverywhere(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		m := lease(time.Minute, "sh", "-ec",
			`test "$(mktemp -d)" != ""; test "$(stat -c %a $TMPDIR)" = 700; echo $TMPDIR; ls -A $TMPDIR | wc -l`)
		b.run(m, job.Done)
		if out := shim.Tail(b.dir().Stdout(), 10, 1000); out != b.dir().Tmp()+"\n1" {
			t.Errorf("the program saw %q", out)
		}
		m.Token.Seq++
		m.Body.(*protocol.Work).Spec.Launch.Env = []string{"TMPDIR=/somewhere"} // whoever says so has a reason
		m.Body.(*protocol.Work).Spec.Launch.Command = []string{"sh", "-c", "test $TMPDIR = /somewhere"}
		b.run(m, job.Done)
	})
}

// TestTheDataDirectoryMayLieInTmp: what a subjob needs of it stays in sight, and what it writes there is there.
func TestTheDataDirectoryMayLieInTmp(t *testing.T) {
	users := map[string]*shim.User{"as the daemon": nil}
	if os.Geteuid() == 0 {
		users["as nobody"] = &shim.User{Name: "nobody", UID: 65534, GID: 65534}
	}
	for name, user := range users {
		for _, place := range []string{"/tmp", "/dev/shm"} {
			t.Run(name+place, func(t *testing.T) { inPlace(t, place, user) })
		}
	}
}

func inPlace(t *testing.T, place string, user *shim.User) {
	data, err := os.MkdirTemp(place, "sluice-test-*") //nolint:usetesting // it is the place that counts
	if err != nil {
		t.Skip(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	must(os.Symlink(data, link))
	t.Cleanup(func() { _ = os.RemoveAll(data) }) //sluice:trusted a test's own
	b := newBench(t, func(o *process.Options) {
		o.DataDir, o.User = link, func(string) (*shim.User, error) { return user, nil }
	})
	open(t, filepath.Dir(link))
	m := lease(time.Minute, "sh", "-ec",
		`id -u; cat f >$SLUICE_OUTPUT_DIR/f; echo '{"progress":10,"checkpoint":true}' >$SLUICE_PROGRESS_FILE; echo s >$SLUICE_CHECKPOINT_DIR/s; cat $SLUICE_LEASE_FILE >/dev/null; echo x >$TMPDIR/x`)
	m.Body.(*protocol.Work).Spec.Launch.Workdir = b.put(many(1)...)
	r := b.run(m, job.Done)
	if got, err := os.ReadFile(filepath.Join(b.dir().Output(), "f")); err != nil || len(got) == 0 || !r.Checkpoint {
		t.Errorf("output %q, %v; result %+v", got, err, r)
	}
}

// TestWhatLiesInMemoryIsItsMemory: files in a file system in memory count, and count once where they are mapped.
func TestWhatLiesInMemoryIsItsMemory(t *testing.T) {
	b := newBench(t, nil)
	if !strings.Contains(b.ex.Isolation(), "/tmp and /dev/shm of its own") {
		t.Skip("not here: " + b.ex.Isolation())
	}
	for i, c := range []struct {
		name    string
		command []string
		want    job.Outcome
	}{
		{"too much", []string{"sh", "-c", "head -c 40000000 /dev/zero >/dev/shm/a; head -c 40000000 /dev/zero >/tmp/b; sleep 60"},
			job.MemoryKilled},
		{"gone again", []string{"sh", "-ec", "for i in 1 2 3; do head -c 40000000 /dev/zero >/dev/shm/a; sleep 0.1; rm /dev/shm/a; done"},
			job.Done},
		{"mapped, and so counted once", self(t, "map", "/dev/shm/a", "40"), job.Done},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := lease(time.Minute, c.command...)
			m.Token.Seq = uint64(i + 1)
			m.Body.(*protocol.Work).Demand[trp.Memory] = 64 << 20
			r := b.run(m, c.want)
			if peak := r.Peak[trp.Memory]; peak < 38<<20 {
				t.Errorf("peak %d, want what lay in memory in it", peak)
			}
			if c.want == job.MemoryKilled && !strings.Contains(r.Detail, "in its /tmp and /dev/shm") &&
				!strings.Contains(r.Detail, "the kernel ended it") {
				t.Errorf("detail %q, want where it lay", r.Detail)
			}
		})
	}
}

// TestWhatLiesInMemoryIsReported: the daemon's figure for a subjob that runs has it too.
func TestWhatLiesInMemoryIsReported(t *testing.T) {
	b := newBench(t, func(o *process.Options) { o.Report = 50 * time.Millisecond })
	if !strings.Contains(b.ex.Isolation(), "/tmp and /dev/shm of its own") {
		t.Skip("not here: " + b.ex.Isolation())
	}
	b.do(lease(time.Minute, "sh", "-c", "head -c 40000000 /dev/zero >/tmp/a; sleep 60"))
	b.await("a report of 40 MB", func() bool { return b.reported.Load() >= 40_000_000 })
}

// TestNoDescriptorsReachASubjob: not those that this process was started with, nor those that a library opened.
func TestNoDescriptorsReachASubjob(t *testing.T) {
	both(t, func(t *testing.T, change func(*process.Options)) {
		b := newBench(t, change)
		fd, err := syscall.Open(t.TempDir(), syscall.O_RDONLY, 0) // inherited by whatever this process starts
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Close(fd) }()
		b.do(lease(time.Minute, "sh", "-c", "echo /proc/self/fd/*; sleep 60"))
		b.next(protocol.Started)
		note, err := b.dir().ReadNote()
		if err != nil {
			t.Fatal(err)
		}
		b.await("its descriptors", func() bool { return shim.Tail(b.dir().Stdout(), 1, 1000) != "" })
		// The shell has opened the directory to list it.
		if out := shim.Tail(b.dir().Stdout(), 1, 1000); out != "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3" &&
			out != "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2" {
			t.Errorf("the subjob has %s", out)
		}
		for _, pid := range []int{note.PID, note.Init} {
			for _, target := range descriptors(t, pid) {
				ours := strings.HasPrefix(target, string(b.dir())) || strings.HasPrefix(target, "pipe:") ||
					strings.HasPrefix(target, "anon_inode:") ||
					target == "/dev/null" || target == "/tmp" || target == "/dev/shm" || strings.HasPrefix(target, "/sys/fs/cgroup/") ||
					strings.HasPrefix(target, "/proc")
				if !ours {
					t.Errorf("process %d of the supervisor has %s", pid, target)
				}
			}
		}
	})
}

func descriptors(t *testing.T, pid int) (targets []string) {
	t.Helper()
	dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil {
			targets = append(targets, target)
		}
	}
	return targets
}
