package sense

import (
	"bytes"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// Process is one process as it was seen.
type Process struct {
	PID     int
	Started uint64
	// State is its letter in /proc/PID/stat; of one whose first thread has ended that of another.
	State byte
}

// Stopped reports whether it was stopped.
func (p *Process) Stopped() bool { return p.State == 'T' || p.State == 't' }

// Walker looks at trees of processes as tree.Below does, in room of its own that it uses again. Make it with NewWalker.
type Walker struct {
	path     path
	buf      [4 << 10]byte
	tasks    [1 << 10]byte
	children bool // the kernel lists them (CONFIG_PROC_CHILDREN)
	queue    []int
	seen     map[int]struct{}
	found    []Process
}

// NewWalker makes one with room for this many processes; it grows beyond that.
func NewWalker(room int) *Walker {
	w := &Walker{queue: make([]int, 0, room), seen: make(map[int]struct{}, room), found: make([]Process, 0, room)}
	w.path.add("/proc/self/task/")
	w.path.number(unix.Getpid())
	w.path.add("/children")
	_, err := w.path.read(w.buf[:])
	w.children = err == nil
	return w
}

// Below lists the living descendants of a process, valid until the next call. What is born meanwhile may be missed.
func (w *Walker) Below(root int) []Process {
	w.found = w.found[:0]
	if !w.children {
		for _, m := range tree.Below(root) {
			if p, ok := w.look(m.PID); ok {
				w.found = append(w.found, p)
			}
		}
		return w.found
	}
	clear(w.seen)
	w.queue = append(w.queue[:0], root)
	w.seen[root] = struct{}{}
	for next := 0; next < len(w.queue); next++ {
		pid := w.queue[next]
		if next > 0 {
			if p, ok := w.look(pid); ok {
				w.found = append(w.found, p)
			}
		}
		w.descend(pid)
	}
	return w.found
}

// Found is how many the last Below has found.
func (w *Walker) Found() int { return len(w.found) }

// Lives says whether exactly this process is there and not dead.
func (w *Walker) Lives(pid int, started uint64) bool {
	p, ok := w.look(pid)
	return ok && p.Started == started
}

// descend adds the children of all threads of a process to the queue.
func (w *Walker) descend(pid int) {
	w.eachTask(pid, func(tid int) bool {
		w.path.n = 0
		w.path.add("/proc/")
		w.path.number(pid)
		w.path.add("/task/")
		w.path.number(tid)
		w.path.add("/children")
		fd, err := w.path.open(unix.O_RDONLY)
		if err != nil {
			return true
		}
		defer func() { _ = unix.Close(fd) }()
		child := 0
		for {
			n, err := unix.Read(fd, w.buf[:])
			if err != nil || n <= 0 {
				return true
			}
			for _, c := range w.buf[:n] {
				if c >= '0' && c <= '9' {
					child = child*10 + int(c-'0')
				} else if child > 0 {
					if _, known := w.seen[child]; !known {
						w.seen[child] = struct{}{}
						w.queue = append(w.queue, child)
					}
					child = 0
				}
			}
		}
	})
}

// eachTask calls visit with every thread of a process until it says no more.
func (w *Walker) eachTask(pid int, visit func(tid int) bool) {
	w.path.n = 0
	w.path.add("/proc/")
	w.path.number(pid)
	w.path.add("/task")
	fd, err := w.path.open(unix.O_RDONLY | unix.O_DIRECTORY)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(fd) }()
	for {
		n, err := unix.Getdents(fd, w.tasks[:])
		if err != nil || n <= 0 {
			return
		}
		const nameAt = 19 // of struct linux_dirent64: inode and offset of eight bytes, length of two, type of one
		for at := 0; at+nameAt < n; {
			length := int(w.tasks[at+16]) | int(w.tasks[at+17])<<8
			if length <= nameAt || at+length > n {
				return
			}
			if tid, ok := Number(w.tasks[at+nameAt : at+length]); ok && !visit(int(tid)) {
				return
			}
			at += length
		}
	}
}

// Look returns the process that has a number now; false if there is none, or only one that is dead.
func (w *Walker) look(pid int) (p Process, ok bool) {
	w.path.n = 0
	w.path.add("/proc/")
	w.path.number(pid)
	w.path.add("/stat")
	text, err := w.path.read(w.buf[:])
	if err != nil {
		return p, false
	}
	p.PID = pid
	threads, ok := p.parse(text)
	if ok && (p.State == 'Z' || p.State == 'X') {
		if threads <= 1 {
			return p, false
		}
		p.State = w.anyState(pid)
	}
	return p, ok
}

// parse reads a stat line. The command's name, in parentheses, may hold anything, so fields count from the last closing one.
func (p *Process) parse(line []byte) (threads int64, ok bool) {
	i := bytes.LastIndexByte(line, ')')
	if i < 0 || i+2 >= len(line) {
		return 0, false
	}
	line = line[i+2:]
	const state, thread, started = 0, 17, 19 // fields 3, 20 and 22 of proc_pid_stat(5)
	for field := 0; len(line) > 0; field++ {
		switch field {
		case state:
			p.State = line[0]
		case thread:
			threads, _ = Number(line)
		case started:
			v, ok := Number(line)
			p.Started = uint64(v)
			return threads, ok
		}
		end := bytes.IndexByte(line, ' ')
		if end < 0 {
			return 0, false
		}
		line = line[end+1:]
	}
	return 0, false
}

// anyState is the state of a thread that lives, of a process whose first one has ended.
func (w *Walker) anyState(pid int) (state byte) {
	state = 'Z'
	w.eachTask(pid, func(tid int) bool {
		state = w.taskState(pid, tid)
		return state == 'Z' || state == 'X'
	})
	return state
}

func (w *Walker) taskState(pid, tid int) byte {
	w.path.n = 0
	w.path.add("/proc/")
	w.path.number(pid)
	w.path.add("/task/")
	w.path.number(tid)
	w.path.add("/stat")
	text, err := w.path.read(w.buf[:])
	var p Process
	if _, ok := p.parse(text); err != nil || !ok {
		return 'X'
	}
	return p.State
}

// Stopped reports whether no thread of a process that was found, and was told to stop, will run its program. A thread that waits in the
// kernel (D) does not: it stops on its way back. That may never be: the parent of a vfork(2) waits there for its child, which may have been
// stopped before.
func (w *Walker) Stopped(p *Process) bool {
	all := p.Stopped() || p.State == 'D'
	if all {
		w.eachTask(p.PID, func(tid int) bool {
			switch w.taskState(p.PID, tid) {
			case 'T', 't', 'Z', 'X', 'D':
			default:
				all = false
			}
			return all
		})
	}
	return all
}

// Memory is what a process has: resident that is its own or shared with others but in no file, and what of it lies in swap. What is mapped
// of files can be had from it without ending it. 0 of one that is gone.
func (w *Walker) Memory(pid int) (resident, swapped quantity.Amount) {
	w.path.n = 0
	w.path.add("/proc/")
	w.path.number(pid)
	w.path.add("/status")
	text, err := w.path.read(w.buf[:])
	if err != nil {
		return 0, 0
	}
	anon, _ := Field(text, "RssAnon:")
	shared, _ := Field(text, "RssShmem:")
	swap, _ := Field(text, "VmSwap:")
	return quantity.Amount(anon+shared) << 10, quantity.Amount(swap) << 10
}

// Signal sends a signal to exactly one process, and says whether it is there still.
func (w *Walker) Signal(p *Process, s unix.Signal) (there bool, err error) {
	fd, _, errno := unix.Syscall(unix.SYS_PIDFD_OPEN, uintptr(p.PID), 0, 0)
	switch errno {
	case 0:
	case unix.ESRCH, unix.EINVAL:
		return false, nil
	default:
		return true, errno
	}
	defer func() { _ = unix.Close(int(fd)) }()
	now, ok := w.look(p.PID) // after opening: the descriptor is of the process that is looked at
	if !ok || now.Started != p.Started {
		return false, nil
	}
	err = unix.PidfdSendSignal(int(fd), s, nil, 0)
	if err == unix.ESRCH {
		return false, nil
	}
	return true, err
}
