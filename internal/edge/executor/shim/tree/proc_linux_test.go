package tree

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	line := func(name string) string {
		return "42 (" + name + ") S 7 42 42 0 -1 4194560 99 0 0 0 1 2 0 0 20 0 3 0 12345 1000 200 18446744073709551615\n"
	}
	for _, name := range []string{"sh", "a b", ") R 1 (", "((", "))", "\n"} {
		s, err := parseStat([]byte(line(name)))
		if err != nil || s != (stat{state: 'S', parent: 7, threads: 3, started: 12345}) {
			t.Errorf("name %q: %+v, %v", name, s, err)
		}
	}
	for _, bad := range []string{"", "42 (sh", "42 (sh) S", "42 (sh) SS" + line("")[6:], strings.Replace(line("sh"), "12345", "x", 1), strings.Replace(line("sh"), " 7 ", " y ", 1), strings.Replace(line("sh"), " 3 0 ", " z 0 ", 1)} {
		if s, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q: read as %+v", bad, s)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (sh) S 7 42 42 0 -1 4194560 99 0 0 0 1 2 0 0 20 0 1 0 12345 1000 200"))
	f.Add([]byte(")\x00 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if s, err := parseStat(data); err == nil && s.state == 0 {
			t.Errorf("%q: no state", data)
		}
	})
}

// sh starts a shell command, and ends it with the test.
func sh(t testing.TB, text string, env ...string) Process {
	t.Helper()
	cmd := exec.Command("sh", "-c", text)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p, ok := Look(cmd.Process.Pid)
	if !ok {
		t.Fatal("not there")
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-p.PID, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return p
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func TestBelowAgreesBothWays(t *testing.T) {
	root := sh(t, "sleep 60 & (sleep 60 & sleep 60 & wait) & wait")
	await(t, "five descendants", func() bool { return len(byChildren(root.PID)) == 4 })
	a, b := byChildren(root.PID), byParents(root.PID)
	if len(a) != len(b) {
		t.Fatalf("by children %v, by parents %v", a, b)
	}
	seen := map[Process]int{}
	for i := range a {
		seen[a[i].Process]++
		seen[b[i].Process]++
	}
	for p, n := range seen {
		if n != 2 {
			t.Errorf("%v was found by one way only", p)
		}
	}
}

func TestAProcessIsMoreThanItsNumber(t *testing.T) {
	p := sh(t, "sleep 60")
	other := Process{PID: p.PID, Started: p.Started + 1}
	if other.Alive() || !p.Alive() {
		t.Error("another start time is another process")
	}
	if err := other.Signal(syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	time.Sleep(20 * time.Millisecond)
	if !p.Alive() {
		t.Error("a signal to a process that is gone hit the one that has its number")
	}
	if left := End(func() []Process {
		if p.Alive() {
			return []Process{p}
		}
		return nil
	}, 5*time.Second); len(left) != 0 || p.Alive() {
		t.Errorf("left %v", left)
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Errorf("signalling one that is gone: %v", err)
	}
}

func TestMarked(t *testing.T) {
	mark := "SLUICE_TEST_MARK=" + strconv.Itoa(os.Getpid())
	p := sh(t, "setsid sleep 60 & wait", mark)
	sh(t, "sleep 60", mark+"0")
	await(t, "both marked processes", func() bool { return len(Marked(mark)) == 2 })
	for _, m := range Marked(mark) {
		_ = m.Signal(syscall.SIGKILL)
	}
	await(t, "their end", func() bool { return !p.Alive() && len(Marked(mark)) == 0 })
}

func TestAskSparesTheWrapper(t *testing.T) {
	root := sh(t, `sh -c 'trap "exit 5" TERM; while :; do sleep 0.02; done'; echo over; sleep 60`)
	var inner Process
	await(t, "the inner shell's handler", func() bool {
		for _, m := range Below(root.PID) {
			if m.Catches(syscall.SIGTERM) {
				inner = m.Process
				return true
			}
		}
		return false
	})
	Ask(append([]Member{{Process: root}}, Below(root.PID)...), syscall.SIGTERM)
	await(t, "the inner shell to end", func() bool { return !inner.Alive() })
	if !root.Alive() {
		t.Error("the wrapper was ended before the program it waits for")
	}
	await(t, "the next command", func() bool { return len(Below(root.PID)) == 1 })
	Ask(append([]Member{{Process: root}}, Below(root.PID)...), syscall.SIGTERM)
	await(t, "the wrapper, which waits for nobody who cares, to end", func() bool { return !root.Alive() })
}
