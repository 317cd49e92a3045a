// Package volumetest makes file systems for tests. It must not be used elsewhere.
package volumetest

import (
	"bytes"
	"compress/bzip2"
	_ "embed"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// btrfs is an image of 112 MiB with a subvolume v of QuotaSize bytes, whatever is free beside it: mkfs.btrfs -M, btrfs quota enable,
// btrfs subvolume create v, btrfs qgroup limit 24M v, chmod 700 v; bzip2 -9.
//
//go:embed testdata/quota.btrfs.bz2
var btrfs []byte

// QuotaSize is the quota of the folder that Quota makes, in bytes.
const QuotaSize = 24 << 20

// Quota mounts a folder with a quota that holds for every user, root too. A write beyond it meets EDQUOT; what the file system says is
// free is more, and it tells nobody of the quota. It skips the test where that can't be had: it needs root, a loop device and btrfs.
func Quota(t testing.TB) (dir string) {
	t.Helper()
	place := t.TempDir()
	image := filepath.Join(place, "image")
	if err := unpack(image); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(place, "mounted")
	if err := os.Mkdir(at, 0o700); err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command("mount", "-t", "btrfs", "-o", "loop", image, at).CombinedOutput(); err != nil {
		t.Skipf("skipped: a file system with a quota can't be mounted here: %v: %s", err, said)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(at, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", at, err)
		}
	})
	return filepath.Join(at, "v")
}

// unpack writes the image, with holes where it is empty.
func unpack(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	in := bzip2.NewReader(bytes.NewReader(btrfs))
	block, size := make([]byte, 64<<10), int64(0)
	for err == nil {
		var n int
		n, err = io.ReadFull(in, block)
		if piece := block[:n]; len(bytes.Trim(piece, "\x00")) > 0 {
			if _, bad := f.WriteAt(piece, size); bad != nil {
				err = bad
			}
		}
		size += int64(n)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = f.Truncate(size)
	}
	return errors.Join(err, f.Close())
}
