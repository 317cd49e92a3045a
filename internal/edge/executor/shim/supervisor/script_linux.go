package supervisor

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// script is what a forked child does: system calls, one after another. The child of a program with several threads has one of them,
// and Go's runtime does not work there: it can't allocate, grow its stack or wait for anybody. So whatever there is to
// decide is decided before, and written down here (birth runs it).
type script struct {
	calls []call
	// held keeps from the collector what the calls point to.
	held []any
	// next is the number that the next descriptor gets: the lowest that is free, since the child has none but those it was given.
	next int
	// private: the child has a mount namespace of its own. Without one nothing is mounted: it would be mounted for the whole machine.
	private bool
	// err is the first thing that can't be written down.
	err error
}

// call is one system call.
type call struct {
	trap uintptr
	args [6]uintptr
	// what it does, for an error: "mounting /proc".
	what string
	// tolerated is an error that counts as success; 0 for none.
	tolerated syscall.Errno
	// optional: the child goes on even if it fails. If it fails otherwise than tolerated, failing calls after it are skipped.
	optional bool
	failing  int
	// enough is how many calls behind it are left out once it has succeeded.
	enough int
}

// do adds a call that must succeed.
func (s *script) do(what string, trap uintptr, args ...uintptr) *call {
	c := call{trap: trap, what: what}
	copy(c.args[:], args)
	s.calls = append(s.calls, c)
	return &s.calls[len(s.calls)-1]
}

// try adds a call that may fail.
func (s *script) try(trap uintptr, args ...uintptr) *call {
	c := s.do("", trap, args...)
	c.optional = true
	return c
}

// text is a string for the kernel; empty is an empty one.
func (s *script) text(v string) uintptr {
	p, err := unix.BytePtrFromString(v)
	if err != nil && s.err == nil {
		s.err = &fs.PathError{Op: "using", Path: v, Err: err}
	}
	return s.pointer(unsafe.Pointer(p), p)
}

// pointer is where v lies, which stays there.
func (s *script) pointer(at unsafe.Pointer, v any) uintptr {
	s.held = append(s.held, v)
	return uintptr(at)
}

// texts are strings for the kernel, as execve(2) takes them.
func (s *script) texts(all []string) uintptr {
	list, err := syscall.SlicePtrFromStrings(all)
	if err != nil {
		if s.err == nil {
			s.err = fmt.Errorf("an argument or a variable holds a zero byte: %w", err)
		}
		return 0
	}
	return s.pointer(unsafe.Pointer(&list[0]), list)
}

// here is "the current directory", for calls that take one; every path is absolute.
const here = ^uintptr(99) // AT_FDCWD, -100

// open adds the opening of a directory to name it later, by again. What is opened is closed again before the next is opened for
// something else.
func (s *script) open(path string) (fd int) {
	s.do("opening "+path, unix.SYS_OPENAT, here, s.text(path), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)
	s.next++
	return s.next - 1
}

// shut closes the descriptors from fd up.
func (s *script) shut(fd int) {
	for s.next > fd {
		s.next--
		s.do("closing a directory", unix.SYS_CLOSE, uintptr(s.next))
	}
}

// again is a path to what a descriptor stands for.
func again(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// put writes a file that is there, or to a file of the kernel's.
func (s *script) put(path, text string) {
	s.do("opening "+path, unix.SYS_OPENAT, here, s.text(path), unix.O_WRONLY|unix.O_CLOEXEC)
	s.do("writing "+path, unix.SYS_WRITE, uintptr(s.next), s.text(text), uintptr(len(text)))
	s.do("closing "+path, unix.SYS_CLOSE, uintptr(s.next))
}

// offer writes such a file if that is allowed.
func (s *script) offer(path, text string) {
	s.try(unix.SYS_OPENAT, here, s.text(path), unix.O_WRONLY|unix.O_CLOEXEC).failing = 2
	s.try(unix.SYS_WRITE, uintptr(s.next), s.text(text), uintptr(len(text)))
	s.try(unix.SYS_CLOSE, uintptr(s.next))
}

// mkdirs makes a directory with those above it.
func (s *script) mkdirs(path string, mode uintptr) {
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			s.try(unix.SYS_MKDIRAT, here, s.text(path[:i]), mode)
		}
	}
	s.try(unix.SYS_MKDIRAT, here, s.text(filepath.Clean(path)), mode)
}

func (s *script) mount(what, source, target, kind string, flags uintptr, options string) *call {
	if !s.private && s.err == nil {
		s.err = fmt.Errorf("%s: there is no mount namespace for it", what)
	}
	data := uintptr(0) // some file systems want none rather than an empty one
	if options != "" {
		data = s.text(options)
	}
	return s.do(what, unix.SYS_MOUNT, s.text(source), s.text(target), s.text(kind), flags, data)
}

// limit sets a resource limit, not above what this process has.
func (s *script) limit(resource int, n uint64) {
	var now unix.Rlimit
	if err := unix.Getrlimit(resource, &now); err != nil && s.err == nil {
		s.err = err
	}
	n = min(n, now.Max)
	r := &unix.Rlimit{Cur: n, Max: n}
	s.do("setting a resource limit", unix.SYS_PRLIMIT64, 0, uintptr(resource), s.pointer(unsafe.Pointer(r), r), 0)
}
