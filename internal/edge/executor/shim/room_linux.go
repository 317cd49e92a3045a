package shim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/volume"
)

// A full disk, or a quota that is used up, must not keep a subjob from ending. Its scratch is removed first. Then the culprit is ended and
// forfeits all that it wrote: of the node's running subjobs the one that uses most, provided that it took at least half of what was free at
// its start. Any other subjob that fails while the disk is full counts as its node's failure. Of a quota that the kernel tells of
// (volume.Quotas) the same is true among those whom it bounds. What is free under any other quota nobody knows: a write that it refuses
// shows that it is full, and the culprit is who has taken as much as all others together, and half of what the file system has filled up by
// since it began.

// FreeAt is what a user (nil: our own) can still write on the file system of a path.
func FreeAt(path string, u *User) (free Free) {
	if s, err := volume.Look(path); err == nil && s.Size > 0 {
		free.Disk = foreign.Usage{Bytes: s.Left(asRoot(u)), Files: s.FreeFiles}
	}
	for _, q := range quotasOf(path, u) {
		if left := (foreign.Usage{Bytes: q.Free, Files: q.FreeFiles}); q.Limit == volume.UserQuota {
			free.User = left
		} else {
			free.Group = left
		}
	}
	return free
}

// quotasOf are those that bound a user (nil: our own). None bounds root.
func quotasOf(path string, u *User) []volume.State {
	if asRoot(u) {
		return nil
	}
	uid, gid := owner(u)
	return volume.Quotas(path, uid, gid)
}

func owner(u *User) (uid, gid uint32) {
	if u == nil {
		return uint32(os.Geteuid()), uint32(os.Getegid())
	}
	return u.UID, u.GID
}

func asRoot(u *User) bool { return u == nil && os.Geteuid() == 0 || u != nil && u.UID == 0 }

// DiskFull says whether the file system of the run directory is full for the user of its subjob, or one of its quotas there, and returns
// the state of that.
func (d Dir) DiskFull(l *Lease) (s volume.State, full bool) {
	s, err := volume.Look(string(d))
	if err != nil || s.Full(asRoot(l.User)) {
		return s, err == nil
	}
	for _, q := range quotasOf(string(d), l.User) {
		if q.Full(false) {
			return q, true
		}
	}
	return s, false
}

// refused is the state of a quota that is only known to refuse a small file, if it does.
func (d Dir) refused() (s volume.State, full bool) {
	return volume.State{Limit: volume.HiddenQuota}, volume.OverQuota(volume.Try(string(d), temporary+"*"))
}

// free is what a limit left the subjob at its start; zero where that is unknown.
func (l *Lease) free(of volume.Limit) foreign.Usage {
	switch of {
	case volume.UserQuota:
		return l.Free.User
	case volume.GroupQuota:
		return l.Free.Group
	case volume.Whole:
		return l.Free.Disk
	case volume.HiddenQuota:
	}
	return foreign.Usage{}
}

// bounds says whether a limit that bounds this subjob bounds another one too.
func (l *Lease) bounds(of volume.Limit, other *Lease) bool {
	uid, gid := owner(l.User)
	u, g := owner(other.User)
	switch of {
	case volume.UserQuota:
		return uid == u
	case volume.GroupQuota:
		return gid == g
	case volume.Whole, volume.HiddenQuota:
	}
	return true
}

// taken is what a subjob uses of its file system, in bytes of disk and in files, without what was copied for it.
func (d Dir) taken(l *Lease) (u foreign.Usage) {
	at := l.Place(d)
	for _, path := range []string{
		d.Output(), d.Checkpoint(), at.Work(), at.Upper(), at.Tmp(), d.ProgressDir(), d.Stdout(), d.Stderr(),
		d.forfeited(d.Output()), d.forfeited(d.Checkpoint()),
	} {
		var st unix.Stat_t
		switch {
		case unix.Lstat(path, &st) != nil:
		case st.Mode&unix.S_IFMT == unix.S_IFDIR:
			u.Add(path, foreign.Usage{})
		default:
			u.Bytes, u.Files = u.Bytes+st.Blocks*512, u.Files+1
		}
	}
	return foreign.Usage{Bytes: max(0, u.Bytes-l.Copied.Bytes), Files: max(0, u.Files-l.Copied.Files)}
}

// Fills returns how this subjob filled the disk if that is full and the subjob is the culprit, else "". seen is what was found full before,
// and unlinked how many bytes it had then in open files without a name; they were freed when its processes ended, so nothing need be full
// any more. A hidden quota is taken to be full still. must: there is no room for its result, so that somebody has to make some.
func (d Dir) Fills(l *Lease, seen volume.State, unlinked int64, must bool) string {
	s, full := d.DiskFull(l)
	if !full {
		if s = seen; unlinked == 0 && s.Limit != volume.HiddenQuota {
			return ""
		}
	}
	return d.fills(l, s, unlinked, must)
}

// fills is Fills for a volume that is, or was, full.
func (d Dir) fills(l *Lease, s volume.State, unlinked int64, must bool) string {
	mine := d.taken(l)
	mine.Bytes += unlinked
	free := l.free(s.Limit)
	files := s.OutOfFiles(asRoot(l.User))
	what := fmt.Sprintf("it took %s of the %s that were free when it began", volume.Bytes(mine.Bytes), volume.Bytes(free.Bytes))
	switch {
	case s.Limit == volume.HiddenQuota:
		if mine.Bytes < leastHidden || !d.outweighs(mine) || !must && 2*mine.Bytes < d.grown(l) {
			return ""
		}
		what = fmt.Sprintf("a write was refused when it had taken %s, at least as much as all other subjobs here. "+
			"How much was free under the quota the file system does not tell", volume.Bytes(mine.Bytes))
	case !tookHalf(mine, free, files) || !d.largest(l, s.Limit, mine, files):
		return ""
	case files:
		what = fmt.Sprintf("it took %d of the %d files that there was room for when it began", mine.Files, free.Files)
	}
	if s.Limit == volume.Whole {
		what += ", and there was no room left for anybody"
	}
	advice := "write less, or have the data directory "
	switch {
	case l.Joined:
		advice = "it is done again where there is room; have this machine's data directory "
	case d.beganShort(l):
		advice = "it is done again once there is room; make some, or have the data directory "
	}
	return fmt.Sprintf("it filled %s: %s. What it wrote does not count and is removed: %s%s", s.Name(string(d)), what, advice,
		elsewhere(s.Limit))
}

// elsewhere is where more could be written.
func elsewhere(l volume.Limit) string {
	if l == volume.Whole {
		return "on a larger file system"
	}
	return "where the quota is larger"
}

// leastHidden is how much a subjob must have taken, in bytes, to be the culprit of a hidden quota: one that was full when the subjob began
// is not its doing.
const leastHidden = 1 << 20

// tookHalf reports whether a usage is at least half of what was free at a subjob's start, in bytes or in files.
func tookHalf(u, free foreign.Usage, files bool) bool {
	if files {
		return free.Files > 0 && 2*u.Files >= free.Files
	}
	return free.Bytes > 0 && 2*u.Bytes >= free.Bytes
}

// largest says whether no other running subjob that a limit bounds, and that took half of what was free at its start, uses more than this
// one. Of equals the first by name is the largest, so that all supervisors agree on one culprit.
func (d Dir) largest(l *Lease, of volume.Limit, mine foreign.Usage, files bool) bool {
	own, yes := filepath.Base(string(d)), true
	d.others(func(other Dir, lease *Lease) {
		if !l.bounds(of, lease) {
			return
		}
		its := other.taken(lease)
		more, as := its.Bytes > mine.Bytes, its.Bytes == mine.Bytes
		if files {
			more, as = its.Files > mine.Files, its.Files == mine.Files
		}
		if tookHalf(its, lease.free(of), files) && (more || as && filepath.Base(string(other)) < own) {
			yes = false
		}
	})
	return yes
}

// outweighs says whether this subjob uses at least as many bytes as all other running subjobs together.
func (d Dir) outweighs(mine foreign.Usage) bool {
	var theirs int64
	d.others(func(other Dir, l *Lease) { theirs += other.taken(l).Bytes })
	return mine.Bytes >= theirs
}

// grown is how much less is free on the file system than when a subjob began, in bytes: it took half of what was free under a hidden quota
// only if it took half of that. 0 where it is unknown.
func (d Dir) grown(l *Lease) int64 {
	s, err := volume.Look(string(d))
	if err != nil || l.Free.Disk.Bytes == 0 {
		return 0
	}
	return l.Free.Disk.Bytes - s.Left(asRoot(l.User))
}

// others calls each for every other subjob beside this one that has no result yet.
func (d Dir) others(each func(other Dir, l *Lease)) {
	own := filepath.Base(string(d))
	entries, err := os.ReadDir(filepath.Dir(string(d)))
	if err != nil {
		return
	}
	for _, e := range entries {
		if _, bad := job.ParseToken(e.Name()); bad != nil || e.Name() == own {
			continue
		}
		other := Dir(filepath.Join(filepath.Dir(string(d)), e.Name()))
		if over, err := exists(other.Result()); over || err != nil {
			continue
		}
		if l, err := other.ReadLease(); err == nil {
			each(other, &l)
		}
	}
}

// Strip removes what is not needed once a subjob is over, to free room on a full disk: its scratch, temporary files that were not finished,
// and its work directory.
func (d Dir) Strip() {
	for _, path := range []string{d.Work(), d.Upper(), d.Overlay(), d.Tmp(), d.forfeited(d.Output()), d.forfeited(d.Checkpoint())} {
		_ = foreign.Remove(path) // what remains is removed with the run directory
	}
	for _, in := range []string{string(d), d.ProgressDir()} {
		entries, err := os.ReadDir(in)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if path := filepath.Join(in, e.Name()); strings.HasPrefix(e.Name(), temporary) || in != string(d) && path != d.Progress() {
				_ = foreign.Remove(path)
			}
		}
	}
}

// forfeited is where an output or checkpoint folder is moved before its removal. In its own place, one that is half removed could still be
// published after a crash.
func (d Dir) forfeited(folder string) string { return d.file(".forfeited-" + filepath.Base(folder)) }

// wasForfeited says whether the removal of a forfeited folder was begun.
func (d Dir) wasForfeited() bool {
	for _, folder := range []string{d.Output(), d.Checkpoint()} {
		if there, _ := exists(d.forfeited(folder)); there {
			return true
		}
	}
	return false
}

// beganShort says that the file system was short of room already when a subjob began: that it filled up is no fault of the subjob's, which
// may have written very little.
func (d Dir) beganShort(l *Lease) bool {
	s, err := volume.Look(string(d))
	return err == nil && l.Free.Disk.Bytes > 0 && l.Free.Disk.Bytes < volume.Ample(s.Size)
}

// Forfeit removes all that a subjob wrote which is over and filled its disk, and makes r a LimitKilled result with why as its reason;
// NodeFailed on a machine of a cluster, and on a disk that was short of room when the subjob began.
func (d Dir) Forfeit(l *Lease, r *job.Result, why string) error {
	var errs []error
	for _, folder := range []string{d.Output(), d.Checkpoint()} {
		err := os.Rename(folder, d.forfeited(folder))
		if errors.Is(err, fs.ErrPermission) {
			foreign.Free(folder)
			err = os.Rename(folder, d.forfeited(folder))
		}
		if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.ENOTDIR) { // the program's
			if err = foreign.Remove(d.forfeited(folder)); err == nil {
				err = os.Rename(folder, d.forfeited(folder))
			}
		}
		if volume.NoRoom(err) { // on btrfs another name needs room too
			err = d.discard(folder)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, log := range []string{d.Stdout(), d.Stderr()} {
		errs = append(errs, shorten(log))
	}
	d.Strip()
	r.Outcome, r.Progress, r.Checkpoint, r.Detail = job.LimitKilled, l.Range.From, false, why
	if l.Joined || d.beganShort(l) {
		r.Outcome = job.NodeFailed
	}
	return errors.Join(errs...)
}

// DiscardFolders removes output and checkpoint of a subjob that is over and of which nothing counts.
func (d Dir) DiscardFolders() error {
	return errors.Join(d.discard(d.Output()), d.discard(d.Checkpoint()))
}

// discard removes a folder of which nothing may count in its place. Its progress is removed first: without that and without a result
// nothing of it counts if the folder is found half removed.
func (d Dir) discard(folder string) error {
	if err := foreign.Remove(d.ProgressDir()); err != nil {
		return err
	}
	return foreign.Remove(folder)
}

// keptOfLog is how many bytes at the end of a log are kept when its subjob forfeits the rest.
const keptOfLog = 64 << 10

// shorten cuts a log down to its last keptOfLog bytes.
func shorten(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Size() > keptOfLog {
		end := make([]byte, keptOfLog)
		n, _ := f.ReadAt(end, info.Size()-keptOfLog) // a short read loses lines of a log, no more
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt(end[:n], 0)
		}
		if volume.NoRoom(err) { // what is left of it would not fit either
			err = os.Remove(path)
		}
	}
	return errors.Join(err, f.Close())
}
