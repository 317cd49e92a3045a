package volume

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

const (
	// mostReserved is the largest size of a reserve file, in bytes; it takes at most one part in shareReserved of its file system.
	mostReserved, shareReserved = 4 << 20, 20
	// apart is how many bytes more than the reserve must be free before it is held: else it would have to be released at once.
	apart = 4 * Least
)

// Reserve is a reserve file: it holds room on a disk, which is released when the disk is full. Its methods are for one goroutine.
type Reserve struct {
	path string
	look func() (State, error)
	held bool
}

// NewReserve is the reserve file of a path, on the file system of dir. Release also removes one that an earlier process left.
func NewReserve(path, dir string) *Reserve {
	return &Reserve{path: path, look: func() (State, error) { return LookOwn(dir) }}
}

// Held says whether the reserve is held.
func (r *Reserve) Held() bool { return r.held }

// reserve is the size of a reserve file on this file system, in bytes; 0 if that does not count its bytes.
func (s State) reserve() int64 { return min(mostReserved, s.Size/shareReserved) }

// Hold allocates the reserve file whole, and not sparse, or fails if too little would be left beside it.
func (r *Reserve) Hold(root bool) error {
	if r.held {
		return nil
	}
	s, err := r.look()
	if err != nil {
		return err
	}
	size := s.reserve()
	if size == 0 {
		r.held = true
		return nil
	}
	if s.Full(root) || s.Left(root) < size+apart {
		return fmt.Errorf("%s, too little for the reserve of %s", s.Text(root), Bytes(size))
	}
	f, err := os.OpenFile(r.path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = errors.Join(allocate(f, size), f.Close()); err != nil {
		return errors.Join(err, os.Remove(r.path))
	}
	r.held = true
	return nil
}

// Release removes the reserve file.
func (r *Reserve) Release() error {
	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.held = false
	return nil
}

// Try writes Least bytes to a file in a directory, removes it, and returns what refused them. pattern is that of os.CreateTemp.
func Try(dir, pattern string) error {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return err
	}
	err = errors.Join(write(f, Least), f.Close())
	_ = os.Remove(f.Name()) // found by whoever clears the directory
	return err
}
