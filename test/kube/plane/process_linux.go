//go:build kubernetes

package plane

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a running program of a plane, or of what a test has beside one.
type Process = process

// Launch starts a program in the namespaces of a thread, with its output at the end of a log: on runs there what it is given. It does not
// end with the test's process by itself, since its parent is out of its sight: whoever made the namespaces sees to it. Its name is for
// what is said of it.
func Launch(on func(func()), name, log string, env []string, program string, args ...string) (*Process, error) {
	return launchOn(on, 0, name, log, env, program, args...)
}

// End asks it to end, kills it if it has not within patience, and returns when it is gone.
func (p *process) End(patience time.Duration) { p.end(patience) }

// Ended says whether it is gone.
func (p *process) Ended() bool { return p.ended() }

// PID is its number.
func (p *process) PID() int { return p.cmd.Process.Pid }

// starter starts programs on one thread that never ends: the kernel kills what a thread started when that thread ends (Pdeathsig), not
// only when the process does.
var starter = sync.OnceValue(func() chan func() { //nolint:gochecknoglobals // one thread for all
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

// process is a running program. One of the plane's own is killed when the test's process ends, however that ends.
type process struct {
	name string
	cmd  *exec.Cmd
	// done is closed once it has ended; err says how, and is read only after that.
	done chan struct{}
	err  error
}

// launch starts a program in a process group of its own, with its output at the end of a log.
func launch(name, log, program string, args ...string) (*process, error) {
	return launchOn(func(f func()) { starter() <- f }, syscall.SIGKILL, name, log, nil, program, args...)
}

func launchOn(on func(func()), dies syscall.Signal, name, log string, env []string, program string, args ...string) (*process, error) {
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: exec.Command(program, args...), done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = out, out, env
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: dies}
	started := make(chan error, 1)
	on(func() { started <- p.cmd.Start() })
	err = <-started
	_ = out.Close() // the child has its own
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// ended says whether the program is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// end asks the program's group to end, and kills it if it has not within patience. It returns when the program is gone.
func (p *process) end(patience time.Duration) {
	if p.ended() {
		return
	}
	if patience > 0 {
		p.signal(syscall.SIGTERM)
		select {
		case <-p.done:
			return
		case <-time.After(patience):
		}
	}
	p.signal(syscall.SIGKILL)
	<-p.done
}

func (p *process) signal(s syscall.Signal) {
	if !p.ended() {
		_ = syscall.Kill(-p.cmd.Process.Pid, s) // gone in between is what was wanted
	}
}

// usage is what a program holds and has used so far.
func (p *process) usage() (u Usage, err error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return Usage{}, err
	}
	for line := range strings.Lines(string(status)) {
		key, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		switch key {
		case "VmRSS":
			u.Resident = kib << 10
		case "VmHWM":
			u.Peak = kib << 10
		}
	}
	if u.Resident == 0 {
		return Usage{}, errors.New(p.name + " says no VmRSS: it has ended")
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return Usage{}, err
	}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name before it may have spaces
	var ticks int64
	if words := strings.Fields(rest); len(words) > 12 {
		user, _ := strconv.ParseInt(words[11], 10, 64)
		system, _ := strconv.ParseInt(words[12], 10, 64)
		ticks = user + system
	}
	u.CPU = time.Duration(ticks) * time.Second / 100 // the kernel's unit for programs is 10 ms
	return u, nil
}

// Tail is the last lines of a log.
func Tail(path string, lines int) string { return tail(path, lines) }

// tail is the last lines of a log.
func tail(path string, lines int) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}
