package volume

import (
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

// Name names the file system of a path for people: its mount point and type, as far as they can be found out.
func Name(path string) string {
	if at, kind := mount(path); at != "" {
		return fmt.Sprintf("%s (%s)", at, kind)
	}
	return "that of " + path
}

// mount finds where the file system of a path is mounted: of several mount points of it, the innermost that the path goes through.
func mount(path string) (at, kind string) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return "", ""
	}
	mounts, _ := Mounts()
	device := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	var over, last Mount
	for _, m := range mounts {
		if !strings.HasPrefix(path+"/", strings.TrimSuffix(m.Point, "/")+"/") {
			continue
		}
		if len(m.Point) >= len(last.Point) {
			last = m
		}
		if m.Device == device && len(m.Point) >= len(over.Point) {
			over = m
		}
	}
	if over.Point == "" && last.Type == "btrfs" { // the files of a subvolume have a device number that no mount has
		over = last
	}
	return over.Point, over.Type
}

// Mount is a mounted file system.
type Mount struct {
	// Device is its major:minor, Point the directory that it is mounted on, Type as mount -t takes it.
	Device, Point, Type string
}

// Mounts lists what is mounted in our mount namespace, in the order in which it was mounted.
func Mounts() ([]Mount, error) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	return ParseMounts(string(data)), err
}

// ParseMounts reads the text of a mountinfo file; lines that are none of its are left out.
func ParseMounts(mountinfo string) (all []Mount) {
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(line, " - ")
		f, kind := strings.Fields(before), strings.Fields(after)
		if len(f) > 4 && len(kind) > 0 {
			all = append(all, Mount{Device: f[2], Point: unescape(f[4]), Type: kind[0]})
		}
	}
	return all
}

// unescape undoes the octal escapes of mountinfo: \040 for a blank, and so for tab, newline and backslash.
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

// allocate gives a file size bytes of its own. Where the file system can't promise them they are written.
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
