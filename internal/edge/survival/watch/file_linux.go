package watch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// File is a region in a file, as one process has it. Who holds which lock of it lives: the kernel gives a lock back when its holder is
// gone.
type File struct {
	*region
	path   string
	file   *os.File
	mapped []byte
}

// Places in the file that are locked by who lives.
const (
	placeWatcher = iota
	placeDaemon
)

// Path is where the region of a data directory lies: in memory where the machine has a place for that, so that no disk is needed, else in
// the directory itself. Its name has the directory's device and inode: containers may share that memory, and have another directory each
// under one name.
func Path(dataDir string) string {
	own := filepath.Join(dataDir, "watch")
	info, err := os.Stat(memoryDir)
	if err != nil || !info.IsDir() {
		return own
	}
	var st unix.Stat_t
	_ = unix.Stat(dataDir, &st) // what is not there yet has its name alone
	named := sha256.Sum256(fmt.Append(nil, st.Dev, st.Ino, dataDir))
	path := filepath.Join(memoryDir, fmt.Sprintf("sluice-watch-%d-%x", os.Geteuid(), named[:8]))
	if info, err := os.Lstat(path); err == nil && !ours(info) {
		return own // somebody else has taken the name
	}
	return path
}

const memoryDir = "/dev/shm"

// ours: only this user can have written it.
func ours(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0 && int(st.Uid) == os.Geteuid()
}

// Open opens the region, and makes it if there is none, or one of another format.
func Open(path string) (*File, error) {
	f, err := open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	const size = 8 * regionWords
	info, err := f.Stat()
	if err == nil && info.Size() != size {
		// Pages that are not there yet would be missed in the middle of a write, where a full file system ends who writes.
		err = errors.Join(f.Truncate(0), unix.Fallocate(int(f.Fd()), 0, 0, size))
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("making %s: %w", path, err)
	}
	w, err := mapped(path, f)
	if err != nil {
		return nil, err
	}
	if start := machineStart(); w.head.load(headMagic) != magic || w.head.load(headBoot) != start {
		for i := range headSize { // words from before the machine was restarted name other processes
			w.head.store(i, 0)
		}
		w.head.store(headBoot, start)
		w.head.store(headMagic, magic)
	}
	return w, nil
}

// machineStart is a number for this start of the machine.
func machineStart() uint64 { return nameNumber(shim.BootID()) }

// nameNumber is a number for a name, never 0.
func nameNumber(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	return h.Sum64() | 1
}

// OpenThere opens a region that is there.
func OpenThere(path string) (*File, error) {
	f, err := open(path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Size() != 8*regionWords {
		err = errors.New("it is no region")
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("opening %s: %w", path, err)
	}
	w, err := mapped(path, f)
	if err == nil && w.head.load(headMagic) != magic {
		_ = w.Close()
		return nil, fmt.Errorf("opening %s: it is of another format", path)
	}
	return w, err
}

func open(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !ours(info) {
		err = fmt.Errorf("%s is not this user's alone", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

func mapped(path string, f *os.File) (*File, error) {
	m, err := unix.Mmap(int(f.Fd()), 0, 8*regionWords, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("mapping %s: %w", path, err)
	}
	return &File{region: divide(words{at: unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(m))), regionWords)}), path: path, file: f,
		mapped: m}, nil
}

// Close closes it, and releases its locks.
func (f *File) Close() error {
	err := errors.Join(unix.Munmap(f.mapped), f.file.Close())
	runtime.KeepAlive(f)
	return err
}

// lock takes the lock of a place until the file is closed; false: somebody has it.
func (f *File) lock(place int) (bool, error) {
	err := unix.FcntlFlock(f.file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: int64(place), Len: 1})
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

// claim takes the daemon's place. An error is of kind Conflict where another daemon has it.
func (f *File) claim() error {
	mine, err := f.lock(placeDaemon)
	switch {
	case err != nil:
		return fmt.Errorf("locking %s: %w", f.path, err)
	case !mine:
		return errkind.Errorf(errkind.Conflict, "%s is in use by another daemon", f.path)
	}
	return nil
}

// lives says whether another has the lock of a place.
func (f *File) lives(place int) bool { return locked(f.file, place) }

// removed: nobody finds it by its name any more. What tidies up behind a user takes what lies in shared memory along.
func (f *File) removed() bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.file.Fd()), &st) == nil && st.Nlink == 0
}

// Witness is somebody who wants to know whether a machine's watcher lives, and what it last did with a subjob: a supervisor. It writes
// nothing, and needs neither the daemon nor the watcher. The zero value with a Path is ready; an empty path names no watcher, and none
// lives. It is used by one goroutine.
type Witness struct {
	Path string
	// file is the region as it was last seen; nil: it was not.
	file *os.File
}

// Lives says whether a watcher lives. Its lock says so, which the kernel gives back however it ends; so nothing needs to be handed to a
// supervisor when the next watcher begins, and nothing can be missed. A region that was made anew is another file of the same name.
func (w *Witness) Lives() bool {
	if w.Path == "" {
		return false
	}
	if w.file != nil && locked(w.file, placeWatcher) {
		return true
	}
	f, err := open(w.Path, os.O_RDONLY)
	if err != nil {
		return false
	}
	w.Close()
	w.file = f
	return locked(f, placeWatcher)
}

// Stand is what the last board says of a subjob, also one that a watcher has left which is dead; false: nothing. It maps the region for
// it, so it is not for every tick.
func (w *Witness) Stand(t job.Token) (Stand, bool) {
	if w.Path == "" {
		return Stand{}, false
	}
	f, err := OpenThere(w.Path)
	if err != nil {
		return Stand{}, false
	}
	defer func() { _ = f.Close() }()
	var b Board
	words, _, ok := f.board.read(make([]uint64, boardWords))
	if !ok || !b.decode(words) {
		return Stand{}, false
	}
	s, ok := b.Of(t)
	if !ok {
		return Stand{}, false
	}
	return *s, true
}

// Close closes it. It may be used again.
func (w *Witness) Close() {
	if w.file != nil {
		_ = w.file.Close()
		w.file = nil
	}
}

// locked says whether another has the lock of a place.
func locked(f *os.File, place int) bool {
	l := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(place), Len: 1}
	return unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &l) == nil && l.Type != unix.F_UNLCK
}

// initLife is the init of a subjob: its supervisor ends with it whatever is left.
type initLife struct {
	fd    int
	polls [1]unix.PollFd
}

// findInit finds the init that a row names.
func findInit(row *Row) (life, error) {
	fd, err := unix.PidfdOpen(row.Init, 0)
	if err != nil {
		return nil, errkind.Errorf(errkind.NotFound, "subjob %v: opening process %d: %w", row.Token, row.Init, err)
	}
	// Looked at after opening: the descriptor is of the process that was looked at.
	if p := (tree.Process{PID: row.Init, Started: row.InitStarted}); !p.Alive() {
		_ = unix.Close(fd)
		return nil, errkind.Errorf(errkind.NotFound, "subjob %v: process %d is gone", row.Token, row.Init)
	}
	return &initLife{fd: fd}, nil
}

func (l *initLife) end() error { return unix.PidfdSendSignal(l.fd, unix.SIGKILL, nil, 0) }

func (l *initLife) gone() bool {
	l.polls[0] = unix.PollFd{Fd: int32(l.fd), Events: unix.POLLIN}
	n, err := unix.Poll(l.polls[:], 0)
	return err == nil && n > 0
}

func (l *initLife) close() { _ = unix.Close(l.fd) }

// thawBoth resumes a subjob, whichever kind suspended it.
func thawBoth(row *Row, group string) {
	_ = tree.Thaw(tree.Group(group), tree.Below(row.Init))
}
