package shim

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Unmount takes away the file systems that a subjob which has ended has mounted in its run directory, for all to see where it had no view
// of its own: what lies below can be neither moved nor removed. It says which held what was to be published; empty: none.
func (d Dir) Unmount() (held string) {
	data, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	root := string(d)
	if above, err := filepath.EvalSymlinks(filepath.Dir(root)); err == nil { // the kernel's names have no links
		root = filepath.Join(above, filepath.Base(root))
	}
	all := mountedIn(string(data), root)
	for _, path := range slices.Backward(all) { // what was mounted last is on top
		_ = unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) // what may not be is told of all the same
	}
	for _, path := range all {
		in, _ := filepath.Rel(root, path)
		folder, rest, _ := strings.Cut(in, "/")
		var name string
		switch folder {
		case ".":
			name = "its run directory"
		case filepath.Base(d.Output()):
			name = "SLUICE_OUTPUT_DIR"
		case filepath.Base(d.Checkpoint()):
			name = "SLUICE_CHECKPOINT_DIR"
		default:
			continue
		}
		if rest != "" {
			name = strings.ToValidUTF8(rest, "?") + " in " + name
		}
		return "a file system is mounted on " + name + ": write into the folder itself"
	}
	return ""
}

// mountedIn are the mount points at or below a path, in the order in which they were mounted.
func mountedIn(mountinfo, root string) (all []string) {
	for line := range strings.Lines(mountinfo) {
		const point = 4
		f := strings.Fields(line)
		if len(f) <= point {
			continue
		}
		if path := unescaped(f[point]); path == root || strings.HasPrefix(path, root+"/") {
			all = append(all, path)
		}
	}
	return all
}

// unescaped undoes how /proc names paths: spaces and the like as \040.
func unescaped(s string) string {
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
