package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
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

// temporary begins the name of a file that is being written and is then renamed.
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

// tryFile replaces a file of a run directory whole, and not durably. It fails if there is something that a file can't replace.
func tryFile(path string, data []byte, mode os.FileMode) error {
	return replace(path, data, mode, func(*os.File) error { return nil })
}

// putFile replaces a file of a run directory whole, and not durably, whatever a program has put in its place.
func putFile(path string, data []byte, mode os.FileMode) error {
	return insist(path, func() error { return tryFile(path, data, mode) })
}

// keepFile replaces a file of a run directory whole and durably, whatever a program has put in its place.
func keepFile(path string, data []byte, mode os.FileMode) error {
	return insist(path, func() error { return WriteFile(path, data, mode) })
}

// insist writes a file of a run directory. A program of the daemon's own user may have put a folder there, or made the run directory
// unwritable: if so, it restores the permissions, removes what is in the way and writes again.
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

// fileLimit bounds what is read of one of Sluice's own files in a run directory, in bytes.
const fileLimit = 64 << 20

// readFile reads one of Sluice's own files in a run directory. If a program has replaced it by a pipe or a link, it neither blocks nor
// follows.
func readFile(path string) ([]byte, error) { return foreign.ReadFile(path, fileLimit) }

// OpenPlain opens a plain file of a run directory and never blocks: a link, a pipe, a device or a folder in its place is an error of kind
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

// lastLines returns the last n lines of data as valid UTF-8 without trailing blanks. cut says that data begins in the
// middle of something: its first line is dropped unless it is the only one.
func lastLines(data []byte, n int, cut bool) string {
	s := strings.TrimRight(strings.ToValidUTF8(string(data), "\uFFFD"), " \t\r\n")
	lines := strings.Split(s, "\n")
	if cut && len(lines) > 1 {
		lines = lines[1:]
	}
	if len(lines) > n {
		lines = lines[len(lines)-n:]
	}
	return strings.Join(lines, "\n")
}

// What kindOf says, as far as callers compare it.
const (
	aFolder = "a folder"
	aFile   = "a file"
	gone    = "gone"
)

// kindOf names what is at a path; empty: unknown.
func kindOf(path string) string {
	var st unix.Stat_t
	switch err := unix.Lstat(path, &st); {
	case errors.Is(err, unix.ENOENT):
		return gone
	case err != nil:
		return ""
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return aFolder
	case unix.S_IFREG:
		return aFile
	case unix.S_IFLNK:
		return "a symbolic link"
	case unix.S_IFIFO:
		return "a pipe"
	case unix.S_IFSOCK:
		return "a socket"
	}
	return "a device"
}
