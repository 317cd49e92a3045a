package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
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

// replace replaces path whole: who opens it sees the old file or the new one. sync makes the new one durable before that.
func replace(path string, data []byte, mode os.FileMode, sync func(*os.File) error) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
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

// putFile replaces path whole, and not durably.
func putFile(path string, data []byte, mode os.FileMode) error {
	return replace(path, data, mode, func(*os.File) error { return nil })
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
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return parse(path, data, v)
}

// parse reads what was found at a path.
func parse(path string, data []byte, v any) error {
	if err := json.Unmarshal(data, v); err != nil {
		return errkind.Errorf(errkind.Corrupt, "%s is damaged: %w; move its directory away after making sure that nothing of it runs", path, err)
	}
	return nil
}

// Tail returns the last lines of a file: at most lines of them in at most size bytes.
func Tail(path string, lines int, size int64) string {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
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
