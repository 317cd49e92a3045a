package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// workDir gives the run directory that is being built its work directory: what the job was submitted with, for the subjob to
// change as it likes, seen by nobody else.
func (r *run) workDir(build shim.Dir, user *shim.User) error {
	id := r.work().Spec.Launch.Snapshot
	if id == "" {
		return nil
	}
	o := r.e.originals
	base, waited, err := o.get(o.name(id, user), r.token, func(into string) error {
		return r.e.extract(id, into, user)
	})
	if err != nil {
		return fmt.Errorf("unpacking the work directory: %w", err)
	}
	if waited {
		r.unpacked = r.e.o.now()
	}
	if r.e.iso.Work == shim.WorkOverlay {
		r.base = base
		return errors.Join(os.Mkdir(build.Upper(), 0o700), give(build.Upper(), user), os.Mkdir(build.Overlay(), 0o700))
	}
	if err := copyTree(base, build.Work(), user); err != nil {
		return fmt.Errorf("the copy of the work directory: %w", err)
	}
	r.copied.Add(build.Work(), foreign.Usage{})
	return nil
}

// copyTree copies an original, which only the daemon can reach, into an empty directory. Files share their blocks with it where
// the file system can, until one is written, and never anything else: a hard link would be a way to write to the original.
func copyTree(from, into string, u *shim.User) error {
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	//sluice:trusted only the daemon can reach an original
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil || name == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			if err = root.Mkdir(name, 0o700); err == nil {
				err = root.Chmod(name, info.Mode().Perm()) // whatever the umask is
			}
		case d.Type()&fs.ModeSymlink != 0:
			var to string
			if to, err = os.Readlink(path); err == nil {
				err = root.Symlink(to, name)
			}
		default:
			err = copyFile(path, root, name, info)
		}
		if err == nil && u != nil {
			err = root.Lchown(name, int(u.UID), int(u.GID))
		}
		return err
	})
}

func copyFile(path string, root *os.Root, name string, info fs.FileInfo) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) != nil {
		_, err = io.Copy(to, from)
	}
	at := unix.NsecToTimeval(info.ModTime().UnixNano())
	return errors.Join(err, to.Chmod(info.Mode().Perm()), unix.Futimes(int(to.Fd()), []unix.Timeval{at, at}), to.Close())
}
