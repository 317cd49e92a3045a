package volume

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/volume/volumetest"
)

// TestWhatAQuotaMeans: blocks are of 1 KiB, no limit is none, and a soft limit holds once its time is over.
func TestWhatAQuotaMeans(t *testing.T) {
	if size := unsafe.Sizeof(diskQuota{}); size != 72 {
		t.Fatalf("a quota has %d bytes, the kernel's has 72", size)
	}
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		what  string
		q     diskQuota
		want  State
		full  bool
		files bool
	}{
		{"no limits", diskQuota{bytes: 1 << 40, files: 9}, State{}, false, false},
		{"a hard one", diskQuota{hardBlocks: 1 << 20, bytes: 1 << 29, hardFiles: 10, files: 9},
			State{Size: 1 << 30, Free: 1 << 29, Files: 10, FreeFiles: 1}, false, false},
		{"used up", diskQuota{hardBlocks: 1 << 20, bytes: 1<<30 - 1}, State{Size: 1 << 30, Free: 1}, true, false},
		{"more than all, by root", diskQuota{hardBlocks: 1 << 20, bytes: 1 << 31}, State{Size: 1 << 30}, true, false},
		{"no more files", diskQuota{hardFiles: 10, files: 10}, State{Files: 10}, true, true},
		{"a soft one is passed", diskQuota{hardBlocks: 1 << 20, softBlocks: 1 << 10, bytes: 1 << 21, bytesUntil: 1001},
			State{Size: 1 << 30, Free: 1<<30 - 1<<21}, false, false},
		{"and its time is over", diskQuota{hardBlocks: 1 << 20, softBlocks: 1 << 10, bytes: 1 << 21, bytesUntil: 1000},
			State{Size: 1 << 20}, true, false},
		{"a soft one alone", diskQuota{softFiles: 5, files: 6, filesUntil: 999}, State{Files: 5}, true, true},
	} {
		if got := c.q.state(now); got != c.want || got.Full(false) != c.full || got.OutOfFiles(false) != c.files {
			t.Errorf("%s: %+v, full %v, out of files %v; want %+v", c.what, got, got.Full(false), got.OutOfFiles(false), c.want)
		}
	}
}

// TestTheTighterOneBounds: of a file system and a quota what is full counts, else what has less left.
func TestTheTighterOneBounds(t *testing.T) {
	disk, full := State{Size: 1 << 40, Free: 1 << 30}, State{Size: 1 << 40}
	small := State{Limit: UserQuota, ID: 7, Size: 1 << 30, Free: 1 << 20}
	large := State{Limit: GroupQuota, ID: 8, Size: 1 << 41, Free: 1 << 31}
	files := State{Limit: UserQuota, ID: 7, Files: 10}
	for _, c := range []struct{ s, quota, want State }{
		{disk, small, small}, {disk, large, disk}, {full, small, full}, {disk, files, files}, {State{}, large, large},
	} {
		if got := tighter(c.s, c.quota); got != c.want {
			t.Errorf("of %+v and %+v %+v bounds", c.s, c.quota, got)
		}
	}
	if name := small.Name("/proc"); name != "the quota of user 7 on the file system /proc (proc)" {
		t.Errorf("%q", name)
	}
	if name := large.Name("/proc"); name != "the quota of group 8 on the file system /proc (proc)" {
		t.Errorf("%q", name)
	}
	if got := Quotas(t.TempDir(), 4294967001, 4294967001); len(got) != 0 {
		t.Errorf("nobody has the quotas %+v", got)
	}
}

// TestAHiddenQuota: a file system that says nothing of a quota has room by what it says, and none by what it refuses.
func TestAHiddenQuota(t *testing.T) {
	dir := volumetest.Quota(t)
	if err := Try(dir, "try-*"); err != nil {
		t.Fatalf("with room: %v", err)
	}
	err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 2*volumetest.QuotaSize), 0o600)
	if !OverQuota(err) || !NoRoom(err) {
		t.Fatalf("filling the quota: %v", err)
	}
	if s, err := Look(dir); err != nil || s.Full(true) || s.Full(false) {
		t.Errorf("%+v (%v): the file system is not full", s, err)
	}
	if err := Try(dir, "try-*"); !OverQuota(err) {
		t.Errorf("without room: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "try-*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	hidden := State{Limit: HiddenQuota}
	if name := hidden.Name(dir); name != "a quota on the file system "+filepath.Dir(dir)+" (btrfs)" ||
		!strings.Contains(hidden.Text(true), unix.EDQUOT.Error()) {
		t.Errorf("%q, %q", name, hidden.Text(true))
	}
	r := NewReserve(filepath.Join(dir, "reserve"), dir)
	if err := r.Hold(true); !OverQuota(err) || r.Held() {
		t.Errorf("the reserve is held %v: %v", r.Held(), err)
	}
}
