package foreign

import (
	"os"

	"golang.org/x/sys/unix"
)

// flagsFixed are the flags of a file system by which not even root may change, move or remove what has them, until they are taken off
// (chattr +i, +a).
const flagsFixed = 0x10 | 0x20

// Free takes from what a path stands for what would keep it from being moved: the flags by which nobody may change it, and a right of its
// owner's that is missing. It is best effort: whoever moves it then is told.
func Free(path string) {
	held, err := pin(unix.AT_FDCWD, path, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(held) }()
	free(held)
}

// Free does so with what was seen in a tree, so that it can be read.
func (e *Entry) Free() {
	if least := e.least(); os.Geteuid() == 0 || e.stat.Mode&least == least {
		return
	}
	held, err := pin(e.dir, e.name, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(held) }()
	free(held)
}

// least are the rights that the owner of a file or folder needs to read it.
func (e *Entry) least() uint32 {
	switch {
	case e.Dir:
		return 0o500
	case e.Plain:
		return 0o400
	}
	return 0
}

// free says whether it has changed something.
func free(held int) (changed bool) {
	var st unix.Stat_t
	if unix.Fstat(held, &st) != nil {
		return false
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return false
	}
	changed = thaw(held)
	if least := uint32(0o700); kind == unix.S_IFDIR && int(st.Uid) == os.Geteuid() && st.Mode&least != least {
		changed = unix.Chmod(again(held), st.Mode&0o7777|least) == nil || changed
	} else if kind == unix.S_IFREG && int(st.Uid) == os.Geteuid() && st.Mode&0o400 == 0 {
		changed = unix.Chmod(again(held), st.Mode&0o7777|0o400) == nil || changed
	}
	return changed
}

// thaw takes the flags off a plain file or directory, and says whether it had any.
func thaw(held int) bool {
	var st unix.Statx_t
	if unix.Statx(held, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, &st) != nil ||
		st.Attributes&(unix.STATX_ATTR_IMMUTABLE|unix.STATX_ATTR_APPEND) == 0 {
		return false
	}
	fd, err := retry(func() (int, error) {
		return unix.Open(again(held), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	return err == nil && unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags&^flagsFixed) == nil
}
