package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/executor/shim/durable"
)

// Before is asked before a step on the file system, by its name ("write", "sync", "rename", ...), and may have it fail. Tests give one.
type Before func(step, path string) error

// folder is a store's directory, and the steps by which its files change: each file is there whole or not at all, and a name that was
// given is durable once the step has returned, with those of all folders above it.
type folder struct {
	// name is what the store is called for people, path its absolute one. ask is asked before each step; nil: nobody is.
	name, path string
	ask        Before
	// uid and gid own the store. What root makes in somebody else's is theirs too, or they could not write there any more.
	uid, gid int

	// durable are folders whose own names, with those of all folders above them in the store, this process has synced. Guarded by mu.
	mu      sync.Mutex
	durable map[string]bool
}

func newFolder(name, path string, ask Before) *folder {
	return &folder{name: name, path: path, ask: ask, durable: map[string]bool{}}
}

// own gives what was just made to the store's owner: to what was opened, as its name may stand for something else by now. A server that
// gives root no rights does not let it do that either.
func (d *folder) own(f *os.File) error {
	if os.Geteuid() != 0 || d.uid == 0 {
		return nil
	}
	if err := f.Chown(d.uid, d.gid); !errors.Is(err, unix.EPERM) {
		return err
	}
	return nil
}

// ownFolder does so with a folder.
func (d *folder) ownFolder(path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.own(f), f.Close())
}

func (d *folder) in(parts ...string) string {
	return filepath.Join(append([]string{d.path}, parts...)...)
}

// before asks whether a step may be done.
func (d *folder) before(step, path string) error {
	if d.ask == nil {
		return nil
	}
	return d.ask(step, path)
}

// tries is how often a step is begun anew whose file handle a server has forgotten, pause how long is waited before the second.
const (
	tries = 4
	pause = 20 * time.Millisecond
)

// retry does something on the file system, once more where a handle was stale (another machine has renamed what was found by name a moment
// ago), and gives its error the kind that a caller can go by.
func (d *folder) retry(what string, do func() error) error {
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
func (d *folder) explain(what string, err error) error {
	if err == nil || errkind.Of(err) != errkind.Unknown {
		return err
	}
	say := func(k errkind.Kind, todo string) error {
		return errkind.Errorf(k, "store %s: %s: %w: %s", d.name, what, err, todo)
	}
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return say(errkind.Exhausted, "make room there, or run `sluice store gc`")
	case errors.Is(err, fs.ErrPermission), errors.Is(err, unix.EROFS):
		return say(errkind.Denied, "give the user that runs this the right to write below "+d.path)
	case errors.Is(err, unix.ESTALE), errors.Is(err, unix.ENOTCONN), errors.Is(err, unix.EHOSTDOWN), errors.Is(err, unix.ETIMEDOUT),
		errors.Is(err, unix.EIO):
		return say(errkind.Unavailable, "see that the file system is mounted and its server answers; it is safe to try again")
	}
	return say(errkind.Unknown, "nothing was stored")
}

// syncDir makes the names in a directory durable. Some shared file systems can't, and need not: a rename is at the server when it returns.
func (d *folder) syncDir(path string) error {
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
func (d *folder) replace(path string, data []byte) error {
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
func (d *folder) rename(from, to string) error {
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

// mostDurable bounds folder.durable; beyond it all are forgotten, and synced once more.
const mostDurable = 10_000

// syncNames makes the names in a folder durable, its own name, and those of the folders above it: the process that made these may have been
// killed before it synced them.
func (d *folder) syncNames(folder string) error {
	var above []string
	d.mu.Lock()
	for at := folder; len(at) > len(d.path) && !d.durable[at]; at = filepath.Dir(at) {
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
func (d *folder) makeFolder(path string) error {
	above := filepath.Dir(path)
	if _, err := os.Lstat(above); errors.Is(err, fs.ErrNotExist) && len(above) > len(d.path) {
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

// create makes a file that is not there, the store owner's. What is there is given to nobody: it may be another name of something else.
func (d *folder) create(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = d.own(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sync has a file's bytes on the disk.
func (d *folder) sync(f *os.File) error {
	if err := d.before("sync", f.Name()); err != nil {
		return err
	}
	return durable.Sync(f)
}

const (
	markerName = "STORE"
	marker     = "sluice store 1\n"
	objects    = "objects"
	names      = "names"
	incoming   = "incoming"
	removing   = "removing"
)
