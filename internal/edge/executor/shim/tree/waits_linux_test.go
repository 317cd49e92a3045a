package tree

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"
)

func TestWhatTheKernelSaysOfWaiting(t *testing.T) {
	for text, want := range map[string][2]time.Duration{
		"some avg10=58.28 avg60=52.31 avg300=55.27 total=381\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=80\n": {381 * time.Microsecond,
			80 * time.Microsecond},
		"some avg10=0.00 avg60=0.00 avg300=0.00 total=12\n": {12 * time.Microsecond, 0},
		// before 5.13
		"some total=5\nfull total=7\n": {5 * time.Microsecond,
			5 * time.Microsecond},
	} {
		if some, full, ok := parsePressure([]byte(text)); !ok || some != want[0] || full != want[1] {
			t.Errorf("%q: %v, %v, %v", text, some, full, ok)
		}
	}
	for _, text := range []string{"", "some", "some total=", "some total=-1", "some total=99999999999999999999", "full total=7\n",
		"some avg10=0.00\n"} {
		if _, _, ok := parsePressure([]byte(text)); ok {
			t.Errorf("%q says something", text)
		}
	}
	if u, ok := parseTask([]byte("606910 48451 1\n")); !ok || u != (taskUse{606910, 48451}) {
		t.Errorf("%+v, %v", u, ok)
	}
	for _, text := range []string{"", "1", "1 x 1", "-1 2 3", "1 -2 3", "99999999999999999999 1 1"} {
		if _, ok := parseTask([]byte(text)); ok {
			t.Errorf("%q says something", text)
		}
	}
}

// FuzzWaits: whatever a kernel says, a time is between nothing and what there was.
func FuzzWaits(f *testing.F) {
	f.Add([]byte("some avg10=58.28 avg60=52.31 avg300=55.27 total=381\nfull total=80\n"), []byte("usage_usec 987\n"),
		[]byte("606910 48451 1"))
	f.Fuzz(func(t *testing.T, pressure, stat, task []byte) {
		some, full, ok := parsePressure(pressure)
		if some < 0 || full < 0 || full > some || !ok && some != 0 {
			t.Errorf("%v of %v, %v", full, some, ok)
		}
		if u, ok := parseTask(task); ok && (u.used < 0 || u.waited < 0) {
			t.Errorf("%+v", u)
		}
		dir := t.TempDir()
		write(t, dir, string(pressure), string(stat))
		w, began := Waits{Group: Group(dir)}, time.Unix(1000, 0)
		w.Look(began, began.Add(time.Second), nil)
		w.Look(began, began.Add(2*time.Second), nil)
		if w.Total() < 0 || w.Total() > 2*time.Second {
			t.Errorf("it waited %v of 2s", w.Total())
		}
	})
}

func write(t *testing.T, dir, pressure, stat string) {
	t.Helper()
	for name, text := range map[string]string{"cpu.pressure": pressure, "cpu.stat": stat} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWaitsOfAGroup: of a program that waits alone all of it counts, of one that has more to do than there are processors nothing that
// these had done for it.
func TestWaitsOfAGroup(t *testing.T) {
	began := time.Unix(1000, 0)
	said := func(d time.Duration) int64 { return d.Microseconds() }
	measure := func(some, full, used time.Duration) time.Duration {
		dir := t.TempDir()
		write(t, dir, fmt.Sprintf("some total=%d\nfull total=%d\n", said(some), said(full)), fmt.Sprintf("usage_usec %d\n", said(used)))
		w := Waits{Group: Group(dir)}
		w.Look(began, began.Add(10*time.Second), nil)
		w.Look(began, began.Add(20*time.Second), nil) // nothing new
		return w.Total()
	}
	all := 10 * time.Second * time.Duration(runtime.NumCPU())
	for _, c := range []struct {
		name             string
		some, full, used time.Duration
		want             time.Duration
	}{
		{"idle", 0, 0, time.Second, 0},
		{"alone", 7 * time.Second, 7 * time.Second, 3 * time.Second, 7 * time.Second},
		{"two beside each other", 9 * time.Second, 5 * time.Second, 3 * time.Second, 7 * time.Second},
		{"it has all processors, and more to do", 10 * time.Second, 0, all, 0},
		{"it has half of them, and more to do", 10 * time.Second, 10 * time.Second, all / 2, 5 * time.Second},
	} {
		if got := measure(c.some, c.full, c.used); got != min(c.want, 10*time.Second-c.used/time.Duration(runtime.NumCPU())) {
			t.Errorf("%s: it waited %v, want %v", c.name, got, c.want)
		}
	}
}

// TestWaitsOfARealProgram that runs beside more than the machine has processors for: it is seen to wait, and never longer than it ran.
func TestWaitsOfARealProgram(t *testing.T) {
	spin := func() *exec.Cmd {
		cmd := exec.Command("sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd
	}
	for range 2 * runtime.NumCPU() {
		spin()
	}
	for name, group := range map[string]bool{"its tasks": false, "its group": true} {
		t.Run(name, func(t *testing.T) {
			var w Waits
			began := time.Now()
			if group {
				base, _, _ := GroupBase()
				if base == "" {
					t.Skip("no control groups can be made here")
				}
				g, err := MakeProbe(base, Bounds{})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					_ = g.Kill()
					for until := time.Now().Add(time.Minute); g.Remove() != nil && time.Now().Before(until); time.Sleep(time.Millisecond) {
					}
				})
				if _, ok := g.use(); !ok {
					t.Skip("this kernel does not say how long a group waits")
				}
				w.Group = g
			}
			cmd := spin()
			if group {
				if err := w.Group.write("cgroup.procs", strconv.Itoa(cmd.Process.Pid)); err != nil {
					t.Fatal(err)
				}
			}
			p, ok := Look(cmd.Process.Pid)
			if !ok {
				t.Fatal("it is gone")
			}
			for until := began.Add(2 * time.Minute); w.Total() == 0 && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
				w.Look(began, time.Now(), []Member{{Process: p, Threads: 1}})
			}
			if ran := time.Since(began); w.Total() <= 0 || w.Total() > ran {
				t.Errorf("beside %d others on %d processors it waited %v of %v", 2*runtime.NumCPU(), runtime.NumCPU(), w.Total(), ran)
			}
		})
	}
}

// TestWhatWasBeforeDoesNotCount: a program that goes on to its next subjob has waited before it.
func TestWhatWasBeforeDoesNotCount(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "some total=900000\nfull total=900000\n", "usage_usec 1000\n")
	w, began := Waits{Group: Group(dir)}, time.Unix(1000, 0)
	w.Skip(began, nil)
	w.Look(began, began.Add(time.Second), nil)
	if w.Total() != 0 {
		t.Errorf("it has waited %v, all of it before it began", w.Total())
	}
	write(t, dir, "some total=1000000\nfull total=1000000\n", "usage_usec 2000\n")
	w.Look(began, began.Add(2*time.Second), nil)
	if w.Total() != 100*time.Millisecond {
		t.Errorf("it has waited %v, want 100 ms", w.Total())
	}
}
