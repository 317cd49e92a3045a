package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/host/space"
	"sluice.dev/sluice/internal/host/trouble"
)

// there reports whether the file of the reserve exists.
func (r *rig) there() bool {
	_, err := os.Stat(filepath.Join(r.dir, space.ReserveName))
	return err == nil
}

// TestTheReserveGoesToFacts: a journal that is refused space gets the reserve, so what was asked for is decided; no job is accepted until
// there is space for the reserve again.
func TestTheReserveGoesToFacts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var full atomic.Bool
		r.before = func([][]byte) error {
			if full.Load() && r.there() {
				return errkind.Errorf(errkind.Exhausted, "append: %w", unix.EDQUOT)
			}
			return nil
		}
		h, stop := r.start(t)
		if !r.there() {
			t.Fatal("a daemon that is up has no reserve")
		}
		full.Store(true)
		began := time.Now()
		if _, err := h.Submit(context.Background(), "r1", spec("a"), nil); errkind.Of(err) != errkind.Exhausted {
			t.Fatalf("got %v, want kind exhausted", err)
		}
		for r.there() {
			time.Sleep(trouble.RetryFirst)
		}
		full.Store(false) // its quota has room: the file system would not say so
		time.Sleep(trouble.RetryLast)
		if took := time.Since(began); took > 4*time.Second || h.daemon.trouble.Stopped() != nil {
			t.Errorf("after %v it is in trouble: %v", took, h.daemon.text())
		}
		for !r.there() {
			time.Sleep(trouble.RetryFirst)
		}
		synctest.Wait() // the file is there a moment before it is taken for the reserve
		if again, err := h.Submit(context.Background(), "r1", spec("a"), nil); err != nil || again.Created {
			t.Errorf("%+v, %v: what was asked for was lost", again, err)
		}
		if err := stop(); err != nil {
			t.Error(err)
		}
		if !r.there() {
			t.Error("the next start has no reserve")
		}
	})
}

// onSmallDisk puts the data directory onto a file system of its own, and returns what fills it and what gives the room back.
func (r *rig) onSmallDisk(t *testing.T) (fill func(), free func()) {
	t.Helper()
	disk := t.TempDir()
	if err := syscall.Mount("sluice-test", disk, "tmpfs", 0, "size=8m"); err != nil {
		t.Skipf("skipped: a small file system can't be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", disk, err)
		}
	})
	r.dir = filepath.Join(disk, "data")
	filler := filepath.Join(disk, "filler")
	return func() {
			f, err := os.OpenFile(filler, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			for size := 64 << 10; size > 0; size /= 2 { // to the last byte
				for err = nil; err == nil; {
					_, err = f.Write(make([]byte, size))
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		}, func() {
			if err := os.Remove(filler); err != nil {
				t.Fatal(err)
			}
		}
}

// until waits for a condition.
func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for begin := time.Now(); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatalf("timed out waiting: %s", what)
		}
	}
}

// TestAFullDiskIsToldAndPasses: while the disk is full nothing new is taken on, with the reason, and the daemon lives; it goes on when
// there is room.
func TestAFullDiskIsToldAndPasses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fill, free := r.onSmallDisk(t)
	h, _ := r.start(t)
	fill()
	until(t, "the reserve is given up", func() bool { return !r.there() && h.daemon.space.Refusal() != nil })
	_, err := h.Submit(context.Background(), "r1", spec("a"), nil)
	if errkind.Of(err) != errkind.Exhausted || !strings.Contains(err.Error(), "no space left on device") ||
		!strings.Contains(err.Error(), "(tmpfs)") {
		t.Errorf("a submission to a full disk: %v", err)
	}
	if why := h.daemon.text(); !strings.Contains(why, "the rest is others'") {
		t.Errorf("it does not say who fills it: %q", why)
	}
	answer := func(page http.Handler) (int, string) {
		w := httptest.NewRecorder()
		page.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		return w.Code, w.Body.String()
	}
	if code, _ := answer(h.Monitor().Health); code != http.StatusOK {
		t.Errorf("/healthz says %d: a restart would not help", code)
	}
	if code, text := answer(h.Monitor().Ready); code != http.StatusServiceUnavailable || !strings.Contains(text, "no space left") {
		t.Errorf("/readyz says %d, %q", code, text)
	}
	free()
	until(t, "the reserve is there again", func() bool { return r.there() && h.daemon.text() == "" })
	if _, err := h.Submit(context.Background(), "r1", spec("a"), nil); err != nil {
		t.Errorf("after room was made: %v", err)
	}
}

// TestAStartOnAFullDisk: with its reserve a daemon comes up on a full disk; without one it says what it needs and who has it.
func TestAStartOnAFullDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fill, free := r.onSmallDisk(t)
	h, stop := r.start(t)
	if _, err := h.Submit(context.Background(), "r1", spec("a"), nil); err != nil {
		t.Fatal(err)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	fill()
	h, stop = r.start(t)
	if why := h.daemon.text(); !strings.Contains(why, "too little for the reserve") {
		t.Errorf("it has given up its reserve to start, and says %q", why)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	r.before = func([][]byte) error { return fmt.Errorf("append: %w", unix.ENOSPC) }
	h, err := r.open()
	if err == nil { // a boot of toys has no facts
		err = errors.Join(h.daemon.space.Failed(fmt.Errorf("begin a new boot in the journal: %w", unix.ENOSPC), true), h.Close())
	}
	if errkind.Of(err) != errkind.Exhausted || !strings.Contains(err.Error(), "(tmpfs)") ||
		!strings.Contains(err.Error(), "the data directory has") {
		t.Errorf("a start without room: %v", err)
	}
	free()
	r.before = nil
	h, _ = r.start(t)
	if got, err := h.Submit(context.Background(), "r1", spec("a"), nil); err != nil || got.Created {
		t.Errorf("%+v, %v: the job was lost", got, err)
	}
}

// TestARefusedStartTouchesNoReserve: it is that of the daemon that runs.
func TestARefusedStartTouchesNoReserve(t *testing.T) {
	r := newRig(t)
	_, stop := r.start(t)
	before, err := os.Stat(filepath.Join(r.dir, space.ReserveName))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.open(); errkind.Of(err) != errkind.Conflict {
		t.Fatalf("a second daemon: %v", err)
	}
	after, err := os.Stat(filepath.Join(r.dir, space.ReserveName))
	if err != nil || !os.SameFile(before, after) || before.ModTime() != after.ModTime() {
		t.Errorf("it was changed: %v, %v", before, after)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
