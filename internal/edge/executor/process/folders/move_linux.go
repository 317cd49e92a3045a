package folders

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// Filled reports whether a directory exists and is not empty. Invalid: it is no directory.
func Filled(path string) (bool, error) {
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return false, errkind.Errorf(errkind.Invalid, "%s is no folder", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = f.Close() }()
	names, err := f.Readdirnames(1)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return len(names) > 0, err
}

// Move renames a directory that holds something to a place whose parents are made with mode, and makes that durable. It
// says whether the directory is there afterwards: moved now or before. outlived: the machine was started anew since it was written.
// Then it may be in both places, where a file system keeps no order between directories, and what is in its place is whole.
func Move(from, to string, mode os.FileMode, outlived bool) (bool, error) {
	any, err := Filled(from)
	switch {
	case errors.Is(err, fs.ErrNotExist): // moved before, perhaps by a daemon that died before that was durable
		if _, err = os.Stat(to); err != nil {
			return false, nil //nolint:nilerr // there was nothing to move
		}
		err = shim.SyncDir(filepath.Dir(filepath.Dir(to)))
	case err != nil || !any:
		return false, err
	default:
		// The place must be on the disk before anything can be said to lie there, and the old one may go last.
		err = errors.Join(os.MkdirAll(filepath.Dir(to), mode), shim.SyncDir(filepath.Dir(filepath.Dir(to))))
		if err == nil {
			err = Rename(from, to)
		}
		if outlived && (errors.Is(err, syscall.EEXIST) || errors.Is(err, syscall.ENOTEMPTY)) {
			err = nil
		}
	}
	if err == nil {
		err = errors.Join(shim.SyncDir(filepath.Dir(to)), shim.SyncDir(filepath.Dir(from)))
	}
	if err != nil {
		return false, fmt.Errorf("publishing: %w", err)
	}
	return true, nil
}

// Rename moves a file that a subjob may own, and may have made unmovable.
func Rename(from, to string) error {
	err := os.Rename(from, to)
	if errors.Is(err, fs.ErrPermission) {
		foreign.Free(from)
		err = os.Rename(from, to)
	}
	return err
}
