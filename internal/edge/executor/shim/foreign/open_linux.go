package foreign

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
)

// gone says whether an error means that a name is no more what it was a moment ago. Owners may do that at any time.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// retry repeats a call that a signal has interrupted.
func retry[T any](call func() (T, error)) (T, error) {
	for {
		v, err := call()
		if !errors.Is(err, unix.EINTR) {
			return v, err
		}
	}
}

// pin opens what a name in a directory stands for, whatever it is, without doing anything to it: no link is followed, no
// pipe waits, no device is touched.
func pin(dir int, name string, flags int) (int, error) {
	return retry(func() (int, error) {
		return unix.Openat(dir, name, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC|flags, 0)
	})
}

// again is the path by which what a descriptor stands for can be opened or changed, whatever its names mean by now.
func again(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// openDir opens a directory of a directory for reading.
func openDir(dir int, name string) (int, error) {
	return retry(func() (int, error) {
		return unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	})
}

// openBelow opens the directory at a path relative to root, one name at a time.
func openBelow(root int, path string) (int, error) {
	if path == "" {
		return openDir(root, ".")
	}
	at := root
	for {
		name, rest, more := strings.Cut(path, "/")
		var next int
		var err error
		if more {
			next, err = pin(at, name, unix.O_DIRECTORY)
		} else {
			next, err = openDir(at, name)
		}
		if at != root {
			_ = unix.Close(at)
		}
		if err != nil || !more {
			return next, err
		}
		at, path = next, rest
	}
}

// openPlain opens a plain file for reading. Anything else, however it got there, is an error of kind Invalid.
func openPlain(dir int, name string) (*os.File, unix.Stat_t, error) {
	var st unix.Stat_t
	held, err := pin(dir, name, 0)
	if err != nil {
		return nil, st, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	defer func() { _ = unix.Close(held) }()
	if err = unix.Fstat(held, &st); err != nil {
		return nil, st, &fs.PathError{Op: "stat", Path: name, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, st, errkind.Errorf(errkind.Invalid, "%s is not a plain file", name)
	}
	f, err := os.OpenFile(again(held), os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	return f, st, err
}

// ReadFile reads a plain file of at most limit bytes whose directory is its owner's, or not. An error of kind Invalid: it is
// a link, a pipe, a device, a directory, or longer.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, st, err := openPlain(unix.AT_FDCWD, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	if st.Size > limit {
		return nil, errkind.Errorf(errkind.Invalid, "%s has %d bytes, more than %d", path, st.Size, limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = errkind.Errorf(errkind.Invalid, "%s has more than %d bytes", path, limit)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	return data, nil
}
