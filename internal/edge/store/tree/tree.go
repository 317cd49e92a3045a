package tree

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
)

// Tree is a directory as an archive that is made while it is read, and takes no room: it is a store.Source. The directory must not change
// until it is closed; a file that did is an error of kind Conflict. Safe for concurrent use.
type Tree struct {
	// Files counts its entries, Bytes adds up their contents. Left are what was left out, each with why, at most mostLeft.
	Files, Bytes int64
	Left         []string

	root    *os.Root
	entries []entry
	// starts are the offsets of the entries in the archive, and the end of the last.
	starts []int64

	mu   sync.Mutex
	open *os.File // the last that was read, of the entry at
	at   int
	// head is the header of the entry headOf.
	head   []byte
	headOf int
}

// lay computes where each entry begins.
func (t *Tree) lay() error {
	var at int64
	for i := range t.entries {
		t.starts = append(t.starts, at)
		head, err := header(&t.entries[i])
		if err != nil {
			return err
		}
		at += int64(len(head)) + padded(t.entries[i].stored)
		t.Bytes += t.entries[i].size
	}
	t.Files = int64(len(t.entries))
	t.starts = append(t.starts, at)
	return nil
}

// Size is the archive's length in bytes.
func (t *Tree) Size() int64 { return t.starts[len(t.entries)] + 2*blockSize }

// ReadAt reads the archive.
func (t *Tree) ReadAt(p []byte, off int64) (n int, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n < len(p) && off < t.Size() {
		read, err := t.readOne(p[n:], off)
		n, off = n+read, off+int64(read)
		if err != nil {
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// readOne reads of one entry, or of the archive's end, and at least one byte.
func (t *Tree) readOne(p []byte, off int64) (int, error) {
	i, exact := slices.BinarySearch(t.starts, off)
	if !exact {
		i--
	}
	if i >= len(t.entries) {
		n := min(int64(len(p)), t.Size()-off)
		clear(p[:n])
		return int(n), nil
	}
	for i+1 < len(t.entries) && t.starts[i+1] == off { // none is empty; what is looked for begins here
		i++
	}
	e := &t.entries[i]
	if t.headOf != i {
		head, err := header(e)
		if err != nil {
			return 0, err
		}
		t.head, t.headOf = head, i
	}
	at := off - t.starts[i]
	if at < int64(len(t.head)) {
		return copy(p, t.head[at:]), nil
	}
	at -= int64(len(t.head))
	if at >= e.stored {
		n := min(int64(len(p)), padded(e.stored)-at)
		clear(p[:n])
		return int(n), nil
	}
	f, err := t.file(i)
	if err != nil {
		return 0, err
	}
	rest := e.size - at
	if e.parts != nil {
		at, rest = within(e.parts, at)
	}
	p = p[:min(int64(len(p)), rest)]
	n, err := f.ReadAt(p, at)
	if n == len(p) {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		err = errkind.Errorf(errkind.Conflict, "%s became shorter while it was read", e.name)
	}
	return n, err
}

// file opens an entry's file. It must be what it was.
func (t *Tree) file(i int) (*os.File, error) {
	if t.at == i {
		return t.open, nil
	}
	e := &t.entries[i]
	f, err := t.root.OpenFile(e.name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() != e.size) {
		err = errkind.Errorf(errkind.Conflict, "%s was changed while it was read", e.name)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if t.at >= 0 {
		_ = t.open.Close() // only read
	}
	t.open, t.at = f, i
	return f, nil
}

// Close closes the directory.
func (t *Tree) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	err := t.root.Close()
	if t.at >= 0 {
		err = errors.Join(err, t.open.Close())
		t.at = -1
	}
	return err
}

// header is an archive's header of an entry, before its content.
func header(e *entry) ([]byte, error) {
	if e.parts != nil {
		return sparseHeader(e)
	}
	h := tar.Header{Name: e.name, Mode: int64(e.mode.Perm()), Size: e.size, Typeflag: tar.TypeReg, Linkname: e.link, ModTime: e.changed,
		Format: tar.FormatPAX}
	switch {
	case e.mode.IsDir():
		h.Typeflag, h.Name = tar.TypeDir, e.name+"/"
	case e.mode&fs.ModeSymlink != 0:
		h.Typeflag, h.Mode = tar.TypeSymlink, 0o777
	}
	var b bytes.Buffer
	if err := tar.NewWriter(&b).WriteHeader(&h); err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "%.200q can't be stored: %w: give it another name", e.name, err)
	}
	return b.Bytes(), nil
}
