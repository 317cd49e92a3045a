package files

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// Stat implements store.Store.
func (d *Dir) Stat(_ context.Context, g store.Digest) (o store.Object, failed error) {
	if failed = g.Check(); failed != nil {
		return o, failed
	}
	failed = d.dir.retry("look for an object", func() error {
		info, err := d.find(g, os.Lstat)
		if err == nil {
			o = store.Object{Digest: g, Size: info.Size(), Changed: info.ModTime()}
		}
		return err
	})
	return o, failed
}

// find looks at an object by its name. One that is just being removed is put back: the remover sees that, and leaves it.
func (d *Dir) find(g store.Digest, look func(string) (fs.FileInfo, error)) (fs.FileInfo, error) {
	path := d.object(g)
	info, err := look(path)
	for left := 3; errors.Is(err, fs.ErrNotExist) && left > 0; info, err = look(path) {
		if !d.putBack(g) { // it is not there, or its remover has just put it back itself, and another may be taking it
			left--
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		if gone := d.look(); gone != nil { // the whole store is not there: nobody may take an object for missing then
			return nil, gone
		}
		return nil, store.Missing(g, d.String())
	}
	return info, err
}

// putBack looks for an object among those that are being removed, and gives it its place again, unless it has been put there anew.
func (d *Dir) putBack(g store.Digest) bool {
	entries, err := os.ReadDir(d.dir.in(removing))
	if err != nil {
		return false
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), string(g)+".") && d.restore(e.Name()) == nil {
			return true
		}
	}
	return false
}

// restore gives what is being removed its place again. A link and not a rename: what lies there may be younger.
func (d *Dir) restore(name string) error {
	digest, _, _ := strings.Cut(name, ".")
	g := store.Digest(digest)
	if g.Check() != nil {
		return nil // not ours
	}
	away := d.dir.in(removing, name)
	err := os.Link(away, d.object(g))
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.ENOTSUP) { // a file system without links
		if err = os.Rename(away, d.object(g)); err != nil {
			return err
		}
		return d.dir.syncNames(filepath.Dir(d.object(g)))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if err := d.dir.syncNames(filepath.Dir(d.object(g))); err != nil { // before the other name goes: a power cut leaves one of them
		return err
	}
	return ignoreMissing(os.Remove(away))
}

// Renew implements store.Store. Touching goes by name and removing takes the name away before it looks at the time: one of the two sees the
// other, whichever comes first. A renewal outlasts a power cut. Finding a name and touching its file are two steps of the kernel's, between
// which the object may go: so it is looked for once more.
func (d *Dir) Renew(_ context.Context, g store.Digest) error {
	if err := g.Check(); err != nil {
		return err
	}
	return d.dir.retry("renew an object", func() error {
		_, err := d.find(g, func(path string) (fs.FileInfo, error) {
			if err := d.dir.before("touch", path); err != nil {
				return nil, err
			}
			if err := unix.Utimes(path, nil); err != nil { // by the clock of who keeps the file system
				return nil, err
			}
			if err := d.dir.before("touched", path); err != nil {
				return nil, err
			}
			f, err := os.Open(path) // opening asks the server, where looking may answer from what this machine remembers
			if err != nil {
				return nil, err
			}
			return nil, f.Close()
		})
		if err != nil {
			return err
		}
		return d.dir.syncNames(filepath.Dir(d.object(g))) // the process that put it may have been killed before it did
	})
}

// Open implements store.Store.
func (d *Dir) Open(_ context.Context, g store.Digest) (io.ReadCloser, error) {
	if err := g.Check(); err != nil {
		return nil, err
	}
	var f *os.File
	err := d.dir.retry("open an object", func() error {
		_, err := d.find(g, func(path string) (fs.FileInfo, error) {
			var err error
			if err = d.dir.before("open", path); err == nil {
				f, err = os.Open(path)
			}
			return nil, err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return store.Verified(f, g, d.String()), nil
}

// List implements store.Store.
func (d *Dir) List(ctx context.Context, each func(store.Object) error) error {
	folders, err := d.entries(d.dir.in(objects))
	if err != nil {
		return err
	}
	for _, folder := range folders {
		list, err := d.entries(d.dir.in(objects, folder.Name()))
		if err != nil {
			return err
		}
		for _, e := range list {
			g := store.Digest(e.Name())
			if g.Check() != nil {
				continue // not ours
			}
			info, err := e.Info()
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err = errors.Join(d.dir.explain("look at an object", err), ctx.Err()); err != nil {
				return err
			}
			if err = each(store.Object{Digest: g, Size: info.Size(), Changed: info.ModTime()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// entries of a folder, none if it is not there.
func (d *Dir) entries(path string) (list []fs.DirEntry, err error) {
	err = d.dir.retry("list", func() error {
		list, err = os.ReadDir(path)
		if errors.Is(err, fs.ErrNotExist) {
			if err = d.look(); err == nil && path == d.dir.in(objects) {
				return fs.ErrNotExist
			}
		}
		return err
	})
	return list, err
}

// Remove implements store.Store: the object loses its name, and only then is it looked whether somebody has renewed it.
func (d *Dir) Remove(_ context.Context, g store.Digest, before time.Time) (removed bool, failed error) {
	if failed = g.Check(); failed != nil {
		return false, failed
	}
	failed = d.dir.retry("remove an object", func() error {
		path := d.object(g)
		info, err := os.Lstat(path)
		if err != nil || !info.ModTime().Before(before) {
			return ignoreMissing(err)
		}
		if err = d.dir.before("remove", path); err != nil {
			return err
		}
		away := d.dir.in(removing, string(g)+"."+rand.Text())
		if err = os.Rename(path, away); err != nil {
			return ignoreMissing(err)
		}
		if err = d.dir.before("removing", away); err != nil {
			return err
		}
		f, err := os.Open(away) // opening asks the server, where looking may answer from what this machine remembers
		if err != nil {
			return ignoreMissing(err) // somebody has put it back
		}
		info, err = f.Stat()
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
		if !info.ModTime().Before(before) {
			return ignoreMissing(d.restore(filepath.Base(away)))
		}
		err = os.Remove(away)
		removed = err == nil
		return ignoreMissing(err)
	})
	return removed, failed
}

const suffix = ".json"

func (d *Dir) nameFile(name string) string {
	return d.dir.in(names, filepath.FromSlash(name)) + suffix
}

// SetName implements store.Store.
func (d *Dir) SetName(_ context.Context, name string, refs store.Refs) error {
	data, err := refs.Encode()
	if err == nil {
		err = store.CheckName(name)
	}
	if err != nil {
		return err
	}
	return d.dir.retry("write the name "+name, func() error {
		if err := d.look(); err != nil {
			return err
		}
		return d.dir.replace(d.nameFile(name), data)
	})
}

// ReadName implements store.Store.
func (d *Dir) ReadName(_ context.Context, name string) (n store.Named, failed error) {
	if failed = store.CheckName(name); failed != nil {
		return n, failed
	}
	failed = d.dir.retry("read the name "+name, func() error {
		f, err := os.Open(d.nameFile(name))
		if errors.Is(err, fs.ErrNotExist) {
			if err = d.look(); err == nil {
				err = store.NoName(name, d.String())
			}
		}
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		info, err := f.Stat()
		if err != nil {
			return err
		}
		data, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		n = store.Named{Name: name, Changed: info.ModTime()}
		n.Refs, err = store.DecodeRefs(name, data)
		return err
	})
	return n, failed
}

// Names implements store.Store.
func (d *Dir) Names(ctx context.Context, folder string, each func(store.Named) error) error {
	top := d.dir.in(names)
	if folder != "" {
		if err := store.CheckName(folder); err != nil {
			return err
		}
		top = d.dir.in(names, filepath.FromSlash(folder))
	}
	if err := d.look(); err != nil {
		return err
	}
	//sluice:trusted only those that may write to the store can put anything there
	return filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err = errors.Join(d.dir.explain("list names", err), ctx.Err()); err != nil || e.IsDir() {
			return err
		}
		rel, err := filepath.Rel(d.dir.in(names), path)
		if err != nil {
			return err
		}
		name, ok := strings.CutSuffix(filepath.ToSlash(rel), suffix)
		if !ok || store.CheckName(name) != nil {
			return nil
		}
		n, err := d.ReadName(ctx, name)
		if missing(err) {
			return nil // just removed
		}
		if err != nil {
			return err
		}
		return each(n)
	})
}

// Unname implements store.Store. Folders that are empty then are left: they cost nothing, and somebody may just be writing there.
func (d *Dir) Unname(_ context.Context, name string) error {
	if err := store.CheckName(name); err != nil {
		return err
	}
	return d.dir.retry("remove the name "+name, func() error {
		path := d.nameFile(name)
		if err := d.dir.before("unname", path); err != nil {
			return err
		}
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			return d.look()
		}
		if err == nil {
			err = d.dir.syncDir(filepath.Dir(path))
		}
		return err
	})
}

// missing says whether an error is that of something that is not in the store.
func missing(err error) bool { return errkind.Of(err) == errkind.NotFound }

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
