package workdirs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim"
)

// Copy copies an original, which only the daemon can reach, into an empty directory. Files share their blocks with it where
// the file system can, until one is written, and never anything else: a hard link would be a way to write to the original.
func Copy(from, into string, u *shim.User) error {
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
