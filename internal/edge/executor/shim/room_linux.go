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

// A full disk must not keep a subjob from ending. Its scratch is removed first. Then the culprit is ended and forfeits all that it wrote:
// of the node's running subjobs the one that uses most, provided that it took at least half of what was free at its start. Any other
// subjob that fails while the disk is full counts as its node's failure.

// FreeAt is what a user (nil: our own) can still write on the file system of a path; zero where that is unknown.
func FreeAt(path string, u *User) foreign.Usage {
	s, err := volume.Look(path)
	if err != nil || s.Size == 0 {
		return foreign.Usage{}
	}
	return foreign.Usage{Bytes: s.Left(asRoot(u)), Files: s.FreeFiles}
}

func asRoot(u *User) bool { return u == nil && os.Geteuid() == 0 || u != nil && u.UID == 0 }

// DiskFull says whether the file system of the run directory is full for the user of its subjob, and returns its state.
func (d Dir) DiskFull(l *Lease) (s volume.State, full bool) {
	s, err := volume.Look(string(d))
	return s, err == nil && s.Full(asRoot(l.User))
}

// taken is what a subjob uses of its file system, in bytes of disk and in files, without what was copied for it.
func (d Dir) taken(l *Lease) (u foreign.Usage) {
	for _, path := range []string{
		d.Output(), d.Checkpoint(), d.Work(), d.Upper(), d.Tmp(), d.ProgressDir(), d.Stdout(), d.Stderr(),
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

// Fills returns how this subjob filled the disk if that is full and the subjob is the culprit, else "". unlinked is how many bytes it had,
// when the disk was full, in open files without a name; they were freed when its processes ended, so the disk need not be full any more.
func (d Dir) Fills(l *Lease, unlinked int64) string {
	s, full := d.DiskFull(l)
	if !full && unlinked == 0 || l.Free.Bytes == 0 {
		return ""
	}
	mine := d.taken(l)
	mine.Bytes += unlinked
	files := full && s.Left(asRoot(l.User)) >= volume.Least // bytes are left, so it is out of inodes
	if !tookHalf(mine, l, files) || !d.largest(mine, files) {
		return ""
	}
	what := fmt.Sprintf("%s of the %s that were free", volume.Bytes(mine.Bytes), volume.Bytes(l.Free.Bytes))
	if files {
		what = fmt.Sprintf("%d of the %d files that there was room for", mine.Files, l.Free.Files)
	}
	return fmt.Sprintf("it filled the file system %s: it took %s when it began, and there was no room left for anybody. "+
		"What it wrote does not count and is removed: write less, or have the data directory on a larger file system",
		volume.Name(string(d)), what)
}

// tookHalf says whether a usage is at least half of what was free at a subjob's start, in bytes or in files.
func tookHalf(u foreign.Usage, l *Lease, files bool) bool {
	if files {
		return l.Free.Files > 0 && 2*u.Files >= l.Free.Files
	}
	return l.Free.Bytes > 0 && 2*u.Bytes >= l.Free.Bytes
}

// largest says whether no other running subjob that took half of what was free at its start uses more than this one. Of equals the first
// by name is the largest, so that all supervisors agree on one culprit.
func (d Dir) largest(mine foreign.Usage, files bool) bool {
	own := filepath.Base(string(d))
	entries, err := os.ReadDir(filepath.Dir(string(d)))
	if err != nil {
		return true
	}
	for _, e := range entries {
		if _, bad := job.ParseToken(e.Name()); bad != nil || e.Name() == own {
			continue
		}
		other := Dir(filepath.Join(filepath.Dir(string(d)), e.Name()))
		if over, err := exists(other.Result()); over || err != nil {
			continue
		}
		l, err := other.ReadLease()
		if err != nil {
			continue
		}
		its := other.taken(&l)
		more, as := its.Bytes > mine.Bytes, its.Bytes == mine.Bytes
		if files {
			more, as = its.Files > mine.Files, its.Files == mine.Files
		}
		if tookHalf(its, &l, files) && (more || as && e.Name() < own) {
			return false
		}
	}
	return true
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

// Forfeit removes all that a subjob wrote which is over and filled its disk, and makes r a LimitKilled result with why as its reason.
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
		if !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	for _, log := range []string{d.Stdout(), d.Stderr()} {
		errs = append(errs, shorten(log))
	}
	d.Strip()
	r.Outcome, r.Progress, r.Checkpoint, r.Detail = job.LimitKilled, l.Range.From, false, why
	return errors.Join(errs...)
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
	}
	return errors.Join(err, f.Close())
}
