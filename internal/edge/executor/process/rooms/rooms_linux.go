// Package rooms prepares empty run directories for subjobs to come, and reuses those in which a subjob left nothing: making six folders
// and removing them again costs more than all else that a daemon does for a subjob which writes nothing.
package rooms

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
)

// Room is an empty run directory, prepared for a subjob or left by one: the program's folders, without files.
type Room struct {
	dir  shim.Dir
	user *shim.User
	// made is when it was made, marks its state then.
	made  time.Time
	marks marks
}

// marks tell whether anything was changed in a room: when the inode of each folder was changed last (what is made or removed
// in it changes that, and owner, rights and attributes do), and the names of the attributes of the run directory.
type marks struct {
	folders    [5]unix.Timespec
	attributes string
}

// folders are those of a run directory that belong to the program.
func folders(dir shim.Dir) [5]string {
	return [5]string{dir.Work(), dir.Output(), dir.Checkpoint(), dir.ProgressDir(), dir.Tmp()}
}

// Dir is where it lies.
func (r *Room) Dir() shim.Dir { return r.dir }

// Make makes a room at a path that is not visible as a run directory. Other users can't enter it. After an error a part of it may be there.
func Make(at string, user *shim.User) (*Room, error) {
	r := &Room{dir: shim.Dir(at), user: user}
	err := os.Mkdir(at, 0o700)
	if errors.Is(err, os.ErrExist) {
		if err = foreign.Remove(at); err == nil {
			err = os.Mkdir(at, 0o700)
		}
	}
	for _, d := range folders(r.dir) {
		if err == nil {
			err = errors.Join(os.Mkdir(d, 0o700), shim.Give(d, user))
		}
	}
	if err == nil {
		r.marks, err = look(r.dir)
	}
	r.made = time.Now()
	return r, err
}

// look reads the marks of a run directory.
func look(dir shim.Dir) (m marks, err error) {
	for i, path := range folders(dir) {
		var st unix.Stat_t
		if err = unix.Lstat(path, &st); err != nil {
			return m, &os.PathError{Op: "lstat", Path: path, Err: err}
		}
		m.folders[i] = st.Ctim
	}
	names := make([]byte, 256)
	n, err := unix.Llistxattr(string(dir), names)
	if errors.Is(err, unix.ENOTSUP) {
		n, err = 0, nil
	}
	if err != nil {
		return m, &os.PathError{Op: "llistxattr", Path: string(dir), Err: err}
	}
	m.attributes = string(names[:n])
	return m, nil
}

// Rooms keeps the rooms of finished subjobs that left them unchanged, for the next subjobs of the same user. Safe for concurrent use.
type Rooms struct {
	// Runs is the folder of run directories, where they are made.
	Runs string

	mu   sync.Mutex
	kept []*Room
	last int
}

const (
	// mostRooms is how many are kept.
	mostRooms = 32
	// settled is how old the marks of a room are before it is used, so that a change made then shows: the kernel's clock for them ticks
	// every 1 to 10 ms.
	settled = 50 * time.Millisecond
)

// Take takes a room that a user may have, nil if there is none.
func (s *Rooms) Take(u *shim.User) *Room {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, r := range s.kept {
		if sameUser(r.user, u) && time.Since(r.made) >= settled {
			s.kept = append(s.kept[:i], s.kept[i+1:]...)
			return r
		}
	}
	return nil
}

func sameUser(a, b *shim.User) bool {
	return a == b || a != nil && b != nil && a.UID == b.UID && a.GID == b.GID
}

// Done takes back the run directory of a finished subjob that nobody uses any more. If it was changed it is removed and, if more are
// wanted, replaced by a new one.
func (s *Rooms) Done(path string, r *Room) error {
	s.mu.Lock()
	wanted := r != nil && len(s.kept) < mostRooms
	s.last++
	another := filepath.Join(s.Runs, fmt.Sprintf(".room-%d", s.last))
	s.mu.Unlock()
	if wanted && time.Since(r.made) >= settled && r.cleared(shim.Dir(path)) {
		s.keep(r)
		return nil
	}
	if err := foreign.Remove(path); err != nil {
		return err
	}
	if wanted {
		if next, err := Make(another, r.user); err == nil {
			s.keep(next)
		} else {
			_ = foreign.Remove(another)
		}
	}
	return nil
}

// Kept returns how many are kept.
func (s *Rooms) Kept() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.kept)
}

func (s *Rooms) keep(r *Room) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, r)
}

// cleared removes the files of a run directory, and reports whether it is then as when it was made.
func (r *Room) cleared(now shim.Dir) bool {
	for _, file := range []string{now.Terms(), now.Lease(), now.Note(), now.Result()} {
		if err := unix.Unlink(file); err != nil {
			return false
		}
	}
	var st unix.Stat_t
	if unix.Lstat(string(now), &st) != nil || st.Mode != unix.S_IFDIR|0o711 || int(st.Uid) != os.Geteuid() {
		return false
	}
	d, err := os.Open(string(now))
	if err != nil {
		return false
	}
	names, err := d.Readdirnames(len(r.marks.folders) + 1)
	_ = d.Close()
	if err != nil || len(names) != len(r.marks.folders) {
		return false
	}
	m, err := look(now)
	r.dir = now
	return err == nil && m == r.marks
}
