// Package files is what the kinds of store have in common that lie in a file system: objects as files that get their name whole, uploads
// as files of another folder, names as small files that are replaced by rename. Kinds say whose the directory is, and whether it may be
// made.
//
//	STORE             says what the directory is
//	objects/ab/ab...  the objects, by digest; the time of their last change is when they were put or renewed
//	names/...         the names, a file each, with .json behind the last word
//	incoming/         uploads under way or broken off
//	removing/         objects between their place and nowhere
package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// Options of a store in a directory.
type Options struct {
	// Kind is the word before the path, for people.
	Kind string
	// Dir is the directory; absolute.
	Dir string
	// Make: a directory that is missing or empty becomes a store. Else one that is no store is refused: it may be where a file system
	// is to be mounted that is not.
	Make bool
	// Writer identifies those that may write here at the same time and can't see each other's locks: the machine. The same one resumes its
	// own broken uploads.
	Writer string
	// Before is asked before every step on the file system; nil: nobody is.
	Before Before
}

// First of those that were given, nil if none was.
func First(list []Before) Before {
	if len(list) == 0 {
		return nil
	}
	return list[0]
}

// Dir is a store in a directory.
type Dir struct {
	o Options
	// dir is where it lies.
	dir *folder
}

var _ store.Store = (*Dir)(nil)

// Open opens the store in a directory. Errors: Invalid (a path that is not absolute, a directory with something else in it), NotFound
// (there is none, and none is to be made), Unsupported (a newer one), and as Store's.
func Open(o Options) (*Dir, error) {
	d := &Dir{o: o, dir: newFolder(o.Kind+":"+o.Dir, o.Dir, o.Before)}
	if !filepath.IsAbs(o.Dir) {
		return nil, errkind.Errorf(errkind.Invalid, "store %s: want an absolute path", d)
	}
	err := d.look()
	if errkind.Of(err) == errkind.NotFound && o.Make {
		err = d.init()
	}
	if err == nil && o.Make {
		err = d.lasting()
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Lstat(d.dir.in(markerName), &st); err != nil {
		return nil, d.dir.explain("look at", err)
	}
	d.dir.uid, d.dir.gid = int(st.Uid), int(st.Gid)
	return d, nil
}

// look says whether the directory is a store that this build knows.
func (d *Dir) look() error {
	return d.dir.retry("look at", func() error {
		data, err := os.ReadFile(d.dir.in(markerName))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return errkind.Errorf(errkind.NotFound, "there is no store in %s: mount what belongs there, or make one with `sluice store "+
				"init --store %s`", d.dir.path, d)
		case err != nil:
			return err
		case string(data) != marker:
			return errkind.Errorf(errkind.Unsupported, "%s is %.40q, this build knows %q: use the build that made it", d.dir.in(markerName),
				data, marker)
		}
		return nil
	})
}

// init makes the directory a store. It may be begun by several at once, and again where it was broken off: the marker comes last.
func (d *Dir) init() error {
	return d.dir.retry("make", func() error {
		list, err := os.ReadDir(d.dir.path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range list {
			switch e.Name() {
			case objects, names, incoming, removing, markerName, "lost+found":
			default:
				return errkind.Errorf(errkind.Invalid, "%s holds %q and is no store: name an empty directory, or a new one", d.dir.path,
					e.Name())
			}
		}
		for _, sub := range []string{objects, names, incoming, removing} {
			if err := os.MkdirAll(d.dir.in(sub), 0o700); err != nil {
				return err
			}
		}
		if err := d.dir.syncDir(d.dir.path); err != nil { // first, so that no power cut leaves a marker without its folders
			return err
		}
		return d.dir.replace(d.dir.in(markerName), []byte(marker))
	})
}

// lasting makes the store's own names durable: the process that made it may have been killed before it synced them. A process that may not
// open the folder above did not make the store, so that folder is then left out.
func (d *Dir) lasting() error {
	return d.dir.retry("make", func() error {
		err := d.dir.syncDir(filepath.Dir(d.dir.path))
		if errors.Is(err, fs.ErrPermission) {
			err = nil
		}
		return errors.Join(d.dir.syncDir(d.dir.path), err)
	})
}

// object is where an object lies. Its digest was checked.
func (d *Dir) object(g store.Digest) string { return d.dir.in(objects, string(g[:2]), string(g)) }

// String implements store.Store.
func (d *Dir) String() string { return d.dir.name }

// Close implements store.Store; nothing is held open.
func (d *Dir) Close() error { return nil }

// Now implements store.Store by the file system's clock, which may be another machine's. It writes no data, so it works on a full store,
// which must still be read and cleaned up. A process that may not touch the marker creates an empty file for a moment instead.
func (d *Dir) Now(context.Context) (now time.Time, failed error) {
	failed = d.dir.retry("read the clock", func() error {
		path := d.dir.in(markerName)
		if err := unix.Utimes(path, nil); err != nil {
			f, err := os.CreateTemp(d.dir.in(incoming), "clock.*")
			if err != nil {
				return err
			}
			path = f.Name()
			defer func() { _ = os.Remove(path) }()
			if err = f.Close(); err != nil {
				return err
			}
		}
		f, err := os.Open(path) // opening asks the server, where looking may answer from what this machine remembers
		if err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil {
			now = info.ModTime()
		}
		return errors.Join(err, f.Close())
	})
	return now, failed
}

var _ io.Closer = (*Dir)(nil)
