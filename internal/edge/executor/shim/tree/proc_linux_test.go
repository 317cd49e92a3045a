package tree

import (
	"os"
	"os/exec"
	"path/filepath"
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
		if err != nil || s != (stat{state: 'S', parent: 7, threads: 3, started: 12345, environ: -1}) {
			t.Errorf("name %q: %+v, %v", name, s, err)
		}
	}
	more := strings.TrimSpace(line("sh")) + " 5 6 140735 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0 7 8 9 1000 1100 1100 1150 0\n"
	for text, want := range map[string]stat{
		more: {state: 'S', parent: 7, threads: 3, started: 12345, environ: 50},
		strings.Replace(more, " 5 6 ", " 0 0 ", 1):         {state: 'S', parent: 7, threads: 3, started: 12345, environ: -1},
		strings.Replace(more, " 1100 1150 ", " 0 0 ", 1):   {state: 'S', parent: 7, threads: 3, started: 12345, environ: -1},
		strings.Replace(more, " 1150 ", " 1100 ", 1):       {state: 'S', parent: 7, threads: 3, started: 12345},
		strings.Replace(more, " 4194560 ", " 2129984 ", 1): {state: 'S', parent: 7, threads: 3, started: 12345, kernel: true, environ: 50},
	} {
		if s, err := parseStat([]byte(text)); err != nil || s != want {
			t.Errorf("%q: %+v, %v, want %+v", text, s, err, want)
		}
	}
	for _, bad := range []string{"", "42 (sh", "42 (sh) S", "42 (sh) SS" + line("")[6:], strings.Replace(line("sh"), "12345", "x", 1),
		strings.Replace(line("sh"), " 7 ", " y ", 1), strings.Replace(line("sh"), " 3 0 ", " z 0 ", 1)} {
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
			t.Fatalf("%s never came", what)
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
	if left := End(func() []Process { return Marked(mark) }, 10*time.Second); len(left) != 0 || p.Alive() {
		t.Errorf("left: %v", left)
	}
}

// TestMarkedFindsWhatChangesItsProgram: between two programs a process has no environment for a moment. One that is always
// about to start another was missed about once in a hundred looks, and two looks in a row that find nothing let it go for good.
func TestMarkedFindsWhatChangesItsProgram(t *testing.T) {
	mark := "SLUICE_TEST_MARK=again" + strconv.Itoa(os.Getpid())
	script := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexec \"$0\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	p := sh(t, "exec "+script, mark)
	sh(t, "exec env -i sleep 60")
	unknown := 0
	for range 3000 {
		marked, known := hasMark(p.PID, mark)
		if !known {
			unknown++
		} else if !marked {
			t.Fatal("it lives, and was taken for a stranger")
		}
	}
	for range 20 {
		if found := Marked(mark); len(found) != 1 || found[0] != p {
			t.Fatalf("found %v, want %v", found, p)
		}
	}
	t.Logf("%d of 3000 looks came between two programs", unknown)
}

// TestNoEnvironmentIsKnown: a process without any is not waited for.
func TestNoEnvironmentIsKnown(t *testing.T) {
	p := sh(t, "exec env -i sleep 60")
	await(t, "sleep without an environment", func() bool {
		marked, known := hasMark(p.PID, "A=B")
		return known && !marked && environLength(t, p.PID) == 0
	})
	if _, known := hasMark(2, "A=B"); !known {
		t.Error("a thread of the kernel is waited for")
	}
}

func environLength(t *testing.T, pid int) int {
	t.Helper()
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	return len(env)
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
