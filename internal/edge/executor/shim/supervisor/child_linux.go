package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
	"sluice.dev/sluice/internal/edge/volume"
)

// child is the init with everything below it.
type child struct {
	// birth is how the init began.
	birth *birth
	init  tree.Process
	group tree.Group
	// ears are what is listened to: the init's words and its end, and what the command writes to stdout and stderr as long as that is
	// nothing. Negative descriptors are closed, or somebody else's to read.
	ears [earNews + 1]unix.PollFd
	logs *logs
	// talk is the conversation with a program that takes its subjobs from its standard input; nil with any other. ended: it has ended, by
	// the init's word. born is when its init was started.
	talk  *talk
	ended bool
	born  time.Time
	// ending keeps strike and the release of what it needs apart; struck: it has killed.
	ending sync.Mutex
	struck bool
	// outgrew, known once it is closed: the kernel ended it because it passed the group's memory limit.
	outgrew bool
}

// What the ears of a child hear.
const (
	earWords = iota
	earEnd
	earStdout
	earStderr
	earNews
)

// startChild starts the init in its surroundings.
func startChild(dir shim.Dir, lock *shim.Lock, l *shim.Lease) (_ *child, err error) {
	c := &child{logs: newLogs(dir, l.LogLimit)}
	for i := range c.ears {
		c.ears[i] = unix.PollFd{Fd: -1, Events: unix.POLLIN}
	}
	var files [groupFD + 1]*os.File
	defer func() {
		for _, f := range files {
			_ = f.Close() // the init has its own
		}
		if err != nil {
			c.close()
		}
	}()
	if l.Isolation.Cgroup != "" {
		if c.group, err = tree.MakeGroup(l.Group(os.Getpid()),
			tree.Bounds{Memory: int64(l.Memory), Processes: l.Limits.Processes}); err != nil {
			return nil, err
		}
		if files[groupFD], err = os.Open(string(c.group)); err != nil {
			return nil, err
		}
	}
	if l.Stay != nil {
		c.talk, files[0], err = newTalk()
	} else {
		files[0], err = os.Open(os.DevNull)
	}
	if err != nil {
		return nil, err
	}
	if files[lockFD], err = lock.Share(groupFD + 1); err != nil {
		return nil, err
	}
	for i, ear := range [wordFD + 1]int{1: earStdout, 2: earStderr, wordFD: earWords} {
		if i == 0 {
			continue
		}
		var p [2]int
		if err = unix.Pipe2(p[:], unix.O_CLOEXEC); err != nil {
			return nil, os.NewSyscallError("pipe2", err)
		}
		c.ears[ear].Fd, files[i] = int32(p[0]), os.NewFile(uintptr(p[1]), "")
	}
	if c.birth, err = newBirth(dir, l, files); err != nil {
		return nil, err
	}
	c.born = time.Now()
	pid, err := c.birth.fork()
	if err != nil {
		return nil, fmt.Errorf("starting the init of the subjob: %w", err)
	}
	if c.talk != nil {
		c.talk.begin(c.logs, l.Token.String())
		for _, ear := range []int{earStdout, earStderr} {
			c.talk.listen(ear-earStdout, int(c.ears[ear].Fd))
			c.ears[ear].Fd = -1
		}
		c.ears[earNews].Fd = int32(c.talk.news)
	}
	// It can't be reaped before it is waited for, so the number is its own.
	c.init, _ = tree.Look(pid)
	if fd, err := unix.PidfdOpen(pid, 0); err == nil {
		c.ears[earEnd].Fd = int32(fd)
	}
	return c, nil
}

// hear waits for the init's next word, for patience at most; the zero word: there was none. Another reads the command's output. There is no
// goroutine: the switch to one and back would cost a short subjob a third of its supervisor's time.
func (c *child) hear(patience time.Duration) (w word) {
	if !c.listen(patience) || c.ears[earWords].Revents|c.ears[earEnd].Revents == 0 {
		return w
	}
	defer func() { c.ended = c.ended || w.Kind == exited || w.Kind == silent }()
	if c.ears[earWords].Revents != 0 {
		// it is written at once, or not at all
		if n, err := unix.Read(int(c.ears[earWords].Fd), w.bytes()); err == nil && n == int(wordSize) {
			return w
		}
	}
	c.shut(earWords)
	return word{Kind: silent, Code: -1, Signal: int32(syscall.SIGKILL)}
}

// listen waits until there is something to hear, for patience at most, and says whether there is.
func (c *child) listen(patience time.Duration) bool {
	wait := unix.NsecToTimespec(max(0, patience).Nanoseconds())
	n, err := unix.Ppoll(c.ears[:], &wait, nil)
	if err != nil || n == 0 {
		return false
	}
	for _, ear := range []int{earStdout, earStderr} {
		if c.ears[ear].Revents != 0 {
			c.logs.read(ear-earStdout, int(c.ears[ear].Fd), c.ears[ear].Revents&unix.POLLIN != 0)
			c.ears[ear].Fd = -1
		}
	}
	return true
}

// first waits for what the init says first: nil, the command runs, or why it does not.
func (c *child) first(l *shim.Lease) error {
	for {
		switch w := c.hear(tick); w.Kind {
		case 0:
		case running:
			return nil
		case silent:
			return errors.New("the init of the subjob ended before it could start the command")
		default:
			return c.birth.explain(l, w)
		}
	}
}

// strike kills all that the kernel ends in one go, however much it is: the init with its namespace, and the control group. It looks at
// nothing, so that a timer may call it while this process looks at something.
func (c *child) strike() {
	c.ending.Lock()
	defer c.ending.Unlock()
	c.struck = true
	if fd := c.ears[earEnd].Fd; fd >= 0 {
		_ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0)
	} else {
		_ = c.init.Signal(syscall.SIGKILL)
	}
	_ = c.group.Kill()
}

// wasStruck says whether strike has killed.
func (c *child) wasStruck() bool {
	c.ending.Lock()
	defer c.ending.Unlock()
	return c.struck
}

// end kills everything below this process and waits until nothing is left, for patience at most. It returns what is. The
// kernel's word decides and not a look at /proc, which can miss what moves meanwhile: this process is the reaper of all
// below it, so when it has no child left there is none.
func (c *child) end(patience time.Duration) []tree.Process {
	c.strike()
	until := time.Now().Add(patience)
	// Mostly the init takes all with it. A look at every process of the machine costs more than a whole subjob that does nothing.
	if !c.alone() {
		c.gone(tick)
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
		c.gone(pause)
	}
}

// gone waits for the end of the init, for patience at most.
func (c *child) gone(patience time.Duration) {
	fd := c.ears[earEnd].Fd
	if fd < 0 { // before Linux 5.3, or it was reaped
		patience = min(patience, 5*time.Millisecond)
	}
	wait := unix.NsecToTimespec(patience.Nanoseconds())
	_, _ = unix.Ppoll([]unix.PollFd{{Fd: fd, Events: unix.POLLIN}}, &wait, nil)
}

// alone reaps what can be reaped and says whether no child is left. In a pid namespace the init can be reaped only
// when the namespace is empty.
func (c *child) alone() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			return true
		case err == nil && pid == 0:
			return false
		case pid == c.init.PID:
			c.shut(earEnd)
		}
	}
}

func (c *child) shut(ear int) {
	c.ending.Lock()
	defer c.ending.Unlock()
	if fd := &c.ears[ear].Fd; *fd >= 0 {
		_ = unix.Close(int(*fd))
		*fd = -1
	}
}

// close reads what is still in the pipes and closes everything. All writers are gone.
func (c *child) close() {
	c.shut(earWords)
	c.shut(earEnd)
	c.listen(0)
	c.shut(earStdout)
	c.shut(earStderr)
	c.logs.close()
	if c.talk != nil {
		c.ears[earNews].Fd = -1
		c.talk.close()
	}
	c.outgrew = c.group.OutOfMemory() // the group knows it, and goes
	_ = c.group.Remove()
}

// logFile is a log that is made when something is written to it: most programs say nothing.
type logFile struct {
	path string
	// flags decide about an existing file (O_TRUNC, O_APPEND), mode who may read it: nobody else, since other users can guess the path.
	flags int
	mode  os.FileMode
	file  *os.File
	// noRoom is set to when the file system last had no room for the log, in Unix nanoseconds, and quota to whether that was for a quota;
	// nil: it is not noted.
	noRoom *atomic.Int64
	quota  *atomic.Bool
}

func (f *logFile) Write(p []byte) (n int, err error) {
	if f.file == nil {
		// A pipe in its place would have no reader and block the open for good.
		f.file, err = shim.OpenPlain(f.path, os.O_WRONLY|os.O_CREATE|f.flags, f.mode)
	}
	if err == nil {
		n, err = f.file.Write(p)
	} else {
		f.file = nil
	}
	if f.noRoom != nil && volume.NoRoom(err) {
		f.quota.Store(volume.OverQuota(err))
		f.noRoom.Store(time.Now().UnixNano())
	}
	return n, err
}

func (f *logFile) Close() error {
	if f.file == nil {
		return nil
	}
	return f.file.Close()
}

// logs are what the command writes to stdout and stderr. It goes into their files as long as the budget, in bytes, lasts. The rest is read
// and dropped, so that the program never blocks, and one line says how much it was.
type logs struct {
	paths  [2]string
	budget atomic.Int64
	pipes  []*os.File
	under  sync.WaitGroup
	noRoom atomic.Int64 // what logFile.noRoom points to
	quota  atomic.Bool  // what logFile.quota points to
}

func newLogs(dir shim.Dir, limit int64) *logs {
	l := &logs{paths: [2]string{dir.Stdout(), dir.Stderr()}}
	l.budget.Store(limit)
	return l
}

// read reads the end of a pipe until nobody writes to it any more, in the background: the disk may not keep up, and deadlines do not
// wait for it. Where there is nothing to read nobody does any more, and it is closed.
func (l *logs) read(which, fd int, some bool) {
	if !some {
		_ = unix.Close(fd)
		return
	}
	_ = unix.SetNonblock(fd, true)
	r := os.NewFile(uintptr(fd), "")
	l.pipes = append(l.pipes, r)
	l.under.Go(func() {
		f := &logFile{path: l.paths[which], flags: os.O_TRUNC, mode: 0o600, noRoom: &l.noRoom, quota: &l.quota}
		l.note(f, pour(f, r, &l.budget))
		_ = r.Close()
	})
}

// note closes a log, and says in it how many bytes were dropped.
func (l *logs) note(f *logFile, dropped int64) {
	if dropped > 0 {
		// Best effort: a disk that refused the log may refuse this line too.
		_, _ = fmt.Fprintf(f, "\n[sluice: the log limit was reached or the disk is full; %d bytes were dropped]\n", dropped)
	}
	_ = f.Close()
}

// close waits until all is written that was to be read. The writers are gone.
func (l *logs) close() {
	deadline := time.Now().Add(patience)
	for _, p := range l.pipes {
		_ = p.SetReadDeadline(deadline) // somebody outside may have been handed the other end
	}
	l.under.Wait()
}

// pour copies r to w while the budget lasts and returns how many bytes it dropped.
func pour(w io.Writer, r io.Reader, budget *atomic.Int64) (dropped int64) {
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		dropped += spend(w, buf[:n], budget)
		if err != nil {
			return dropped
		}
	}
}

// spend writes p while the budget lasts and returns how many bytes of it were dropped.
func spend(w io.Writer, p []byte, budget *atomic.Int64) (dropped int64) {
	keep := int64(len(p))
	if left := budget.Add(-keep); left < 0 {
		keep = max(0, keep+left)
	}
	if keep > 0 {
		if k, err := w.Write(p[:keep]); err != nil {
			keep = int64(k)
			budget.Store(0)
		}
	}
	return int64(len(p)) - keep
}

// tick is how often control.json, memory and the clock are looked at.
const tick = 50 * time.Millisecond

// patience is how long SIGKILL may take before remaining processes are reported.
const patience = 2 * time.Second
