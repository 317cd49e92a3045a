package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// SyncDir makes the names in a directory durable.
func SyncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(durable.Sync(f), f.Close())
}

// WriteFile replaces path durably.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	if err := replace(path, data, mode, durable.Sync); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// temporary is how the name of a file begins that is being written.
const temporary = ".new-"

// replace replaces path whole: who opens it sees the old file or the new one. sync makes the new one durable before that.
func replace(path string, data []byte, mode os.FileMode, sync func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), temporary+"*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Chmod(mode), sync(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// tryFile replaces a file of a run directory whole, and not durably, unless something is in the way.
func tryFile(path string, data []byte, mode os.FileMode) error {
	return replace(path, data, mode, func(*os.File) error { return nil })
}

// putFile replaces a file of a run directory whole, and not durably.
func putFile(path string, data []byte, mode os.FileMode) error {
	return insist(path, func() error { return tryFile(path, data, mode) })
}

// keepFile replaces a file of a run directory durably.
func keepFile(path string, data []byte, mode os.FileMode) error {
	return insist(path, func() error { return WriteFile(path, data, mode) })
}

// insist writes a file of a run directory. A program of the daemon's own user may have put something there that no file can replace, or
// have closed the folder: that is cleared away.
func insist(path string, write func() error) error {
	err := write()
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.EISDIR) || errors.Is(err, fs.ErrPermission) {
		foreign.Free(filepath.Dir(path))
		if err = foreign.Remove(path); err == nil {
			err = write()
		}
	}
	return err
}

// makeFile writes a new file.
func makeFile(path string, data []byte, mode os.FileMode) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Chmod(mode), f.Close()) // whatever the umask is
}

// writeJSON writes a file that is the executor's and the supervisor's alone, by WriteFile, putFile or makeFile.
func writeJSON(path string, v any, write func(path string, data []byte, mode os.FileMode) error) error {
	data, err := json.Marshal(v)
	if err == nil {
		err = write(path, append(data, '\n'), 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

func readJSON(path string, v any) error {
	data, err := readFile(path)
	if err != nil {
		return err
	}
	return parse(path, data, v)
}

// fileLimit bounds a file of the executor's or the supervisor's, in bytes.
const fileLimit = 64 << 20

// readFile reads a file of a run directory that should be the executor's or the supervisor's alone: what a program has put there instead
// is never waited for, nor followed.
func readFile(path string) ([]byte, error) { return foreign.ReadFile(path, fileLimit) }

// OpenPlain opens a file of a run directory, and waits for nobody: a link, a pipe, a device or a folder in its place is an error of kind
// Invalid.
func OpenPlain(path string, how int, mode os.FileMode) (*os.File, error) {
	if kind := kindOf(path); kind != "" && kind != aFile && kind != gone {
		return nil, errkind.Errorf(errkind.Invalid, "%s is %s", path, kind)
	}
	f, err := os.OpenFile(path, how|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_NOCTTY, mode)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(errkind.Errorf(errkind.Invalid, "%s is no file", path), err, f.Close())
	}
	return f, nil
}

// parse reads what was found at a path.
func parse(path string, data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return errkind.Errorf(errkind.Corrupt, "%s is damaged: %w", path, err)
	}
	return nil
}

// Tail returns the last lines of a file: at most lines of them in at most size bytes.
func Tail(path string, lines int, size int64) string {
	f, err := OpenPlain(path, os.O_RDONLY, 0)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	buf := make([]byte, min(size, info.Size()))
	n, _ := f.ReadAt(buf, info.Size()-int64(len(buf)))
	return lastLines(buf[:n], lines, int64(n) < info.Size())
}
