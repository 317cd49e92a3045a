package shim

import "os"

// User is who a subjob runs as.
type User struct {
	Name     string
	UID, GID uint32
	Groups   []uint32
}

// Give makes a path a user's own; nil is the daemon's own user, whose it is already.
func Give(path string, u *User) error {
	if u == nil {
		return nil
	}
	return os.Lchown(path, int(u.UID), int(u.GID))
}

// Limits of one subjob; 0 for none.
type Limits struct {
	// Processes bounds its processes and threads together.
	Processes int64
	// OpenFiles is RLIMIT_NOFILE of every process; 0 leaves the daemon's own.
	OpenFiles uint64
	// Scratch bounds, in bytes of disk, what it writes to its work directory, its TMPDIR and its progress folder. Files bounds how
	// many files, folders and links it makes there.
	Scratch, Files int64
}

// How a subjob gets its work directory to write to, from what is unpacked once for all of them.
const (
	// WorkOverlay is an overlay in its mount namespace.
	WorkOverlay = "overlay"
	// WorkReflink is a copy whose files share their blocks with the original until one is written.
	WorkReflink = "reflink"
	// WorkCopy is a plain copy.
	WorkCopy = "copy"
)

// Isolation is what holds a subjob's processes together on this machine, and what it has of its own.
type Isolation struct {
	// PIDNamespace: a namespace whose init dies with the supervisor, and everything in it.
	PIDNamespace bool
	// UserNamespace was needed to get it.
	UserNamespace bool
	// Proc: the namespace has a /proc of its own, in a mount namespace of its own.
	Proc bool
	// Own: /tmp, /dev/shm and System V IPC are the subjob's own, and go with it.
	Own bool
	// Work is how it gets its work directory; empty is WorkCopy.
	Work string
	// Cgroup is a cgroup v2 directory in which groups can be made and killed; empty for none.
	Cgroup string
	// KernelMemory: groups made there have a memory limit of their own; otherwise memory is watched.
	KernelMemory bool
	// KernelProcesses: the kernel holds a subjob to its limit of processes, by its group or its user namespace; otherwise they
	// are counted.
	KernelProcesses bool
}
