package durable

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Temporary ends the name of a file that Replace has not finished. A crash may leave one.
const Temporary = ".tmp"

// Replace writes a small file whole and durably, with the given mode: after a crash it is the old one or the new one. An error means that
// the old one is still there, unless only the last step failed, which makes the new one's name durable. Callers see to it that only one
// replaces a file at a time.
func Replace(path string, data []byte, mode os.FileMode) error {
	temp := path + Temporary
	// What a crash has left may have another mode, and others may have it open.
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, Sync(f), f.Close()); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	return SyncDirectory(filepath.Dir(path))
}

// SyncDirectory makes the names in a directory durable.
func SyncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(Sync(dir), dir.Close())
}
