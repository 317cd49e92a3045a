package shim

import (
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/volume"
)

// Unmount unmounts what a subjob that has ended had mounted in its run directory: a mount point can be neither moved nor removed. (Without
// a mount namespace of its own a subjob's mounts stay behind.) It returns why the output or the checkpoint can't be published, if one of
// them was mounted on, else "".
func (d Dir) Unmount() (held string) {
	mounts, err := volume.Mounts()
	if err != nil {
		return ""
	}
	root := string(d)
	if above, err := filepath.EvalSymlinks(filepath.Dir(root)); err == nil { // the kernel's names have no links
		root = filepath.Join(above, filepath.Base(root))
	}
	all := mountedIn(mounts, root)
	for _, path := range slices.Backward(all) { // what was mounted last is on top
		_ = unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) // where that is not allowed, held says so all the same
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

// mountedIn returns the mount points at or below a path, in the order of the mounts.
func mountedIn(mounts []volume.Mount, root string) (all []string) {
	for _, m := range mounts {
		if m.Point == root || strings.HasPrefix(m.Point, root+"/") {
			all = append(all, m.Point)
		}
	}
	return all
}
