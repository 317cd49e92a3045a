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
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
	"sluice.dev/sluice/internal/edge/store"
)

const (
	markerName = "STORE"
	marker     = "sluice store 1\n"
	objects    = "objects"
	names      = "names"
	incoming   = "incoming"
	removing   = "removing"
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
	// Writer tells those apart who may write here at the same time and can't see each other's locks: the machine. The same one goes on
	// with its own broken uploads.
	Writer string
	// Before is asked before every step on the file system; nil: nobody is.
	Before Before
}

// Before is asked before a step on the file system, by its name ("write", "sync", "rename", ...), and may have it fail. Tests give one.
type Before func(step, path string) error

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
	// uid and gid own the store. What root makes in somebody else's is theirs too, or they could not write there any more.
	uid, gid int

	// durable are folders whose own names, with those of all folders above them in the store, this process has synced. Guarded by mu.
	mu      sync.Mutex
	durable map[string]bool
}

var _ store.Store = (*Dir)(nil)

// Open opens the store in a directory. Errors: Invalid (a path that is not absolute, a directory with something else in it), NotFound
// (there is none, and none is to be made), Unsupported (a newer one), and as Store's.
func Open(o Options) (*Dir, error) {
	d := &Dir{o: o, durable: map[string]bool{}}
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
	if err := unix.Lstat(d.in(markerName), &st); err != nil {
		return nil, d.explain("look at", err)
	}
	d.uid, d.gid = int(st.Uid), int(st.Gid)
	return d, nil
}

// own gives what was just made to the store's owner: to what was opened, as its name may stand for something else by now. A server that
// gives root no rights does not let it do that either.
func (d *Dir) own(f *os.File) error {
	if os.Geteuid() != 0 || d.uid == 0 {
		return nil
	}
	if err := f.Chown(d.uid, d.gid); !errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}

// ownFolder does so with a folder.
func (d *Dir) ownFolder(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.own(f), f.Close())
}

// look says whether the directory is a store that this build knows.
func (d *Dir) look() error {
	return d.retry("look at", func() error {
		data, err := os.ReadFile(d.in(markerName))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return errkind.Errorf(errkind.NotFound, "there is no store in %s: mount what belongs there, or make one with `sluice store "+
				"init --store %s`", d.o.Dir, d)
		case err != nil:
			return err
		case string(data) != marker:
			return errkind.Errorf(errkind.Unsupported, "%s is %.40q, this build knows %q: use the build that made it", d.in(markerName),
				data, marker)
		}
		return nil
	})
}

// init makes the directory a store. It may be begun by several at once, and again where it was broken off: the marker comes last.
func (d *Dir) init() error {
	return d.retry("make", func() error {
		list, err := os.ReadDir(d.o.Dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range list {
			switch e.Name() {
			case objects, names, incoming, removing, markerName, "lost+found":
			default:
				return errkind.Errorf(errkind.Invalid, "%s holds %q and is no store: name an empty directory, or a new one", d.o.Dir,
					e.Name())
			}
		}
		for _, sub := range []string{objects, names, incoming, removing} {
			if err := os.MkdirAll(d.in(sub), 0o700); err != nil {
				return err
			}
		}
		if err := d.syncDir(d.o.Dir); err != nil { // first, so that no power cut leaves a marker without its folders
			return err
		}
		return d.replace(d.in(markerName), []byte(marker))
	})
}

// lasting makes the store's own names durable: the process that made it may have been killed before it synced them. A process that may not
// open the folder above did not make the store, so that folder is then left out.
func (d *Dir) lasting() error {
	return d.retry("make", func() error {
		err := d.syncDir(filepath.Dir(d.o.Dir))
		if errors.Is(err, fs.ErrPermission) {
			err = nil
		}
		return errors.Join(d.syncDir(d.o.Dir), err)
	})
}

func (d *Dir) in(parts ...string) string {
	return filepath.Join(append([]string{d.o.Dir}, parts...)...)
}

// object is where an object lies. Its digest was checked.
func (d *Dir) object(g store.Digest) string { return d.in(objects, string(g[:2]), string(g)) }

// String implements store.Store.
func (d *Dir) String() string { return d.o.Kind + ":" + d.o.Dir }

// Close implements store.Store; nothing is held open.
func (d *Dir) Close() error { return nil }

// before asks whether a step may be done.
func (d *Dir) before(step, path string) error {
	if d.o.Before == nil {
		return nil
	}
	return d.o.Before(step, path)
}

// tries is how often a step is begun anew whose file handle a server has forgotten, pause how long is waited before the second.
const (
	tries = 4
	pause = 20 * time.Millisecond
)

// retry does something on the file system, once more where a handle was stale (another machine has renamed what was found by name a moment
// ago), and gives its error the kind that a caller can go by.
func (d *Dir) retry(what string, do func() error) error {
	var err error
	for n := range tries {
		if n > 0 {
			time.Sleep(pause << n)
		}
		if err = do(); !errors.Is(err, unix.ESTALE) {
			break
		}
	}
	return d.explain(what, err)
}

// explain gives an error of the file system its kind, and says what to do.
func (d *Dir) explain(what string, err error) error {
	if err == nil || errkind.Of(err) != errkind.Unknown {
		return err
	}
	say := func(k errkind.Kind, todo string) error {
		return errkind.Errorf(k, "store %s: %s: %w: %s", d, what, err, todo)
	}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return say(errkind.Exhausted, "make room there, or run `sluice store gc`")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return say(errkind.Denied, "give the user that runs this the right to write below "+d.o.Dir)
	case errors.Is(err, unix.ESTALE), errors.Is(err, unix.ENOTCONN), errors.Is(err, unix.EHOSTDOWN), errors.Is(err, unix.ETIMEDOUT),
		errors.Is(err, unix.EIO):
		return say(errkind.Unavailable, "see that the file system is mounted and its server answers; it is safe to try again")
	}
	return say(errkind.Unknown, "nothing was stored")
}

// syncDir makes the names in a directory durable. Some shared file systems can't, and need not: a rename is at the server when it returns.
func (d *Dir) syncDir(path string) error {
	if err := d.before("sync", path); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	err = durable.Sync(f)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// replace writes a small file whole and durably. Several may write the same one: who opens it sees one of them.
func (d *Dir) replace(path string, data []byte) error {
	if err := d.before("create", path); err != nil {
		return err
	}
	f, err := os.CreateTemp(d.in(incoming), "file.*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // gone, if all went well
	if err = errors.Join(d.own(f), d.before("write", path)); err == nil {
		_, err = f.Write(data)
	}
	if err == nil {
		err = d.before("sync", path)
	}
	if err == nil {
		err = durable.Sync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return d.rename(f.Name(), path)
}

// rename gives a file that is synced its place, whose folder is made if it has to be, durably.
func (d *Dir) rename(from, to string) error {
	folder := filepath.Dir(to)
	if err := d.before("rename", to); err != nil {
		return err
	}
	err := os.Rename(from, to)
	if errors.Is(err, fs.ErrNotExist) {
		if err = d.makeFolder(folder); err == nil {
			err = os.Rename(from, to)
		}
	}
	if err != nil {
		return err
	}
	return d.syncNames(folder)
}

// mostDurable bounds Dir.durable; beyond it all are forgotten, and synced once more.
const mostDurable = 10_000

// syncNames makes the names in a folder durable, its own name, and those of the folders above it: the process that made these may have been
// killed before it synced them.
func (d *Dir) syncNames(folder string) error {
	var above []string
	d.mu.Lock()
	for at := folder; len(at) > len(d.o.Dir) && !d.durable[at]; at = filepath.Dir(at) {
		above = append(above, at)
	}
	d.mu.Unlock()
	errs := []error{d.syncDir(folder)}
	for _, at := range above {
		errs = append(errs, d.syncDir(filepath.Dir(at)))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.durable) > mostDurable {
		clear(d.durable)
	}
	for _, at := range above {
		d.durable[at] = true
	}
	return nil
}

// makeFolder makes a folder below the store and those above it, durably.
func (d *Dir) makeFolder(path string) error {
	above := filepath.Dir(path)
	if _, err := os.Lstat(above); errors.Is(err, fs.ErrNotExist) && len(above) > len(d.o.Dir) {
		if err := d.makeFolder(above); err != nil {
			return err
		}
	}
	err := os.Mkdir(path, 0o700)
	if err == nil {
		err = d.ownFolder(path)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.syncDir(above)
}

// Now implements store.Store: the clock of whoever keeps the file system, which may be another machine. It takes no room: a full store is
// read and emptied too. Who may not touch the marker makes an empty file.
func (d *Dir) Now(context.Context) (now time.Time, failed error) {
	failed = d.retry("read the clock", func() error {
		path := d.in(markerName)
		if err := unix.Utimes(path, nil); err != nil {
			f, err := os.CreateTemp(d.in(incoming), "clock.*")
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

// Sweep implements store.Store.
func (d *Dir) Sweep(_ context.Context, before time.Time) (n int, all error) {
	all = d.retry("look for uploads that broke off", func() error {
		n = 0
		entries, err := os.ReadDir(d.in(incoming))
		for _, e := range entries {
			path := d.in(incoming, e.Name())
			gone, failed := d.sweepOne(path, before)
			if gone {
				n++
			}
			err = errors.Join(err, failed)
		}
		back, failed := os.ReadDir(d.in(removing))
		for _, e := range back { // whoever was removing it may not have lived to see that it was renewed: the next collection decides anew
			failed = errors.Join(failed, ignoreMissing(d.restore(e.Name())))
		}
		return errors.Join(err, failed)
	})
	return n, all
}

// sweepOne removes what an upload has left that nobody has written to, and that nobody on this machine has locked.
func (d *Dir) sweepOne(path string, before time.Time) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, ignoreMissing(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil || !info.ModTime().Before(before) || unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return false, err
	}
	err = os.Remove(path)
	return err == nil, ignoreMissing(err)
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

var _ io.Closer = (*Dir)(nil)
