package shim

// User is who a subjob runs as.
type User struct {
	Name     string
	UID, GID uint32
	Groups   []uint32
}

// Limits are resource limits of every process of a subjob (setrlimit); 0 leaves the daemon's own.
type Limits struct {
	// Processes is RLIMIT_NPROC: it counts all of a user's processes. OpenFiles is RLIMIT_NOFILE.
	Processes, OpenFiles uint64
}

// Isolation is what holds a subjob's processes together on this machine.
type Isolation struct {
	// PIDNamespace: a namespace whose init dies with the supervisor, and everything in it.
	PIDNamespace bool
	// UserNamespace was needed to get it.
	UserNamespace bool
	// Proc: the namespace has a /proc of its own.
	Proc bool
	// Cgroup is a cgroup v2 directory in which groups can be made and killed; empty for none.
	Cgroup string
	// KernelMemory: groups made there have a memory limit of their own; otherwise memory is watched.
	KernelMemory bool
}
