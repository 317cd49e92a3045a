package volume

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// small mounts a tmpfs with these options.
func small(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("sluice-test", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("skipped: a small file system can't be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

// TestTheReserveIsRoom: the reserve file allocates its room at once, and releases all of it when the disk is full.
func TestTheReserveIsRoom(t *testing.T) {
	dir := small(t, "size=16m")
	r := NewReserve(filepath.Join(dir, "reserve"), dir)
	if err := r.Hold(true); err != nil || !r.Held() {
		t.Fatalf("held %v: %v", r.Held(), err)
	}
	var st unix.Stat_t
	if err := unix.Stat(r.path, &st); err != nil || st.Blocks*512 < 16<<20/20-4096 {
		t.Fatalf("it has %d blocks of 512 bytes (%v), want a twentieth of 16 MiB", st.Blocks, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 16<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	s, err := Look(dir)
	if err != nil || !s.Full(true) || !s.Full(false) {
		t.Errorf("%+v (%v): want it full", s, err)
	}
	if err := r.Release(); err != nil || r.Held() {
		t.Fatalf("held %v: %v", r.Held(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "fact"), make([]byte, 700<<10), 0o600); err != nil {
		t.Errorf("there is no room once it is given up: %v", err)
	}
	if err := r.Hold(true); err == nil || r.Held() {
		t.Errorf("it was taken where there is no room: %v", err)
	}
	if _, err := os.Stat(r.path); !os.IsNotExist(err) {
		t.Errorf("what could not be allocated is there: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	if err := r.Hold(true); err != nil || !r.Held() {
		t.Errorf("held %v: %v", r.Held(), err)
	}
	again := NewReserve(r.path, dir) // as the next daemon does
	if err := errors.Join(again.Release(), again.Release(), again.Hold(true)); err != nil {
		t.Error(err)
	}
}

func TestNoMoreFiles(t *testing.T) {
	dir := small(t, "size=16m,nr_inodes=4")
	for _, name := range []string{"a", "b", "c"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if s, err := Look(dir); err != nil || !s.Full(true) || !strings.Contains(s.Text(true), "none of 4 files") {
		t.Errorf("%+v (%v) is %q: want it full", s, err, s.Text(true))
	}
}

// TestWhatCountsNothingIsNeverFull: a file system without a size has no reserve either.
func TestWhatCountsNothingIsNeverFull(t *testing.T) {
	dir := small(t, "size=0,nr_inodes=0")
	s, err := Look(dir)
	if err != nil || s.Size != 0 {
		t.Skipf("skipped: it counts %+v (%v)", s, err)
	}
	r := NewReserve(filepath.Join(dir, "reserve"), dir)
	if err := r.Hold(true); err != nil || !r.Held() || s.Full(true) {
		t.Errorf("held %v, full %v: %v", r.Held(), s.Full(true), err)
	}
	if _, err := os.Stat(r.path); !os.IsNotExist(err) {
		t.Errorf("there is a reserve: %v", err)
	}
}

func TestName(t *testing.T) {
	dir := small(t, "size=1m")
	if got, want := Name(filepath.Join(dir)), dir+" (tmpfs)"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := Name("/proc/self"); got != "/proc (proc)" {
		t.Errorf("%q", got)
	}
	if got := Name("/nowhere/at/all"); got != "that of /nowhere/at/all" {
		t.Errorf("%q", got)
	}
	if got := unescape(`/a\040b\134c\12`); got != `/a b\c\12` {
		t.Errorf("%q", got)
	}
}

// TestWithoutFallocate: where room can't be promised it is written.
func TestWithoutFallocate(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if err := write(f, 1<<20); err != nil {
		t.Fatal(err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil || st.Size != 1<<20 || st.Blocks*512 < 1<<20 {
		t.Errorf("%d bytes in %d blocks (%v)", st.Size, st.Blocks, err)
	}
}

func TestLeftToWhom(t *testing.T) {
	for _, c := range []struct {
		s          State
		root, user bool
	}{
		{State{Size: 1 << 30, Free: 1 << 20}, false, false},
		{State{Size: 1 << 30, Free: Least - 1}, true, true},
		{State{Size: 1 << 30, Free: 0, Kept: 1 << 20}, false, true},
		{State{Size: 1 << 30, Free: 1 << 20, Files: 10}, true, true},
		{State{}, false, false},
	} {
		if c.s.Full(true) != c.root || c.s.Full(false) != c.user {
			t.Errorf("%+v: full to root %v, to others %v", c.s, c.s.Full(true), c.s.Full(false))
		}
	}
}
