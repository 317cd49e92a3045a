package tree

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// OwnPlaces are where a subjob with a mount namespace has a file system in memory of its own.
func OwnPlaces() []string { return []string{"/tmp", "/dev/shm"} }

// inodeSize is about what the kernel keeps for a file in memory beside its content, in bytes.
const inodeSize = 1 << 10

// Stores are file systems in memory that belong to a tree: what lies there is its memory, whichever process put it there. The
// zero value is none.
type Stores struct {
	files []*os.File
	// devices are their numbers as /proc/PID/smaps writes them.
	devices map[string]bool
}

// OpenStores opens the own places of the tree below an init. One that is not in memory is left out.
func OpenStores(init int) (s Stores) {
	s.devices = map[string]bool{}
	for _, place := range OwnPlaces() {
		f, err := os.Open(filepath.Join("/proc", strconv.Itoa(init), "root",
			place)) //nolint:gosec // the path is of two numbers and a constant
		if err != nil {
			continue
		}
		var st unix.Statfs_t
		var info unix.Stat_t
		if unix.Fstatfs(int(f.Fd()), &st) != nil || st.Type != unix.TMPFS_MAGIC || unix.Fstat(int(f.Fd()), &info) != nil {
			_ = f.Close()
			continue
		}
		s.files = append(s.files, f)
		s.devices[fmt.Sprintf("%02x:%02x", unix.Major(info.Dev), unix.Minor(info.Dev))] = true
	}
	return s
}

// Used is what lies in them, in bytes.
func (s *Stores) Used() (used int64) {
	for _, f := range s.files {
		var st unix.Statfs_t
		if unix.Fstatfs(int(f.Fd()), &st) == nil {
			used += int64(st.Blocks-st.Bfree)*st.Bsize + max(0, int64(st.Files-st.Ffree)-1)*inodeSize // its root is not the subjob's
		}
	}
	return used
}

// Close lets go of them: the kernel keeps what is held.
func (s *Stores) Close() {
	for _, f := range s.files {
		_ = f.Close()
	}
	s.files = nil
}

// mappedIn adds up the shares of the mappings that are of these devices. A mapping begins with a line such as
// "7f00-7f10 rw-s 00000000 00:2f 12  /dev/shm/x".
func (s *Stores) mappedIn(smaps []byte) (sum int64) {
	of := false
	for line := range bytes.Lines(smaps) {
		f := bytes.Fields(line)
		switch {
		case len(f) >= 5 && bytes.IndexByte(f[0], '-') > 0 && !bytes.HasSuffix(f[0], []byte(":")):
			of = s.devices[string(f[3])]
		case of && len(f) >= 2 && (string(f[0]) == "Pss:" || string(f[0]) == "SwapPss:"):
			kb, err := strconv.ParseInt(string(f[1]), 10, 64)
			if err == nil {
				sum += kb << 10
			}
		}
	}
	return sum
}
