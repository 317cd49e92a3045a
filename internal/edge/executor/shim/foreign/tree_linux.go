package foreign

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
)

// Size adds up the bytes of all plain files of a tree, stopping early once they pass limit. What vanishes meanwhile does not
// count. A tree whose size can't be told, because it is nested too deeply or closed to us, has more than limit: otherwise it
// would be a way around every bound. One that is not there has none.
func Size(root string, limit int64) (n int64) {
	if info, err := os.Lstat(root); err == nil && !info.IsDir() {
		if info.Mode().IsRegular() {
			return info.Size()
		}
		return 0
	}
	err := Walk(root, func(e *Entry) error {
		if n += e.Size; n > limit {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil && !gone(err) {
		return limit + 1
	}
	return n
}

// Usage is what trees take: bytes of disk, and how many files, folders and links they have, their roots apart.
type Usage struct{ Bytes, Files int64 }

// Over reports whether it exceeds a bound; 0 is no bound.
func (u Usage) Over(most Usage) bool {
	return most.Bytes > 0 && u.Bytes > most.Bytes || most.Files > 0 && u.Files > most.Files
}

// Add adds what a tree takes, stopping early once it is over a bound. What vanishes meanwhile does not count. A tree that can't
// be looked into, because it is nested too deeply or closed to us, is over every bound; one that is not there takes nothing.
// Files that were removed and are still open are not seen.
func (u *Usage) Add(root string, most Usage) {
	err := Walk(root, func(e *Entry) error {
		if e.Path == "" {
			return nil
		}
		u.Bytes += e.Disk
		if u.Files++; u.Over(most) {
			return fs.SkipAll
		}
		return nil
	})
	if err != nil && !gone(err) {
		u.Bytes, u.Files = max(u.Bytes, most.Bytes+1), max(u.Files, most.Files+1)
	}
}

// Sync makes everything in a tree durable and says how many plain files there are, and whether it is empty. An empty one holds
// nothing that could be lost, and costs nothing; nor does anything else that stands where a tree was.
func Sync(root string) (files int, empty bool, err error) { return syncAtOnce(root, mostSyncs) }

// syncAtOnce is Sync with so many files under way at most.
func syncAtOnce(root string, most int) (files int, empty bool, err error) {
	empty = true
	s := syncs{room: make(chan struct{}, most)}
	err = Walk(root, func(e *Entry) error {
		if e.Path == "" {
			return nil
		}
		empty = false
		if e.Plain {
			files++
		}
		f, failed := opened(e)
		if failed != nil || f == nil {
			return failed
		}
		return s.start(f)
	})
	if waited := s.wait(); err == nil {
		err = waited
	}
	if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return 0, true, nil
	}
	if err != nil || empty {
		return files, empty, err
	}
	f, err := folder(unix.AT_FDCWD, root)
	if err != nil {
		return files, false, err
	}
	return files, false, errors.Join(durable.Sync(f), f.Close())
}

// mostSyncs is how many files are synced at once, and so how many are open. Each sync waits for the file system's journal, which writes
// down what waits together (BenchmarkSync). syncfs(2) is hardly faster, waits for what everybody else has written too, and says of no file
// whether it is on the disk.
const mostSyncs = 8

// syncs are those under way: as many as there is room for.
type syncs struct {
	room   chan struct{}
	begun  sync.WaitGroup
	mu     sync.Mutex
	failed error // the first that did
}

// start syncs and closes a file beside others, once there is room. An error is of one that was started before: there is no use in going on.
func (s *syncs) start(f *os.File) error {
	s.room <- struct{}{}
	s.begun.Go(func() {
		err := errors.Join(durable.Sync(f), f.Close())
		s.mu.Lock()
		if s.failed == nil {
			s.failed = err
		}
		s.mu.Unlock()
		<-s.room
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed != nil {
		return fs.SkipAll // wait says it
	}
	return nil
}

// wait returns once nothing is under way, with the first error.
func (s *syncs) wait() error {
	s.begun.Wait()
	return s.failed
}

// opened is a directory or a plain file, to be synced; nil for anything else, and for what is gone.
func opened(e *Entry) (f *os.File, err error) {
	switch {
	case e.Dir:
		f, err = folder(e.dir, e.name)
	case e.Plain:
		f, err = e.Open()
	}
	if err != nil {
		return nil, ignoreGone(err)
	}
	return f, nil
}

// folder is a directory as a file.
func folder(dir int, name string) (*os.File, error) {
	fd, err := openDir(dir, name)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// Seal takes the right to write from a tree: from its directories, and from those plain files that belong to the tree's
// owner and have no other name, which could be anywhere. It is against accidents: the owner can take the right back.
func Seal(root string) error {
	var owner uint32
	return Walk(root, func(e *Entry) error {
		if e.Path == "" {
			owner = e.stat.Uid
		}
		if !e.Dir && !e.Plain {
			return nil
		}
		fd, err := pin(e.dir, e.name, 0)
		if err != nil {
			return nil // it went, or is closed to us: then it is not ours to seal
		}
		defer func() { _ = unix.Close(fd) }()
		var st unix.Stat_t
		if unix.Fstat(fd, &st) != nil || st.Uid != owner {
			return nil
		}
		if kind := st.Mode & unix.S_IFMT; kind != unix.S_IFDIR && (kind != unix.S_IFREG || st.Nlink != 1) {
			return nil
		}
		// To the descriptor, so that it is done to what was asked about. Best effort: nothing hangs on it.
		_ = unix.Chmod(again(fd), st.Mode&0o555)
		return nil
	})
}

// MaxDepth is how many directories below each other are looked into.
const MaxDepth = 255

// Entry is one thing in a tree, as it was when it was looked at. It is valid until the function it was given to returns.
type Entry struct {
	// Path is relative to the tree's root, with slashes; empty for the root itself.
	Path string
	// Dir and Plain say what it is; a link, a pipe, a socket or a device is neither.
	Dir, Plain bool
	// Size in bytes of a plain file. Disk is what it takes of its file system, whatever it is.
	Size, Disk int64
	// Own: its owner is the tree's owner, or the tree is our own. A hard link can bring in a file that is not, and that its
	// bringer could not read.
	Own bool

	dir  int
	name string
	stat unix.Stat_t
}

// Open opens a plain file for reading, if it still is one and still belongs there.
func (e *Entry) Open() (*os.File, error) {
	f, st, err := openPlain(e.dir, e.name)
	if err != nil {
		return nil, err
	}
	if st.Uid != e.stat.Uid {
		return nil, errors.Join(errkind.Errorf(errkind.Invalid, "%s has another owner now", e.Path), f.Close())
	}
	return f, nil
}

// blockSize is the unit of st_blocks, whatever the file system's own is.
const blockSize = 512

// Walk calls visit for the root and everything below it: for a directory before what is in it, otherwise in no order. What
// vanishes meanwhile is left out, and no link is followed. An error of visit ends the walk and is returned, but for
// fs.SkipAll, which only ends it. Other errors: Invalid where directories are nested deeper than MaxDepth, and as the file
// system has them. A root that does not exist, or is no directory, is an error.
func Walk(root string, visit func(*Entry) error) error {
	top, err := openDir(unix.AT_FDCWD, root)
	if err != nil {
		return &fs.PathError{Op: "open", Path: root, Err: err}
	}
	defer func() { _ = unix.Close(top) }()
	w := walk{root: root, top: top, visit: visit, ahead: []place{{}}}
	if err = unix.Fstat(top, &w.owner); err != nil {
		return &fs.PathError{Op: "stat", Path: root, Err: err}
	}
	err = visit(&Entry{Dir: true, Own: true, dir: top, name: ".", stat: w.owner})
	for len(w.ahead) > 0 && err == nil {
		next := w.ahead[len(w.ahead)-1]
		w.ahead = w.ahead[:len(w.ahead)-1]
		err = w.directory(next)
	}
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return err
}

// place is a directory that was seen and not yet looked into.
type place struct {
	path  string
	depth int
}

type walk struct {
	root  string
	top   int
	owner unix.Stat_t
	visit func(*Entry) error
	ahead []place
}

// directory visits what is in one.
func (w *walk) directory(at place) error {
	fd, err := openBelow(w.top, at.path)
	if gone(err) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: path.Join(w.root, at.path), Err: err}
	}
	dir := os.NewFile(uintptr(fd), path.Join(w.root, at.path))
	defer func() { _ = dir.Close() }()
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if stop := w.entry(fd, name, at); stop != nil {
				return stop
			}
		}
		switch {
		case errors.Is(err, io.EOF), gone(err):
			return nil
		case err != nil:
			return err
		}
	}
}

func (w *walk) entry(fd int, name string, at place) error {
	e := Entry{Path: path.Join(at.path, name), dir: fd, name: name}
	err := ignoringEINTR(func() error { return unix.Fstatat(fd, name, &e.stat, unix.AT_SYMLINK_NOFOLLOW) })
	if gone(err) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "stat", Path: path.Join(w.root, e.Path), Err: err}
	}
	kind := e.stat.Mode & unix.S_IFMT
	e.Dir, e.Plain = kind == unix.S_IFDIR, kind == unix.S_IFREG
	e.Disk = e.stat.Blocks * blockSize
	e.Own = e.stat.Uid == w.owner.Uid || w.owner.Uid == uint32(os.Geteuid())
	if e.Plain {
		e.Size = e.stat.Size
	}
	if err := w.visit(&e); err != nil || !e.Dir {
		return err
	}
	if at.depth+1 > MaxDepth {
		return errkind.Errorf(errkind.Invalid, "%s: directories are nested deeper than %d: keep the tree flatter", w.root, MaxDepth)
	}
	w.ahead = append(w.ahead, place{e.Path, at.depth + 1})
	return nil
}

func ignoringEINTR(call func() error) error {
	for {
		if err := call(); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// gone reports whether an error means that a name has changed since it was read. Owners may do that at any time.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// retry repeats a call that a signal has interrupted.
func retry[T any](call func() (T, error)) (T, error) {
	for {
		v, err := call()
		if !errors.Is(err, unix.EINTR) {
			return v, err
		}
	}
}

// pin opens what a name in a directory stands for, whatever it is, without doing anything to it: no link is followed, no
// pipe waits, no device is touched.
func pin(dir int, name string, flags int) (int, error) {
	return retry(func() (int, error) {
		return unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
	})
}

// again is the path by which what a descriptor stands for can be opened or changed, whatever its names mean by now.
func again(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// openDir opens a directory of a directory for reading.
func openDir(dir int, name string) (int, error) {
	return retry(func() (int, error) {
		return unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
}

// openBelow opens the directory at a path relative to root, one name at a time.
func openBelow(root int, path string) (int, error) {
	if path == "" {
		return openDir(root, ".")
	}
	at := root
	for {
		name, rest, more := strings.Cut(path, "/")
		var next int
		var err error
		if more {
			next, err = pin(at, name, unix.O_DIRECTORY)
		} else {
			next, err = openDir(at, name)
		}
		if at != root {
			_ = unix.Close(at)
		}
		if err != nil || !more {
			return next, err
		}
		at, path = next, rest
	}
}

// openPlain opens a plain file for reading. Anything else, however it got there, is an error of kind Invalid.
func openPlain(dir int, name string) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	held, err := pin(dir, name, 0)
	if err != nil {
		return nil, st, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer func() { _ = unix.Close(held) }()
	if err = unix.Fstat(held, &st); err != nil {
		return nil, st, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, st, errkind.Errorf(errkind.Invalid, "%s is not a plain file", name)
	}
	f, err := os.OpenFile(again(held), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	return f, st, err
}

// ReadFile reads a plain file of at most limit bytes whose directory is its owner's, or not. An error of kind Invalid: it is
// a link, a pipe, a device, a directory, or longer.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, st, err := openPlain(unix.AT_FDCWD, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st.Size > limit {
		return nil, errkind.Errorf(errkind.Invalid, "%s has %d bytes, more than %d", path, st.Size, limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errkind.Errorf(errkind.Invalid, "%s has more than %d bytes", path, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return data, nil
}

// flagsFixed are the flags of a file system by which not even root may change, move or remove what has them, until they are taken off
// (chattr +i, +a).
const flagsFixed = 0x10 | 0x20

// Free removes from a path what keeps it from being moved: the flags by which nobody may change it, and a missing right of its owner's.
// Best effort: moving it then gives the error.
func Free(path string) {
	held, err := pin(unix.AT_FDCWD, path, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(held) }()
	free(held)
}

// Free does so with what was seen in a tree, so that it can be read.
func (e *Entry) Free() {
	if least := e.least(); os.Geteuid() == 0 || e.stat.Mode&least == least {
		return
	}
	held, err := pin(e.dir, e.name, 0)
	if err != nil {
		return
	}
	defer func() { _ = unix.Close(held) }()
	free(held)
}

// least are the rights that the owner of a file or folder needs to read it.
func (e *Entry) least() uint32 {
	switch {
	case e.Dir:
		return 0o500
	case e.Plain:
		return 0o400
	}
	return 0
}

// free says whether it has changed something.
func free(held int) (changed bool) {
	var st unix.Stat_t
	if unix.Fstat(held, &st) != nil {
		return false
	}
	kind := st.Mode & unix.S_IFMT
	if kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return false
	}
	changed = thaw(held)
	if least := uint32(0o700); kind == unix.S_IFDIR && int(st.Uid) == os.Geteuid() && st.Mode&least != least {
		changed = unix.Chmod(again(held), st.Mode&0o7777|least) == nil || changed
	} else if kind == unix.S_IFREG && int(st.Uid) == os.Geteuid() && st.Mode&0o400 == 0 {
		changed = unix.Chmod(again(held), st.Mode&0o7777|0o400) == nil || changed
	}
	return changed
}

// thaw takes the flags off a plain file or directory, and says whether it had any.
func thaw(held int) bool {
	var st unix.Statx_t
	if unix.Statx(held, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS, &st) != nil ||
		st.Attributes&(unix.STATX_ATTR_IMMUTABLE|unix.STATX_ATTR_APPEND) == 0 {
		return false
	}
	fd, err := retry(func() (int, error) {
		return unix.Open(again(held), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return false
	}
	defer func() { _ = unix.Close(fd) }()
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	return err == nil && unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags&^flagsFixed) == nil
}

func ignoreGone(err error) error {
	if gone(err) {
		return nil
	}
	return err
}
