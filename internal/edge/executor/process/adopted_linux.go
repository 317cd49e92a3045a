package process

import (
	"syscall"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/process/pool"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// adopted is the supervisor of a run directory found at start.
func (r *run) adopted(p tree.Process) *pool.Supervisor {
	s := &pool.Supervisor{Kill: func() error { return p.Signal(syscall.SIGKILL) }, Gone: make(chan struct{})}
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		fd = -1 // poll ignores it and only waits
	}
	r.e.tasks.Go(func() {
		for p.Alive() && !r.e.isClosed() {
			_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(glance.Milliseconds()))
		}
		if fd >= 0 {
			_ = unix.Close(fd)
		}
		close(s.Gone)
	})
	return s
}
