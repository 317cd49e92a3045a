package local

import (
	"bufio"
	"encoding/hex"
	"errors"
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
	"sluice.dev/sluice/internal/edge/journal"
	"sluice.dev/sluice/internal/edge/journal/journaltest"
)

// childRole tells a process of this test binary to be a child: its role, and the directory.
const childRole, childDir = "SLUICE_TEST_CHILD", "SLUICE_TEST_DIR"

func TestMain(m *testing.M) {
	switch os.Getenv(childRole) {
	case "append":
		childAppends(os.Getenv(childDir))
	case "open":
		_, err := Open(os.Getenv(childDir), Options{})
		fmt.Printf("%v|%v\n", errkind.Of(err), err)
	case "full":
		childFills(os.Getenv(childDir))
	default:
		os.Exit(m.Run())
	}
}

func child(t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childRole+"="+role, childDir+"="+dir)
	cmd.Stderr = os.Stderr
	return cmd
}

// childAppends appends for ever and says each position when it is acknowledged.
func childAppends(dir string) {
	j, err := Open(dir, Options{SegmentBytes: 2000})
	if err != nil {
		panic(err)
	}
	if _, err := j.Replay(nil, func(journal.Position, []byte) error { return nil }); err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		p, err := j.Append([][]byte{[]byte("one"), fmt.Appendf(nil, "round %d", i)})
		if err != nil {
			panic(err)
		}
		fmt.Printf("%d %x\n", p.Seq, p.Digest)
		if i%20 == 19 {
			if err := journaltest.Snapshot(j, fmt.Appendf(nil, "state %d", i)); err != nil {
				panic(err)
			}
		}
	}
}

// TestKilled kills a process that appends, again and again: every acknowledgement that came out is kept.
func TestKilled(t *testing.T) {
	dir := newPlace(t).dir
	var last journal.Position
	for round := range 4 {
		cmd := child(t, "append", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err = cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		var witnesses []journal.Position
		read := func() bool {
			if !lines.Scan() {
				return false
			}
			seq, digest, ok := strings.Cut(lines.Text(), " ")
			b, bad := hex.DecodeString(digest)
			if !ok || bad != nil || len(b) != 32 {
				return true // the last line may be cut short
			}
			p := journal.Position{Digest: [32]byte(b)}
			p.Seq, _ = strconv.ParseUint(seq, 10, 64)
			witnesses = append(witnesses, p)
			return true
		}
		for range 30 + 17*round {
			read()
		}
		if err = cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for read() {
		}
		_ = cmd.Wait() // it was killed
		if len(witnesses) == 0 || witnesses[0].Seq <= last.Seq {
			t.Fatalf("round %d: %d acknowledgements, after %s", round, len(witnesses), last)
		}
		j, _, _, err := replayed(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(j.Check(witnesses)...); err != nil {
			t.Fatal(err)
		}
		last = witnesses[len(witnesses)-1]
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTwoProcesses: the second is told who has the journal.
func TestTwoProcesses(t *testing.T) {
	p, _, _ := filled(t, 1)
	j, _, _, err := replayed(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	if r, bad := Verify(p.dir); bad != nil || r.Holder != os.Getpid() {
		t.Errorf("Verify says that process %d has it (%v), want %d", r.Holder, bad, os.Getpid())
	}
	out, err := child(t, "open", p.dir).Output()
	if err != nil || !strings.HasPrefix(string(out), "conflict|") ||
		!strings.Contains(string(out), fmt.Sprintf("process %d", os.Getpid())) {
		t.Errorf("the other process got %q, %v", out, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if out, err := child(t, "open", p.dir).Output(); err != nil || !strings.HasPrefix(string(out), "unknown|<nil>") {
		t.Errorf("after Close the other process got %q, %v", out, err)
	}
}

// childFills appends under a limit on the size of files, as the kernel enforces it, lifts it, and goes on.
func childFills(dir string) {
	signal.Ignore(syscall.SIGXFSZ)
	j, err := Open(dir, Options{})
	if err != nil {
		panic(err)
	}
	if _, err := j.Replay(nil, nil); err != nil {
		panic(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		panic(err)
	}
	low := limit
	low.Cur = 5000
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &low); err != nil {
		panic(err)
	}
	full := 0
	for i := range 20 {
		r := [][]byte{fmt.Appendf(nil, "%0500d", i)}
		_, err := j.Append(r)
		for range 2 {
			if err == nil {
				break
			}
			if errkind.Of(err) != errkind.Exhausted {
				panic(err)
			}
			full++
			_, err = j.Append(r)
		}
		if err != nil {
			if err = unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
				panic(err)
			}
			if _, err = j.Append(r); err != nil {
				panic(err)
			}
		}
	}
	if err := j.Close(); err != nil {
		panic(err)
	}
	fmt.Println(full)
}

// TestTheKernelSaysFull: a write that the kernel cuts short is taken back, and the journal goes on after room was made.
func TestTheKernelSaysFull(t *testing.T) {
	dir := newPlace(t).dir
	out, err := child(t, "full", dir).Output()
	if err != nil || string(out) != "2\n" {
		t.Fatalf("the child says %q, %v", out, err)
	}
	j, records, notices, err := replayed(dir)
	if err != nil || len(records) != 20 || len(notices) != 0 {
		t.Fatalf("%d records, %q, %v", len(records), notices, err)
	}
	for i, r := range records {
		if r != fmt.Sprintf("%0500d", i) {
			t.Fatalf("record %d is %q", i, r)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}
