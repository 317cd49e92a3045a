package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// ownTasks is room for the init's own threads where the kernel counts them with the subjob's.
const ownTasks = 32

// child is the init with everything below it.
type child struct {
	// sys are the surroundings that the init is started in.
	sys   *syscall.SysProcAttr
	init  tree.Process
	group tree.Group
	// words are what the init says; closed when it can't say more. gone is closed when it was reaped.
	words chan word
	gone  chan struct{}
	// reaped: gone was seen closed.
	reaped bool
	// outgrew, known once it is closed: the kernel ended it because it passed the group's memory limit.
	outgrew bool
	logs    sync.WaitGroup
	// pipes are the ends the logs are read from.
	pipes []*os.File
}

// startChild starts the init in its surroundings.
func startChild(dir shim.Dir, l *shim.Lease) (*child, error) {
	c := &child{words: make(chan word, 4), gone: make(chan struct{})}
	c.sys = surroundings(l.Isolation)
	if l.Isolation.Cgroup != "" {
		bounds := tree.Bounds{Memory: int64(l.Memory)}
		if l.Limits.Processes > 0 {
			bounds.Processes = l.Limits.Processes + ownTasks
		}
		g, err := tree.MakeGroup(l.Isolation.Cgroup, fmt.Sprintf("%s-%d", l.Token, os.Getpid()), bounds)
		if err != nil {
			return nil, err
		}
		c.group = g
		fd, err := os.Open(string(g))
		if err != nil {
			return nil, err
		}
		defer func() { _ = fd.Close() }()
		c.sys.UseCgroupFD, c.sys.CgroupFD = true, int(fd.Fd())
	}
	if err := c.start(dir, l); err != nil {
		_ = c.group.Remove()
		return nil, err
	}
	return c, nil
}

func (c *child) start(dir shim.Dir, l *shim.Lease) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer func() { _ = w.Close() }()
	budget := new(atomic.Int64)
	budget.Store(l.LogLimit)
	out, err := c.logTo(dir.Stdout(), budget)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	errs, err := c.logTo(dir.Stderr(), budget)
	if err != nil {
		return err
	}
	defer func() { _ = errs.Close() }()
	self := "/proc/self/exe"
	pid, err := launch(self, []string{self, Init, string(dir)}, "", os.Environ(), []*os.File{out, errs, w}, c.sys)
	if err != nil {
		_ = r.Close()
		return fmt.Errorf("starting the init of the subjob: %w", err)
	}
	c.init, _ = tree.Look(pid) // it can't be reaped before it is waited for, so the number is its own
	go c.listen(r)
	go func() {
		for { // how the command ended is said in words
			if _, err := syscall.Wait4(pid, nil, 0, nil); !errors.Is(err, syscall.EINTR) {
				break
			}
		}
		close(c.gone)
	}()
	return nil
}

// launch starts a program with an empty stdin and these files from stdout on. Package os/exec would first start a process of its own, to
// see what the kernel can do, and wait for it.
func launch(path string, args []string, dir string, env []string, files []*os.File, sys *syscall.SysProcAttr) (pid int, err error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, err
	}
	defer func() { _ = null.Close() }()
	attr := &syscall.ProcAttr{Dir: dir, Env: env, Files: []uintptr{null.Fd()}, Sys: sys}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	pid, _, err = syscall.StartProcess(path, args, attr)
	runtime.KeepAlive(files)
	return pid, err
}

func (c *child) listen(r *os.File) {
	defer close(c.words)
	defer func() { _ = r.Close() }()
	for in := json.NewDecoder(r); ; {
		var w word
		if in.Decode(&w) != nil {
			return
		}
		c.words <- w
	}
}

// first waits for what the init says first: the command runs (PID), or does not (Err).
func (c *child) first() word {
	w, ok := <-c.words
	if !ok {
		w.Err = "the init of the subjob ended before it could start the command; see shim.log"
	}
	return w
}

// end kills everything below this process and waits until nothing is left, for patience at most. It returns what is. The
// kernel's word decides and not a look at /proc, which can miss what moves meanwhile: this process is the reaper of all
// below it, so when it has no child left there is none.
func (c *child) end(patience time.Duration) []tree.Process {
	_ = c.init.Signal(syscall.SIGKILL)
	_ = c.group.Kill()
	until := time.Now().Add(patience)
	// Mostly the init takes all with it. A look at every process of the machine costs more than a whole subjob that does nothing.
	if !c.alone() {
		select {
		case <-time.After(tick):
		case <-c.dead():
		}
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		if c.alone() {
			return nil
		}
		left := tree.Processes(tree.Below(os.Getpid()))
		if !time.Now().Before(until) {
			if len(left) == 0 { // it is on its way out, which can take a while too
				left = []tree.Process{c.init}
			}
			return left
		}
		tree.Kill(left)
		select {
		case <-time.After(pause):
		case <-c.dead():
		}
	}
}

// dead is closed once the init was reaped; nil, which never is ready, when that is known.
func (c *child) dead() <-chan struct{} {
	if c.reaped {
		return nil
	}
	return c.gone
}

// alone reaps what can be reaped and says whether no child is left. In a pid namespace the init can be reaped only
// when the namespace is empty.
func (c *child) alone() bool {
	select {
	case <-c.gone:
		c.reaped = true
	default:
	}
	for c.reaped { // before that, waiting for any child would take the init's end from who waits for it
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			return true
		case err == nil && pid == 0:
			return false
		}
	}
	return false
}

// close reads what is still in the pipes and lets go of everything. All writers are gone.
func (c *child) close() {
	deadline := time.Now().Add(patience)
	for _, p := range c.pipes {
		_ = p.SetReadDeadline(deadline) // somebody outside may have been handed the other end
	}
	c.logs.Wait()
	c.outgrew = c.group.OutOfMemory() // the group knows it, and goes
	_ = c.group.Remove()
}
