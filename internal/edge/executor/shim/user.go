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
