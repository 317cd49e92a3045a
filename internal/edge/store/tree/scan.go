package tree

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
)

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

// owner of a file by number.
func owner(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}
