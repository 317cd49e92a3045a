package files_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/files"
)

// TestAFullDiskIsCollected: what makes room needs none.
func TestAFullDiskIsCollected(t *testing.T) {
	disk := t.TempDir()
	if err := syscall.Mount("sluice-test", disk, "tmpfs", 0, "size=256k"); err != nil {
		t.Skip("no file system of a size of its own can be mounted here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	s, err := files.Open(files.Options{Kind: "local", Dir: filepath.Join(disk, "store"), Make: true, Writer: "w"})
	if err != nil {
		t.Fatal(err)
	}
	o, err := s.Put(t.Context(), "", bytes.NewReader(make([]byte, 4096)))
	if err != nil {
		t.Fatal(err)
	}
	ago := time.Now().Add(-2 * time.Hour)
	if err = os.Chtimes(filepath.Join(disk, "store", "objects", string(o.Digest[:2]), string(o.Digest)), ago, ago); err != nil {
		t.Fatal(err)
	}
	if err = os.WriteFile(filepath.Join(disk, "rest"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	c, err := store.Collect(t.Context(), s, store.LeastAge, false)
	if err != nil || c.Removed != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}
