//go:build kubernetes && machine

package machine

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// space is the namespaces of a machine: a first process that holds them, and a thread of ours that is in them.
type space struct {
	first *exec.Cmd
	on    chan func()
	over  chan struct{}
}

// newSpace makes the namespaces. Its error says what the machine that we run on does not allow.
func newSpace(dir string) (*space, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	s := &space{on: make(chan func()), over: make(chan struct{})}
	s.first = exec.Command(self)
	s.first.Env = []string{inside + "=" + dir}
	s.first.Stderr = os.Stderr
	s.first.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Pdeathsig:  syscall.SIGKILL,
	}
	out, err := s.first.StdoutPipe()
	if err != nil {
		return nil, err
	}
	ready := make(chan error)
	go s.thread(ready, func() error {
		if err := s.first.Start(); err != nil {
			return fmt.Errorf("namespaces of its own for mounts, processes and the network: %w", err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if line = strings.TrimSpace(line); line != "ready" {
			rest, _ := io.ReadAll(out)
			return errors.Join(fmt.Errorf("preparing them: %s%s", line, rest), err)
		}
		return enter(s.first.Process.Pid)
	})
	if err := <-ready; err != nil {
		s.end()
		return nil, err
	}
	return s, nil
}

// thread runs what is to run in the namespaces, on one thread that ends with the process, or with the space: what it has started is then
// killed.
func (s *space) thread(ready chan<- error, prepare func() error) {
	runtime.LockOSThread() // and never unlocked: no other goroutine may run there
	err := prepare()
	ready <- err
	for err == nil {
		select {
		case f := <-s.on:
			f()
		case <-s.over:
			return
		}
	}
}

// enter puts this thread into the namespaces of a process; of processes, what it starts.
func enter(pid int) error {
	var files []*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for _, kind := range []string{"pid", "net", "ipc", "uts", "mnt"} { // mnt last: the others are found in this one
		f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // a thread that shares its folder with others may not change what is mounted
		return fmt.Errorf("a thread of its own: %w", err)
	}
	for _, f := range files {
		if err := unix.Setns(int(f.Fd()), 0); err != nil {
			return fmt.Errorf("entering %s: %w", f.Name(), err)
		}
	}
	return nil
}

// do runs f in the namespaces.
func (s *space) do(f func()) {
	done := make(chan struct{})
	s.on <- func() { f(); close(done) }
	<-done
}

// listen listens in the machine's network.
func (s *space) listen(address string) (l net.Listener, err error) {
	s.do(func() { l, err = net.Listen("tcp4", address) })
	return l, err
}

// dial connects to somebody in the machine's network.
func (s *space) dial(address string) (c net.Conn, err error) {
	s.do(func() { c, err = net.Dial("tcp4", address) })
	return c, err
}

// end kills all that is in the namespaces, and with it they are gone.
func (s *space) end() {
	if s.first.Process != nil {
		_ = s.first.Process.Kill()
		_ = s.first.Wait()
	}
	close(s.over)
}
