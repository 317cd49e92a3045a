package vm

import (
	"encoding/binary"
	"errors"
	"os"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// disk is the guest's only one. The tests that want swap have it there, and no other: with swap a subjob that passes its limit is ended
// later.
const disk = "/dev/nvme0n1"

// swap has the guest move memory out to its disk for the rest of a test.
func swap(t *testing.T) {
	t.Helper()
	// The kernel's own format (mkswap(8)): version, last page, and the mark at the end of the first page.
	const page = 4096
	head := make([]byte, page)
	binary.LittleEndian.PutUint32(head[1024:], 1)
	binary.LittleEndian.PutUint32(head[1028:], swapBytes/page-1)
	copy(head[page-10:], "SWAPSPACE2")
	f, err := os.OpenFile(disk, os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(head)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatalf("the guest has no disk for swap: %v", err)
	}
	path, err := unix.BytePtrFromString(disk)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, errno := unix.Syscall(unix.SYS_SWAPON, uintptr(unsafe.Pointer(path)), 0, 0); errno != 0 {
		t.Fatalf("swapon %s: %v", disk, errno)
	}
	// Read back in large bits: in an emulated machine each fault takes long.
	if err := os.WriteFile("/proc/sys/vm/page-cluster", []byte("6"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		errno := unix.EINTR // a signal of Go's runtime interrupts it while much is read back
		for errno == unix.EINTR {
			_, _, errno = unix.Syscall(unix.SYS_SWAPOFF, uintptr(unsafe.Pointer(path)), 0, 0)
		}
		if errno != 0 {
			t.Errorf("swapoff %s: %v", disk, errno)
		}
	})
}
