package foreign

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
)

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
