package api

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"sluice.dev/sluice/internal/core/errkind"
)

// maxSocketPath is how long a path a unix socket's address holds, in bytes.
const maxSocketPath = 103

// listenSocket listens on a unix socket that only its owner may connect to. The caller owns the directory, so that one that
// is there was left by an earlier daemon.
func listenSocket(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the socket of an earlier daemon: %w", err)
	}
	at, free, err := SocketAddress(path)
	if err != nil {
		return nil, err
	}
	defer free()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "listening on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // it may have another name here
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(path))
	}
	return socketListener{l, path}, nil
}

// socketListener removes its socket when it is closed.
type socketListener struct {
	net.Listener
	path string
}

func (l socketListener) Close() error {
	err := os.Remove(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.Listener.Close())
}

// SocketAddress is a name for a unix socket's path that is short enough for its address: through a descriptor of its
// directory, where the path itself is too long. It holds until free is called.
func SocketAddress(path string) (at string, free func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	at = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	return at, func() { _ = dir.Close() }, nil // only opened to be named
}
