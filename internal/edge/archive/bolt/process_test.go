package bolt

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/archive"
	"sluice.dev/sluice/internal/edge/archive/archivetest"
)

// childRole tells a process of this test binary to be a child: its role, and the directory.
const childRole, childDir = "SLUICE_TEST_CHILD", "SLUICE_TEST_DIR"

func TestMain(m *testing.M) {
	switch os.Getenv(childRole) {
	case "file":
		childFiles(os.Getenv(childDir))
	case "repair":
		childRepairs(os.Getenv(childDir))
	case "full":
		childFills(os.Getenv(childDir))
	default:
		os.Exit(m.Run())
	}
}

// lines starts a child and hands over what it prints until f has had enough; then the child is killed, and the rest is read.
func lines(t *testing.T, role, dir string, f func(line string) (enough bool)) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role, childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err = cmd.Start(); err != nil {
		t.Fatal(err)
	}
	killed := false
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadString('\n')
		if err != nil {
			break // the last line may be cut short
		}
		if f(strings.TrimSpace(line)) && !killed {
			killed = true
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed, or has said what there is to say
}

// childFiles files one job after the other, discards every third one of ten jobs before, and says each when it is durable.
func childFiles(dir string) {
	a, err := Open(dir, false)
	if err != nil {
		panic(err)
	}
	size, err := a.Size()
	if err != nil {
		panic(err)
	}
	for i := int(size.Changes); ; i++ {
		if err := a.File(archivetest.Job(name(i), 1, quantity.Instant(i), quantity.Instant(i))); err != nil {
			panic(err)
		}
		fmt.Printf("filed %d\n", i)
		if i%3 == 0 && i >= 10 {
			if err := a.Discard([]archive.Discarded{{Job: name(i - 10), UpTo: 1}}); err != nil {
				panic(err)
			}
			fmt.Printf("gone %d\n", i-10)
		}
	}
}

// TestKilled kills a process that files and discards, again and again: what it had said is so, and the lists agree.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	there := map[job.ID]bool{}
	for round := range 4 {
		said, last := 0, 0
		lines(t, "file", dir, func(line string) bool {
			what, number, _ := strings.Cut(line, " ")
			if i, err := strconv.Atoi(number); err == nil {
				there[name(i)] = what == "filed"
				said, last = said+1, i
			}
			return said >= 20+7*round
		})
		if said == 0 {
			t.Fatal("nothing was filed")
		}
		a := reopened(t, dir)
		// The call that was cut off may be durable without having been said.
		if id := name(last - 10); there[id] {
			_, there[id], _ = a.Recall(protocol.Gate, id)
		}
		for id, want := range there {
			for _, role := range roles() {
				if _, ok, err := a.Recall(role, id); err != nil || ok != want {
					t.Errorf("round %d: role %d of %s is there: %v, %v; said %v", round, role, id, ok, err, want)
				}
			}
		}
		page, err := a.Page(archive.End(), 10_000, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Entries {
			if _, ok, err := a.Recall(protocol.Gate, e.Job); !ok || err != nil {
				t.Errorf("%s is in the list alone: %v", e.Job, err)
			}
		}
		ended, err := a.Outdated(quantity.Never, 0, 10_000)
		size, err2 := a.Size()
		if err != nil || err2 != nil || len(ended) != len(page.Entries) || int(size.Jobs) != len(ended) || size.Homes != size.Jobs {
			t.Errorf("round %d: %d in the list, %d by their end, %+v, %v, %v", round, len(page.Entries), len(ended), size, err, err2)
		}
		closing(t, a, nil)
	}
}

func childRepairs(dir string) {
	for {
		fmt.Println("begins")
		if _, err := Repair(dir, 0, 0); err != nil {
			panic(err)
		}
	}
}

// A repair that is killed leaves an archive with everything.
func TestARepairIsKilled(t *testing.T) {
	const jobs = 400
	dir := filled(t, jobs)
	for round := range 6 {
		seen := 0
		lines(t, "repair", dir, func(string) bool { seen++; return seen > round%3 })
		a := reopened(t, dir)
		if size, err := a.Size(); err != nil || size.Jobs != jobs || size.Homes != jobs {
			t.Fatalf("round %d: %+v, %v", round, size, err)
		}
		closing(t, a, nil)
	}
}

// childFills files under a limit of the file's size until there is no room, then gets room.
func childFills(dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	a, err := Open(dir, false)
	if err != nil {
		panic(err)
	}
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		panic(err)
	}
	tight := before
	tight.Cur = 300 << 10
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &tight); err != nil {
		panic(err)
	}
	file := func(i int) error {
		p := archivetest.Job(name(i), 1, quantity.Instant(i), quantity.Instant(i))
		p[0].Data = make([]byte, 5000)
		return a.File(p)
	}
	i := 0
	for ; i < 1000; i++ {
		if err = file(i); err != nil {
			break
		}
	}
	again := file(i)
	_, _, recalled := a.Recall(protocol.Gate, name(0))
	fmt.Printf("%d|%v|%v|%v\n", i, errkind.Of(err), errkind.Of(again), recalled)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		panic(err)
	}
	for k := i; k < i+100; k++ {
		if err := file(k); err != nil {
			fmt.Printf("with room: %v\n", err)
		}
	}
	size, err := a.Size()
	fmt.Printf("%d|%v|%v\n", size.Jobs, err, a.Close())
}

// A full disk is said to be one, changes nothing, and the same call succeeds once there is room.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	var said []string
	lines(t, "full", dir, func(line string) bool { said = append(said, line); return false })
	if len(said) != 2 {
		t.Fatalf("%q", said)
	}
	filed, _, _ := strings.Cut(said[0], "|")
	n, err := strconv.Atoi(filed)
	if err != nil || n == 0 || n >= 1000 || !strings.HasSuffix(said[0], "|exhausted|exhausted|<nil>") ||
		said[1] != fmt.Sprintf("%d|<nil>|<nil>", n+100) {
		t.Fatalf("%q", said)
	}
	a := reopened(t, dir)
	size, err := a.Size()
	if err != nil || int(size.Jobs) != n+100 {
		t.Errorf("%+v, %v", size, err)
	}
	closing(t, a, nil)
}
