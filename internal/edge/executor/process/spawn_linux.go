package process

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/supervisor"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// spawned is a supervisor, started by this daemon or by an earlier one.
type spawned struct {
	// kill ends it at once. It is no error if it has ended.
	kill func() error
	// begun is closed once it has said that the command runs; nil where nobody can hear it say so.
	begun <-chan struct{}
	// gone is closed when it has ended. well, which may be read from then on: it had done all that it was to do.
	gone chan struct{}
	well bool
}

// spawn starts the supervisor in a session of its own.
func (r *run) spawn() (*spawned, error) {
	log, err := os.OpenFile(r.dir.Log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	said, words, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = words.Close() }()
	cmd := exec.Command(r.e.o.ShimPath, supervisor.Supervise, string(r.dir))
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", words, log
	// It does little and many of it run: one thread of Go code at a time and a tight heap keep it small. A second one would take a tenth
	// more processor time, with what the threads tell each other.
	cmd.Env = append([]string{"GOMAXPROCS=1", "GOGC=50"}, planted.Environ()...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	shim.SealDescriptors(3)
	if err := cmd.Start(); err != nil {
		_ = said.Close()
		return nil, fmt.Errorf("starting the supervisor: %w", err)
	}
	begun := make(chan struct{})
	s := &spawned{kill: cmd.Process.Kill, begun: begun, gone: make(chan struct{})}
	go func() { // whatever it says is that the command runs; it may also end without a word
		_, err := said.Read(make([]byte, 1))
		if err == nil {
			close(begun)
		}
		_ = said.Close()
	}()
	go func() { // reaps it; what it did is in the run directory
		s.well = cmd.Wait() == nil
		close(s.gone)
	}()
	return s, nil
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
