package foreign

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/edge/executor/shim/durable"
)

// TestFilesAreSyncedBesideEachOther: no sync returns before as many as may be are under way, nor does Sync before all are over.
func TestFilesAreSyncedBesideEachOther(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	check(t, os.MkdirAll(filepath.Join(root, "a"), 0o700))
	const files = 40
	for i := range files {
		check(t, os.WriteFile(filepath.Join(root, []string{".", "a"}[i%2], fmt.Sprint(i)), []byte("x"), 0o600))
	}
	var mu sync.Mutex
	full, now, all := make(chan struct{}), 0, map[uint64]int{}
	durable.OnSync = func(f *os.File) {
		info, err := f.Stat()
		mu.Lock()
		if all[info.Sys().(*syscall.Stat_t).Ino]++; err != nil {
			t.Error(err)
		}
		if now++; now == mostSyncs {
			close(full)
		}
		mu.Unlock()
		select {
		case <-full:
		case <-time.After(time.Minute):
			t.Error("files are synced one after another")
		}
	}
	defer func() { durable.OnSync = nil }()
	n, empty, err := Sync(root)
	if n != files || empty || err != nil {
		t.Errorf("%d files, empty %v, %v", n, empty, err)
	}
	if len(all) != files+2 || now != files+2 {
		t.Errorf("%d syncs of %d files and folders, want one of each of %d", now, len(all), files+2)
	}
}

// TestASyncThatFailsIsSaid, whichever of many it is, and none is left under way.
func TestASyncThatFailsIsSaid(t *testing.T) {
	root := t.TempDir()
	for i := range 100 {
		check(t, os.WriteFile(filepath.Join(root, fmt.Sprint(i)), nil, 0o600))
	}
	var mu sync.Mutex
	count := 0
	durable.OnSync = func(f *os.File) {
		mu.Lock()
		defer mu.Unlock()
		if count++; count == 10 {
			check(t, f.Close()) // its sync says so
		}
	}
	defer func() { durable.OnSync = nil }()
	if _, _, err := Sync(root); err == nil {
		t.Error("a file could not be synced, and it is called durable")
	}
	if count > 10+2*mostSyncs {
		t.Errorf("%d files were synced after all", count)
	}
}

// BenchmarkSync makes 4,000 files of one byte durable, one after another and as Sync does. The folder is below TMPDIR, which must lie on a
// disk for it to say anything.
func BenchmarkSync(b *testing.B) {
	for _, most := range []int{1, mostSyncs} {
		b.Run(fmt.Sprintf("%d-at-once", most), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				root := filepath.Join(b.TempDir(), "root")
				check(b, os.Mkdir(root, 0o700))
				for i := range 4000 {
					check(b, os.WriteFile(filepath.Join(root, fmt.Sprint(i)), []byte("x"), 0o600))
				}
				b.StartTimer()
				_, _, err := syncAtOnce(root, most)
				b.StopTimer()
				check(b, err)
				check(b, os.RemoveAll(root))
				b.StartTimer()
			}
		})
	}
}
