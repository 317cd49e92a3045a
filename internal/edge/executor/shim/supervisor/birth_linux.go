package supervisor

import (
	"errors"
	"reflect"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim"
)

// birth is the init of a subjob before it is there, and the command below it. The init has no program of its own: it runs in the memory of
// the supervisor, on a stack of its own, and does what is written down here and nothing else. To start a program for it, or to
// copy the memory, would cost more than all else that a subjob which does nothing pays for.
type birth struct {
	// dir is the run directory, path the command's program; both for the words of an error.
	dir  shim.Dir
	path string
	// spaces are the namespaces it gets (CLONE_NEW...).
	spaces uintptr
	// files become its descriptors from 0 on: stdin, stdout and stderr, wordFD where it says how things go, lockFD, and groupFD, the
	// control group that the command is born into, if grouped. It has no others.
	files   [groupFD + 1]uintptr
	grouped bool
	// prepare is what the init does first, command what the process below it does to become the command, and program the last of it:
	// the start of the program. Without that the init ends when it is prepared.
	prepare, command, program script

	// Room for what the kernel reads and writes, and for the stacks of the init and of the command to be.
	stacks []byte
	clone  cloneArgs
	poll   unix.PollFd
	noTime unix.Timespec
	// first is the init's number, becomes where the code of become is.
	first, becomes uintptr
	status         uint32
	usage          [2]unix.Rusage
	say            word
}

// cloneArgs is struct clone_args of the kernel.
type cloneArgs struct {
	flags, pidFD, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// word is the init's message to the supervisor.
type word struct {
	Kind wordKind
	// Where is the number of the call that failed with Errno.
	Where int32
	Errno syscall.Errno
	// Code is how the command exited (-1: by Signal).
	Code, Signal int32
	// MaxRSS in bytes is the most one process of the tree had resident; 0 if it is not known to be the tree's.
	MaxRSS int64
}

type wordKind int32

// What the init says.
const (
	// unprepared: call Where of prepare failed, or of command.
	unprepared wordKind = iota + 1
	unready
	// unstarted: the program could not be started; with Where -1 for want of a process.
	unstarted
	// running: the program has been started. It is sent after a failure too, which counts.
	running
	// exited: the command ended with Code.
	exited
	// silent: the init can send nothing any more; received, and never sent.
	silent
	// answered: a program that stays has said how its subjob ended, with Code; received, and never sent.
	answered
)

const wordSize = unsafe.Sizeof(word{})

// bytes is a word as it is sent through the pipe.
func (w *word) bytes() []byte { return (*[wordSize]byte)(unsafe.Pointer(w))[:] }

// Descriptors of the init behind stderr.
const (
	wordFD = 3
	// lockFD is the lock of the run directory. Init and command hold it with the supervisor until the command's program has begun: while
	// something may be born here that carries no mark yet, nobody finds the directory free and says that it is over.
	lockFD  = 4
	groupFD = 5
)

// unborn is what the init that is about to begin, or lives, does: this process has one at a time. It is here so that the init finds it
// without an argument, and nothing takes it away.
var unborn *birth //nolint:gochecknoglobals // a child made by split has nothing but what is in place

// fork starts the init; there must be none. The thread that calls it must stay: the kernel ends the init with it.
func (b *birth) fork() (pid int, err error) {
	if err = errors.Join(b.prepare.err, b.command.err, b.program.err); err != nil {
		return 0, err
	}
	// The init handles no signal and is ended by none but SIGKILL, whoever sends it what: all are blocked, and stay so. Here too, for
	// that moment: a handler of Go's must not run in the child.
	var all, before unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	if err = unix.PthreadSigmask(unix.SIG_SETMASK, &all, &before); err != nil {
		return 0, err
	}
	b.stacks = make([]byte, 2*stackSize)
	b.becomes = reflect.ValueOf(become).Pointer()
	unborn = b
	r, errno := b.multiply(0, b.spaces, false, reflect.ValueOf(live).Pointer())
	err = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
	if errno != 0 {
		return 0, errno
	}
	return int(r), err
}

// stackSize is what a child needs at most, in bytes, many times over.
const stackSize = 16 << 10

// multiply makes a process, which begins at child. It shares the memory, so it has a stack of its own, the nth.
//
//go:norace
//go:nosplit
//go:noinline
func (b *birth) multiply(nth, flags uintptr, grouped bool, child uintptr) (pid uintptr, errno syscall.Errno) {
	stack := uintptr(unsafe.Pointer(unsafe.SliceData(b.stacks))) + nth*stackSize
	var r uintptr
	if grouped {
		b.clone = cloneArgs{flags: uint64(flags) | unix.CLONE_VM | unix.CLONE_INTO_CGROUP, exitSignal: uint64(unix.SIGCHLD),
			stack: uint64(stack), stackSize: stackSize, cgroup: groupFD}
		r = split(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&b.clone)), unsafe.Sizeof(b.clone), child)
	} else { // what keeps programs from system calls may not know clone3
		r = split(unix.SYS_CLONE, flags|unix.CLONE_VM|uintptr(unix.SIGCHLD), stack+stackSize, child)
	}
	if r > ^uintptr(4095) {
		return 0, syscall.Errno(-r)
	}
	return r, 0
}

// live is the init. Its functions must be plain: without a prologue that asks Go's scheduler, and without an allocation.
//
//go:norace
//go:nosplit
//go:noinline
func live() {
	b := unborn
	last := uintptr(lockFD)
	if b.grouped {
		last = groupFD
	}
	for i := uintptr(0); i <= last; i++ {
		if b.files[i] != i {
			_, _, _ = syscall.RawSyscall6(unix.SYS_DUP3, b.files[i], i, 0, 0, 0, 0)
		}
		if i >= wordFD {
			_, _, _ = syscall.RawSyscall6(unix.SYS_FCNTL, i, unix.F_SETFD, unix.FD_CLOEXEC, 0, 0, 0)
		}
	}
	if _, _, errno := syscall.RawSyscall6(unix.SYS_CLOSE_RANGE, last+1, ^uintptr(0)>>32, 0, 0, 0, 0); errno != 0 {
		for fd := last + 1; fd < 1024; fd++ { // before Linux 5.9
			_, _, _ = syscall.RawSyscall6(unix.SYS_CLOSE, fd, 0, 0, 0, 0, 0)
		}
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_SETSID, 0, 0, 0, 0, 0, 0)
	_, _, _ = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	// A supervisor that died before that reads no words any more.
	b.poll.Fd = wordFD
	if n, _, _ := syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&b.poll)), 1, uintptr(unsafe.Pointer(&b.noTime)), 0, 0,
		0); n != 0 {
		quit(1)
	}
	b.run(&b.prepare, unprepared)
	if len(b.program.calls) == 0 {
		quit(0)
	}
	b.first, _, _ = syscall.RawSyscall6(unix.SYS_GETPID, 0, 0, 0, 0, 0, 0)
	// With CLONE_VFORK this goes on when the program has been started, or could not be.
	command, errno := b.multiply(1, unix.CLONE_VFORK, b.grouped, b.becomes)
	if errno != 0 {
		b.say.Kind, b.say.Where, b.say.Errno = unstarted, -1, errno
		b.tell()
		quit(1)
	}
	b.say.Kind = running
	b.tell()
	b.reap(command)
	b.tell()
	if b.status != 0 {
		// If this process exits, so does all in its namespace, but somebody may want to see what a failed command left. So it waits: to
		// be killed when that was seen, or for the supervisor's end.
		b.poll.Fd = wordFD
		_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&b.poll)), 1, 0, 0, 0, 0)
	}
	quit(0)
}

// become makes this process the command.
//
//go:norace
//go:nosplit
//go:noinline
func become() {
	b := unborn
	b.run(&b.command, unready)
	// Last of all: another user's process is not told of its parent's death.
	_, _, _ = syscall.RawSyscall6(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0, 0)
	if parent, _, _ := syscall.RawSyscall6(unix.SYS_GETPPID, 0, 0, 0, 0, 0, 0); parent != b.first {
		quit(1)
	}
	b.run(&b.program, unstarted)
	quit(1)
}

// reap waits for all children until the command has ended, and notes how.
//
//go:norace
//go:nosplit
//go:noinline
func (b *birth) reap(command uintptr) {
	for {
		pid, _, errno := syscall.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&b.status)), 0, 0, 0, 0)
		if pid == command && errno == 0 {
			break
		}
		if errno != 0 && errno != unix.EINTR {
			quit(1)
		}
	}
	b.say.Kind, b.say.Code = exited, int32(b.status>>8&0xff)
	if sig := b.status & 0x7f; sig != 0 {
		b.say.Code, b.say.Signal = -1, int32(sig)
	}
	// A child begins with its parent's memory, so a figure not above the init's own says nothing.
	_, _, _ = syscall.RawSyscall6(unix.SYS_GETRUSAGE, 0, uintptr(unsafe.Pointer(&b.usage[0])), 0, 0, 0, 0)
	_, _, _ = syscall.RawSyscall6(unix.SYS_GETRUSAGE, ^uintptr(0), uintptr(unsafe.Pointer(&b.usage[1])), 0, 0, 0, 0)
	if b.usage[1].Maxrss > b.usage[0].Maxrss {
		b.say.MaxRSS = b.usage[1].Maxrss << 10
	}
}

// run does what a script says. If that fails it says so and ends.
//
//go:norace
//go:nosplit
//go:noinline
func (b *birth) run(s *script, failed wordKind) {
	for i := 0; i < len(s.calls); i++ {
		c := &s.calls[i]
		_, _, errno := syscall.RawSyscall6(c.trap, c.args[0], c.args[1], c.args[2], c.args[3], c.args[4], c.args[5])
		switch {
		case errno == 0 || errno == c.tolerated:
			i += c.enough
		case c.optional:
			i += c.failing
		default:
			b.say.Kind, b.say.Where, b.say.Errno = failed, int32(i), errno
			b.tell()
			quit(1)
		}
	}
}

//go:norace
//go:nosplit
//go:noinline
func (b *birth) tell() {
	_, _, _ = syscall.RawSyscall6(unix.SYS_WRITE, wordFD, uintptr(unsafe.Pointer(&b.say)), wordSize, 0, 0, 0)
}

//go:norace
//go:nosplit
//go:noinline
func quit(code uintptr) {
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_EXIT_GROUP, code, 0, 0, 0, 0, 0)
	}
}
