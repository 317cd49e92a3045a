package directory

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// saysOnTheWay waits until a running subjob of a chain says how far it is, with a checkpoint or without one.
func (c *chain) saysOnTheWay(checkpoint bool) (progress int64) {
	c.Helper()
	at := filepath.Join(c.dir, fmt.Sprint(c.subjobs), "progress", "progress.json")
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var said struct {
			Progress   int64
			Checkpoint bool
		}
		data, _ := os.ReadFile(at)
		if json.Unmarshal(data, &said) == nil && said.Checkpoint == checkpoint {
			return said.Progress
		}
		if time.Now().After(end) {
			c.Fatalf("it says %q, want a checkpoint: %v", data, checkpoint)
		}
	}
}

// TestWhatWasSavedOnTheWayCounts: a program that is killed together with its adapter goes on from what it had saved a while before, not
// from what it has saved since; what it prints is shown before the first copy.
func TestWhatWasSavedOnTheWayCounts(t *testing.T) {
	const steps = 40
	w := newChain(t, steps, `step (\d+)`, "0", "exit 0")
	w.s.Every = 100 * time.Millisecond
	whole, before := w.script, int64(0)
	for _, at := range []int{7, 21} { // its saves; it hangs behind the first and behind the third, having printed more
		w.script = strings.ReplaceAll(whole, "[ $((i % 7)) = 0 ] && save", fmt.Sprintf(
			"[ $i = 2 ] && sleep 1; [ $((i %% 7)) = 0 ] && save; [ $i = %d ] && { sleep 3; echo step %d; sleep 600; }", at, at+2))
		w.run(steps, func(p *exec.Cmd) {
			w.saysOnTheWay(true)
			if err := syscall.Kill(-p.Process.Pid, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		})
		if w.from <= before || w.from > int64(at) { // the last steps may have been read after the save that they belong to
			t.Fatalf("it goes on from %d, want more than %d, up to %d", w.from, before, at)
		}
		before = int64(at) // in the checkpoint, whatever counts
	}
	w.script = whole
	if status, said := w.run(steps, nil); status != 0 || w.from != steps || w.result() != reference(steps) {
		t.Errorf("status %d at %d: %s; the result is %s, uncut %s", status, w.from, said, w.result(), reference(steps))
	}
	left, err := os.ReadDir(w.resume)
	if err != nil || len(left) != 2 {
		t.Errorf("the checkpoint has %v, want one folder and how far it is: %v", left, err)
	}

	for said, shown := range map[int64]int64{3: 3, steps: steps - 1} { // who is at the total would need no checkpoint
		w = newChain(t, steps, `step (\d+)`, "0", "exit 0")
		w.script = fmt.Sprintf("echo step %d; sleep 600", said)
		w.run(steps, func(p *exec.Cmd) {
			if got := w.saysOnTheWay(false); got != shown {
				t.Errorf("%d is shown, want %d", got, shown)
			}
			_ = syscall.Kill(-p.Process.Pid, syscall.SIGKILL)
		})
		if w.from != 0 {
			t.Errorf("what was only printed counts: %d", w.from)
		}
	}
}

// TestACopyOnTheWayIsWholeOrNone: one that the program has written into, that is called off, or that there is no room for leaves the copy
// before.
func TestACopyOnTheWayIsWholeOrNone(t *testing.T) {
	at := t.TempDir()
	r := &gauge{place: place{dir: filepath.Join(at, "ckpt"), checkpoint: filepath.Join(at, "checkpoint"),
		progressing: filepath.Join(at, "progress.json")}}
	for _, d := range []string{r.dir, r.checkpoint} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.dir, "state"), make([]byte, 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	changed, _, err := lastChange(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &saver{gauge: r, to: 100, total: 100, ctx: t.Context()}
	counts := func(want int64, folders int) {
		t.Helper()
		var said struct{ Progress int64 }
		data, err := os.ReadFile(r.progressing)
		if err == nil {
			err = json.Unmarshal(data, &said)
		}
		list, failed := filepath.Glob(filepath.Join(r.checkpoint, kept+"*"))
		if err != nil || failed != nil || said.Progress != want || len(list) != folders {
			t.Errorf("%s counts, with the folders %v: %v; want %d", data, list, err, want)
		}
	}
	if err := s.save(changed, 12, 10); err != nil {
		t.Fatal(err)
	}
	counts(10, 1)
	if err := s.save(changed.Add(-time.Second), 20, 20); err != nil { // it changes meanwhile
		t.Fatal(err)
	}
	counts(10, 1)
	off, cancel := context.WithCancel(t.Context())
	cancel()
	s.ctx = off
	if err := s.save(changed, 20, 20); err != nil {
		t.Fatal(err)
	}
	s.ctx = t.Context()
	counts(10, 1)
	if err := s.save(changed, 30, 30); err != nil {
		t.Fatal(err)
	}
	counts(30, 1)
	if s.room = 1500; s.off {
		t.Fatal("it is off")
	}
	if err := s.save(changed, 40, 40); err != nil || !s.off {
		t.Errorf("half of its room is not enough for a copy: off %t, %v", s.off, err)
	}
	counts(30, 1)
	r.resume, r.dir = r.checkpoint, filepath.Join(at, "again")
	if before, err := r.restore("ckpt"); err != nil || before != 30 {
		t.Errorf("it goes on from %d: %v", before, err)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "state")); err != nil {
		t.Error(err)
	}
}
