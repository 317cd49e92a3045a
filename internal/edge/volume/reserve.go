package volume

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

const (
	// mostReserved is the size of a reserve in bytes; shareReserved is what it has of its file system at most: one part in so many.
	mostReserved, shareReserved = 4 << 20, 20
	// apart is how much more than a reserve must be free before it is taken: else it would be given back at once.
	apart = 4 * Least
)

// Reserve is a file that takes room, so that there is some when all other is gone. Its methods are for one goroutine.
type Reserve struct {
	path string
	look func() (State, error)
	held bool
}

// NewReserve is the reserve of that name. It may be there from before: Release gives that back too.
func NewReserve(path, dir string) *Reserve {
	return &Reserve{path: path, look: func() (State, error) { return Look(dir) }}
}

// Held says whether it takes its room.
func (r *Reserve) Held() bool { return r.held }

// reserve is what one takes of this file system, in bytes; 0: of one that counts nothing it takes none.
func (s State) reserve() int64 { return min(mostReserved, s.Size/shareReserved) }

// Hold takes the room, if that is there and some is left beside it. It is all there or nothing is: no part of it is sparse.
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

// Release gives the room back.
func (r *Reserve) Release() error {
	if err := os.Remove(r.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r.held = false
	return nil
}

// write fills a file with what can't be compressed.
func write(f *os.File, size int64) error {
	_, err := io.CopyN(f, rand.Reader, size)
	if err == nil {
		err = f.Sync() // a file system may find only now that there is no room
	}
	return err
}
