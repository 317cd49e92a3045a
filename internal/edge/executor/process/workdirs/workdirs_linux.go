package workdirs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// Originals are the work directories that are unpacked on this node, each once for all the subjobs that need it: one for each
// stored copy and user, below a folder that is named for this start of the machine. They are built under another name and renamed,
// so one that is there is whole; nothing of them is synced, since those of an earlier start of the machine are never used.
//
// They belong to the user that their subjobs run as, so that these own the files they see, and lie in a folder that nobody but the daemon
// may enter.
type Originals struct {
	dir string

	mu sync.Mutex
	// used are the subjobs that need each original, by its name.
	used map[string]map[job.Token]bool
	// unpacking are those that are being made.
	unpacking map[string]*unpacking
	// idle is since when no subjob has needed an original, of those that any has needed since New, which was at began.
	idle  map[string]time.Time
	began time.Time
}

type unpacking struct {
	done chan struct{}
	err  error
}

// New returns the originals below a folder. Nothing is made: see Dir.
func New(dir string) *Originals {
	boot := shim.BootID()
	if boot == "" {
		boot = "unknown"
	}
	return &Originals{dir: filepath.Join(dir, boot), used: map[string]map[job.Token]bool{}, unpacking: map[string]*unpacking{},
		idle: map[string]time.Time{}, began: time.Now()}
}

// Name is the name of the original of a stored work directory for a user.
func (o *Originals) Name(id string, u *shim.User) string {
	if u == nil {
		return id
	}
	return fmt.Sprintf("%s.%d.%d", id, u.UID, u.GID)
}

// Dir is the folder of this start of the machine.
func (o *Originals) Dir() string { return o.dir }

func (o *Originals) path(name string) string { return filepath.Join(o.dir, name) }

// Tidy removes what a daemon that was killed left half done. Nothing may be under way yet.
func (o *Originals) Tidy() error {
	return removeIn(o.dir, func(name string) bool { return strings.HasPrefix(name, ".") })
}

// Forget removes the originals of earlier starts of the machine.
func (o *Originals) Forget() error {
	return removeIn(filepath.Dir(o.dir), func(name string) bool { return name != filepath.Base(o.dir) })
}

func removeIn(dir string, which func(name string) bool) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if which(e.Name()) {
			errs = append(errs, foreign.Remove(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// hold notes that a subjob needs an original, until Release.
func (o *Originals) hold(name string, t job.Token) {
	if o.used[name] == nil {
		o.used[name] = map[job.Token]bool{}
	}
	o.used[name][t] = true
}

// Found holds the original that a subjob of an earlier daemon needs.
func (o *Originals) Found(l *shim.Lease) {
	if l.Base != "" {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.hold(filepath.Base(l.Base), l.Token)
	}
}

// Release ends a subjob's need of its original.
func (o *Originals) Release(t job.Token) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for name, tokens := range o.used {
		if delete(tokens, t); len(tokens) == 0 {
			delete(o.used, name)
			o.idle[name] = time.Now()
		}
	}
}

// Get returns the path of an original, for a subjob that needs it from now on. It is made if it is missing; other subjobs that need it
// meanwhile wait. waited: it was missing.
func (o *Originals) Get(name string, t job.Token, unpack func(into string) error) (path string, waited bool, err error) {
	path = o.path(name)
	for {
		o.mu.Lock()
		o.hold(name, t)
		_, err = os.Lstat(path)
		u := o.unpacking[name]
		if err == nil || u == nil && !errors.Is(err, fs.ErrNotExist) {
			o.mu.Unlock()
			return path, waited, err
		}
		mine := u == nil
		if mine {
			u = &unpacking{done: make(chan struct{})}
			o.unpacking[name] = u
		}
		o.mu.Unlock()
		waited = true
		if mine {
			u.err = o.build(name, unpack)
			o.mu.Lock()
			delete(o.unpacking, name)
			o.mu.Unlock()
			close(u.done)
		}
		<-u.done
		if u.err != nil {
			return "", waited, u.err
		}
	}
}

func (o *Originals) build(name string, unpack func(into string) error) error {
	build := o.path(".new-" + name)
	if err := errors.Join(foreign.Remove(build), os.MkdirAll(build, 0o700)); err != nil {
		return err
	}
	err := unpack(build)
	if err == nil && shim.BootID() == "" {
		err = syncAll(build) // a machine that does not say when it was started may have lost what was not
	}
	if err == nil {
		err = os.Rename(build, o.path(name))
	}
	if err != nil {
		return errors.Join(err, foreign.Remove(build))
	}
	return nil
}

// syncAll syncs the file system that a directory is in.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}

// Prune takes away the originals that no subjob uses and whose stored copy no unfinished job needs by live. It returns their new paths, for
// removal.
func (o *Originals) Prune(live func(id string) bool) (old []string, err error) {
	return o.takeAway(func(name string) bool {
		id, _, _ := strings.Cut(name, ".")
		return !live(id)
	})
}

// Evict takes away those that no subjob has used for so long. It returns their new paths, for removal.
func (o *Originals) Evict(idle time.Duration) (old []string, err error) {
	return o.takeAway(func(name string) bool {
		since, known := o.idle[name]
		if !known {
			since = o.began
		}
		return time.Since(since) >= idle
	})
}

// takeAway renames the originals that no subjob uses and that which says may go. which is called with the lock held.
func (o *Originals) takeAway(which func(name string) bool) (old []string, err error) {
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	var errs []error
	for _, e := range entries {
		name := e.Name()
		if strings.HasPrefix(name, ".") || len(o.used[name]) > 0 || !which(name) { // with a dot: half made, or half removed
			continue
		}
		path := o.path(".old-" + name)
		failed := errors.Join(foreign.Remove(path), os.Rename(o.path(name), path))
		if failed == nil {
			delete(o.idle, name)
		}
		errs = append(errs, failed)
		old = append(old, path)
	}
	return old, errors.Join(errs...)
}

// Copy copies an original, which only the daemon can reach, into an empty directory. Files share their blocks with it where
// the file system can, until one is written, and never anything else: a hard link would be a way to write to the original.
func Copy(from, into string, u *shim.User) error {
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	//sluice:trusted only the daemon can reach an original
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil || name == "." {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			if err = root.Mkdir(name, 0o700); err == nil {
				err = root.Chmod(name, info.Mode().Perm()) // whatever the umask is
			}
		case d.Type()&fs.ModeSymlink != 0:
			var to string
			if to, err = os.Readlink(path); err == nil {
				err = root.Symlink(to, name)
			}
		default:
			err = copyFile(path, root, name, info)
		}
		if err == nil && u != nil {
			err = root.Lchown(name, int(u.UID), int(u.GID))
		}
		return err
	})
}

func copyFile(path string, root *os.Root, name string, info fs.FileInfo) error {
	from, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) != nil {
		_, err = io.Copy(to, from)
	}
	at := unix.NsecToTimeval(info.ModTime().UnixNano())
	return errors.Join(err, to.Chmod(info.Mode().Perm()), unix.Futimes(int(to.Fd()), []unix.Timeval{at, at}), to.Close())
}
