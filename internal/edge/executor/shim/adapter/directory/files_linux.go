package directory

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// newest is the number in the name of what changed last in a directory, of what has one.
func newest(dir string) (number int64, found bool) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, false
	}
	var last time.Time
	for _, e := range entries {
		n, ok := numberOf(e.Name())
		info, err := e.Info()
		if !ok || err != nil || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if at := info.ModTime(); !found || at.After(last) || at.Equal(last) && n > number {
			number, found, last = n, true, at
		}
	}
	return number, found
}

// lastChange is when anything in a directory changed last, and whether there is a file in it.
func lastChange(dir string) (at time.Time, holds bool, err error) {
	err = filepath.WalkDir(dir, func(_ string, e fs.DirEntry, err error) error { //sluice:trusted it runs as the subjob itself
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		holds = holds || !e.IsDir()
		if m := info.ModTime(); m.After(at) {
			at = m
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return time.Time{}, false, nil
	}
	return at, holds, err
}

// copyTree copies a directory to a place where there is none: files, directories and symbolic links, with their modes and times.
func copyTree(ctx context.Context, from, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
		return err
	}
	type stamp struct {
		path string
		at   time.Time
		mode fs.FileMode
	}
	var dirs []stamp
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error { //sluice:trusted it runs as the subjob itself
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if rel == "." {
			info, err = os.Stat(path)
		}
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		switch mode := info.Mode(); {
		case mode.IsDir():
			dirs = append(dirs, stamp{target, info.ModTime(), mode.Perm()})
			return os.Mkdir(target, 0o700)
		case mode.Type() == fs.ModeSymlink:
			link, err := os.Readlink(path)
			if err != nil {
				return err
			}
			return os.Symlink(link, target)
		case mode.IsRegular():
			return copyFile(ctx, path, target, info)
		}
		return nil // a socket or a pipe is nothing that lasts
	})
	for i := len(dirs) - 1; i >= 0 && err == nil; i-- {
		d := &dirs[i]
		err = errors.Join(os.Chmod(d.path, d.mode|0o700), os.Chtimes(d.path, d.at, d.at)) //sluice:trusted it runs as the subjob itself
	}
	return err
}

// portion is how many bytes are copied between two looks at whether that is still wanted.
const portion = 4 << 20

// copyFile copies one file; file systems that can let both share what they hold.
func copyFile(ctx context.Context, from, to string, info fs.FileInfo) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm()|0o600)
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) != nil {
		for n := int64(1); n > 0 && err == nil; err = cmp.Or(err, ctx.Err()) {
			n, err = io.CopyN(out, in, portion)
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
	}
	return errors.Join(err, out.Close(), os.Chtimes(to, info.ModTime(), info.ModTime()))
}
