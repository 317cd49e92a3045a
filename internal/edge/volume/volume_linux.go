package volume

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Look asks the file system that a path lies on.
func Look(path string) (s State, err error) {
	var st unix.Statfs_t
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Statfs(path, &st)
	}
	if err != nil {
		return s, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	unit := int64(st.Bsize)
	if st.Frsize > 0 {
		unit = int64(st.Frsize)
	}
	return State{
		Size: int64(st.Blocks) * unit, Free: int64(st.Bavail) * unit, Kept: int64(st.Bfree-min(st.Bfree, st.Bavail)) * unit,
		Files: int64(st.Files), FreeFiles: int64(st.Ffree),
	}, nil
}

// Name is what people call the file system of a path: where it is mounted and of which type, as far as that can be found out.
func Name(path string) string {
	if at, kind := mount(path); at != "" {
		return fmt.Sprintf("%s (%s)", at, kind)
	}
	return "that of " + path
}

// mount finds where the file system of a path is mounted: of several places the innermost that the path goes through.
func mount(path string) (at, kind string) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return "", ""
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", ""
	}
	defer func() { _ = f.Close() }()
	device := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		_, after, found := strings.Cut(lines.Text(), " - ")
		if !found || len(fields) < 5 || fields[2] != device {
			continue
		}
		place := unescape(fields[4])
		if !strings.HasPrefix(path+"/", strings.TrimSuffix(place, "/")+"/") || len(place) < len(at) {
			continue
		}
		at, kind, _ = strings.Cut(place+"\x00"+after, "\x00")
		kind, _, _ = strings.Cut(kind, " ")
	}
	return at, kind
}

// unescape takes back the octal escapes of mountinfo: blank, tab, newline and backslash.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// allocate gives a file so many bytes that are its own. Where the file system can't promise them they are written.
func allocate(f *os.File, size int64) error {
	for {
		switch err := unix.Fallocate(int(f.Fd()), 0, 0, size); err {
		case nil:
			return nil
		case unix.EINTR:
		case unix.EOPNOTSUPP, unix.ENOSYS:
			return write(f, size)
		default:
			return &os.PathError{Op: "fallocate", Path: f.Name(), Err: err}
		}
	}
}
