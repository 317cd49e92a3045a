package watch

import (
	"os"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/job"
)

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

// Close lets go of it. It may be used again.
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
