package files_test

import (
	"bytes"
	"errors"
	"io/fs"
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

// TestWhatRootPutsIsTheOwners: root may put something into a store of somebody else, who can write there as before.
func TestWhatRootPutsIsTheOwners(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can put something into a store of somebody else")
	}
	const nobody = 65534
	dir := filepath.Join(t.TempDir(), "store")
	open := func() *files.Dir {
		s, err := files.Open(files.Options{Kind: "local", Dir: dir, Make: true, Writer: "w"})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	open()
	each := func(do func(path string) error) {
		if err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry,
			err error) error {
			return errors.Join(err, do(path))
		}); err != nil {
			t.Fatal(err)
		}
	}
	each(func(path string) error { return os.Chown(path, nobody, nobody) })
	s := open()
	o, err := s.Put(t.Context(), "", bytes.NewReader([]byte("root's")))
	if err == nil {
		err = store.Name(t.Context(), s, "a/b/c", store.Refs{"x": o.Digest})
	}
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	each(func(path string) error {
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		if n++; st.Uid != nobody || st.Gid != nobody {
			t.Errorf("%s is of user %d and group %d", path, st.Uid, st.Gid)
		}
		return nil
	})
	if n < 10 {
		t.Errorf("there are only %d files and folders", n)
	}
}
