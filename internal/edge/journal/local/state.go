package local

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"

	"sluice.dev/sluice/internal/edge/journal/disk"
)

// chunkBytes is how much of a snapshot is one chunk at most: what a reader holds of it.
const chunkBytes = 256 << 10

// errDamaged ends the reading of a snapshot; stateReader.problem says why.
var errDamaged = errors.New("the snapshot is damaged")

// stateReader hands over what is in a snapshot's file, each chunk when it is proven.
type stateReader struct {
	f    disk.File
	name string
	head stateHeader
	// size of the file; off is how far it was read. seen is how much of the state that is, and left the part not handed over yet.
	size, off int64
	seen      uint64
	left      []byte
	chunk     []byte
	sum       hash.Hash
	problem   *Problem
}

// readState hands the latest snapshot to its caller, and proves all of it: problems are about its content, since its
// header was read by survey. An error is that of the callback or of the file system.
func (l *layout) readState(d disk.FS, hand func(io.Reader) error) ([]Problem, error) {
	if l.stateHead.version == 0 {
		return nil, nil // a problem of the survey
	}
	f, err := d.View(l.state)
	if err != nil {
		return nil, fmt.Errorf("journal %s: cannot open %s: %w", d, l.state, err)
	}
	defer f.Close()
	r := &stateReader{f: f, name: l.state, head: l.stateHead, size: l.sizes[l.state]}
	r.rewind()
	if r.head.version < 2 { // nothing in it is proven before all of it has been read
		if _, err = io.Copy(io.Discard, r); err == nil {
			r.rewind()
		}
	}
	if err == nil && hand != nil {
		err = hand(r)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, r)
	}
	switch {
	case r.problem != nil:
		return []Problem{*r.problem}, nil
	case err != nil:
		return nil, err
	}
	return nil, nil
}

func (r *stateReader) rewind() {
	r.off, r.seen, r.left, r.sum = stateHeaderSize, 0, nil, sha256.New()
}

// Read implements io.Reader.
func (r *stateReader) Read(p []byte) (int, error) {
	for len(r.left) == 0 {
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.left)
	r.left = r.left[n:]
	return n, nil
}

func (r *stateReader) damaged(format string, args ...any) error {
	r.problem = &Problem{File: r.name, Offset: r.off, What: fmt.Sprintf(format, args...), Do: restore}
	return errDamaged
}

// next reads a chunk, or finds the end.
func (r *stateReader) next() error {
	switch {
	case r.problem != nil:
		return errDamaged
	case r.off == r.size && r.seen != r.head.length:
		return r.damaged("the snapshot ends after %d bytes, want %d", r.seen, r.head.length)
	case r.off == r.size && !bytes.Equal(r.sum.Sum(nil), r.head.sum[:]):
		return r.damaged("the snapshot's digest does not match its content")
	case r.off == r.size:
		return io.EOF
	case r.head.version < 2:
		return r.take(min(chunkBytes, r.size-r.off))
	case r.size-r.off < chunkHeaderSize:
		return r.damaged("the snapshot ends within the header of a chunk")
	}
	if err := r.read(chunkHeaderSize); err != nil {
		return err
	}
	length, off, sum, err := parseChunkHeader(r.chunk)
	switch {
	case err != nil:
		return r.damaged("the header of a chunk is damaged: %v", err)
	case off != r.seen || length == 0 || length > chunkBytes:
		return r.damaged("a chunk of %d bytes from byte %d stands where byte %d should", length, off, r.seen)
	case int64(length) > r.size-r.off-chunkHeaderSize:
		return r.damaged("a chunk of %d bytes is cut short", length)
	}
	r.off += chunkHeaderSize
	if err := r.take(int64(length)); err != nil {
		return err
	}
	if crcOf(r.left) != sum {
		r.left = nil
		r.off -= int64(length)
		return r.damaged("the checksum of a chunk does not match")
	}
	return nil
}

// take reads the next n bytes of the state.
func (r *stateReader) take(n int64) error {
	if err := r.read(n); err != nil {
		return err
	}
	r.sum.Write(r.chunk)
	r.left = r.chunk
	r.off += n
	r.seen += uint64(n)
	return nil
}

// read fills chunk with the n bytes at off.
func (r *stateReader) read(n int64) error {
	r.chunk = slices.Grow(r.chunk[:0], int(n))[:n]
	if got, err := r.f.ReadAt(r.chunk, r.off); got < len(r.chunk) {
		return fmt.Errorf("cannot read %s: %w", r.name, err)
	}
	return nil
}
