package tree

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
)

const (
	// MaxEntries is how many files, directories and links one tree may have.
	MaxEntries = 1_000_000
	// MaxDepth is how deep directories may be nested.
	MaxDepth = 255
	// blockSize is tar's unit; an archive ends with two empty ones.
	blockSize = 512
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

type entry struct {
	name, link string
	mode       fs.FileMode
	size       int64
	// changed is when it was changed last, in whole seconds: fractions would cost a block more for each file.
	changed time.Time
	// stored is how much of it the archive has, parts are which parts of a file with holes; nil: all.
	stored int64
	parts  []part
}

// mostLeft bounds how much that was left out is named one by one.
const mostLeft = 20

// Scan looks through a directory. Left out are links that lead out, what is neither file nor directory nor link, and files of others than
// the directory's owner (a hard link may bring them in). Errors are of kind Exhausted (too much), Invalid (too deep) or the file system's.
func Scan(dir string) (*Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("look through a tree: %w", err)
	}
	t := &Tree{root: root, at: -1, headOf: -1}
	info, err := root.Lstat(".")
	if err == nil {
		err = t.scan(".", 0, owner(info))
	}
	if err == nil {
		slices.SortFunc(t.entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
		err = t.lay()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("look through the tree %s: %w", dir, err), root.Close())
	}
	return t, nil
}

func (t *Tree) leave(name, why string) {
	if len(t.Left) < mostLeft {
		t.Left = append(t.Left, name+" is left out: "+why)
	}
}

// scan looks through one directory of the tree.
func (t *Tree) scan(dir string, depth int, own int) error {
	if depth > MaxDepth {
		return errkind.Errorf(errkind.Invalid, "directories are nested deeper than %d: keep the tree flatter", MaxDepth)
	}
	d, err := t.root.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	list, err := d.ReadDir(-1)
	if err = errors.Join(err, d.Close()); err != nil {
		return err
	}
	for _, e := range list {
		name := path.Join(dir, e.Name())
		info, err := t.root.Lstat(name)
		if err != nil {
			return err
		}
		if len(t.entries) >= MaxEntries {
			return errkind.Errorf(errkind.Exhausted, "there are more than %d files: pack them together, or keep fewer", MaxEntries)
		}
		switch mode := info.Mode(); {
		case mode.IsDir():
			t.entries = append(t.entries, entry{name: name, mode: fs.ModeDir | mode.Perm()})
			if err := t.scan(name, depth+1, own); err != nil {
				return err
			}
		case mode.IsRegular() && owner(info) != own && own != os.Geteuid():
			t.leave(name, "it is not the directory owner's")
		case mode.IsRegular():
			e := entry{name: name, mode: mode.Perm(), size: info.Size(), stored: info.Size(), changed: info.ModTime().Truncate(time.Second)}
			if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Blocks*blockSize < e.size-leastHole {
				if err := t.skip(&e); err != nil {
					return err
				}
			}
			t.entries = append(t.entries, e)
		case mode&fs.ModeSymlink != 0:
			to, err := t.root.Readlink(name)
			if err != nil {
				return err
			}
			if !inside(name, to) {
				t.leave(name, "it links to "+to+", out of the tree")
				continue
			}
			t.entries = append(t.entries, entry{name: name, mode: fs.ModeSymlink, link: to})
		default:
			t.leave(name, "it is no file, directory or link")
		}
	}
	return nil
}

// skip leaves out the holes of a file.
func (t *Tree) skip(e *entry) error {
	f, err := t.root.OpenFile(e.name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if e.parts = written(f, e.size); e.parts != nil {
		e.stored = sum(e.parts)
	}
	return nil
}

// inside says whether a link stays in the tree.
func inside(name, to string) bool {
	if path.IsAbs(to) {
		return false
	}
	at := path.Join(path.Dir(name), to)
	return at != ".." && !strings.HasPrefix(at, "../")
}

// lay says where each entry begins.
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

func padded(size int64) int64 { return (size + blockSize - 1) / blockSize * blockSize }

// header is what an archive says of an entry before its content.
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

// Close lets go of the directory.
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
