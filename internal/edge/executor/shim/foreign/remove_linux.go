package foreign

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// maxPasses bounds how often a directory that is being removed is read again. Every pass takes one level off the deepest
// tree in it, so it is also how deep a tree may be.
const maxPasses = 1 << 17

// Remove removes a tree, or whatever else the path stands for, and no more than that: a link goes and not what it names. It
// opens what its owner has closed, and as root it takes the directories from their owner first, who then can't fill them
// again meanwhile. It is no error if nothing is there. The directory above is trusted.
//
// Descriptors and stack do not grow with the depth: a directory found in a directory is moved up before it is emptied.
func Remove(path string) error {
	above, name := filepath.Split(filepath.Clean(path))
	if above == "" {
		above = "."
	}
	dir, err := retry(func() (int, error) { return unix.Open(above, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0) })
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: above, Err: err}
	}
	defer func() { _ = unix.Close(dir) }()
	var r remover
	err = unlink(dir, name)
	for pass := 0; errors.Is(err, errFull) && pass < maxPasses; pass++ {
		if err = r.clear(dir, name); err == nil {
			err = unlink(dir, name)
		}
	}
	if err != nil {
		return fmt.Errorf("removing %s: %w", path, err)
	}
	return nil
}

// errFull says that a name is a directory with something in it.
var errFull = errors.New("the directory is not empty: somebody is writing to it")

// unlink removes a name, if it is not that of a full directory. What nobody may change loses that first.
func unlink(dir int, name string) error {
	err := unlinkOnce(dir, name)
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	held, gone := pin(dir, name, 0)
	if gone != nil {
		return err
	}
	defer func() { _ = unix.Close(held) }()
	if free(held) {
		err = unlinkOnce(dir, name)
	}
	return err
}

func unlinkOnce(dir int, name string) error {
	err := ignoringEINTR(func() error { return unix.Unlinkat(dir, name, 0) })
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if !errors.Is(err, unix.EISDIR) && !errors.Is(err, unix.EPERM) && !errors.Is(err, unix.EACCES) {
		return err
	}
	switch as := ignoringEINTR(func() error { return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) }); {
	case as == nil || errors.Is(as, unix.ENOENT):
		return nil
	case errors.Is(as, unix.ENOTEMPTY), errors.Is(as, unix.EEXIST):
		return errFull
	case errors.Is(as, unix.ENOTDIR): // it is none, so the first answer counts
		return err
	default:
		return as
	}
}

// remover numbers what it has moved.
type remover struct{ lifted int }

// clear empties a directory once over: everything in it is removed or, if it is a full directory, has its own entries moved
// up or removed.
func (r *remover) clear(parent int, name string) error {
	dir, err := seize(parent, name)
	if err != nil {
		return ignoreGone(err)
	}
	defer func() { _ = dir.Close() }()
	return each(dir, func(name string) error {
		if full := unlink(int(dir.Fd()), name); !errors.Is(full, errFull) {
			return full
		}
		return r.flatten(dir, name)
	})
}

// flatten removes a full directory after moving the full ones in it up.
func (r *remover) flatten(dir *os.File, name string) error {
	sub, err := seize(int(dir.Fd()), name)
	if err != nil {
		return ignoreGone(err)
	}
	defer func() { _ = sub.Close() }()
	err = each(sub, func(name string) error {
		if full := unlink(int(sub.Fd()), name); !errors.Is(full, errFull) {
			return full
		}
		return r.lift(sub, name, dir)
	})
	if err != nil {
		return err
	}
	if err = unlink(int(dir.Fd()), name); errors.Is(err, errFull) {
		return nil // the next pass
	}
	return err
}

// lift moves a full directory from one directory into another, under a name that is free there.
func (r *remover) lift(from *os.File, name string, to *os.File) error {
	moved, err := seize(int(from.Fd()), name) // moving a directory writes to it, which its owner may have forbidden
	if err != nil {
		return ignoreGone(err)
	}
	if err := moved.Close(); err != nil {
		return err
	}
	for {
		r.lifted++
		err := unix.Renameat(int(from.Fd()), name, int(to.Fd()), fmt.Sprintf(".lifted-%d", r.lifted))
		switch { // a name that is taken by an empty directory is free: that one goes
		case errors.Is(err, unix.EEXIST), errors.Is(err, unix.ENOTEMPTY), errors.Is(err, unix.ENOTDIR), errors.Is(err, unix.EISDIR),
			errors.Is(err, unix.EINTR):
		default:
			return ignoreGone(err)
		}
	}
}

// seize opens a directory, after making sure that it can be read and emptied.
func seize(parent int, name string) (*os.File, error) {
	held, err := pin(parent, name, unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(held) }()
	var st unix.Stat_t
	if err = unix.Fstat(held, &st); err != nil {
		return nil, err
	}
	thaw(held)
	if os.Geteuid() == 0 && st.Uid != 0 {
		// Best effort in a container that may not: then the owner can still write to it, and nothing worse.
		_ = unix.Fchownat(held, "", 0, 0, unix.AT_EMPTY_PATH)
	}
	if st.Mode&0o777 != 0o700 {
		_ = unix.Chmod(again(held), 0o700) // where this fails, what follows says so
	}
	fd, err := openDir(held, ".")
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}

// each calls do for the names in a directory, as far as they are seen while it is being changed. It goes on after errors and
// returns the first.
func each(dir *os.File, do func(name string) error) (first error) {
	for {
		names, err := dir.Readdirnames(256)
		for _, name := range names {
			if failed := do(name); failed != nil && first == nil {
				first = failed
			}
		}
		switch {
		case errors.Is(err, io.EOF), gone(err):
			return first
		case err != nil:
			return errors.Join(first, err)
		}
	}
}
