package process

import (
	"syscall"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// spawned is a supervisor with its subjob, started by this daemon or by an earlier one.
type spawned struct {
	// kill ends it at once. It is no error if it has ended.
	kill func() error
	// begun is closed once it has said that the command runs; nil where nobody can hear it say so.
	begun chan struct{}
	// gone is closed when it is done with this subjob. well and last may be read from then on: it had done all that it was to do; what
	// it said last, if it broke down.
	gone chan struct{}
	well bool
	last []byte
	// used: it has looked after others before.
	used bool
}

// adopted is the supervisor of a run directory that was found.
func (r *run) adopted(p tree.Process) *spawned {
	s := &spawned{kill: func() error { return p.Signal(syscall.SIGKILL) }, gone: make(chan struct{})}
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
		close(s.gone)
	})
	return s
}
