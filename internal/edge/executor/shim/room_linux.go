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

// A full file system must not keep a subjob from ending: what counts for nothing makes room first, and who has filled it loses what it
// wrote. That is, of the
// subjobs of this node which run, the one that has most, if it took at least half of what was free when it began. Whoever fails beside
// it, and not for
// anything else, has met its node's trouble.

// FreeAt is what is free to a user, nil for our own, where a path lies; nothing where nobody can tell.
func FreeAt(path string, u *User) foreign.Usage {
	s, err := volume.Look(path)
	if err != nil || s.Size == 0 {
		return foreign.Usage{}
	}
	return foreign.Usage{Bytes: s.Left(asRoot(u)), Files: s.FreeFiles}
}

func asRoot(u *User) bool { return u == nil && os.Geteuid() == 0 || u != nil && u.UID == 0 }

// Crowded says whether the file system of the run directory is full to its subjob, and what it says of itself.
func (d Dir) Crowded(l *Lease) (s volume.State, full bool) {
	s, err := volume.Look(string(d))
	return s, err == nil && s.Full(asRoot(l.User))
}

// taken is what a subjob has on its file system: bytes of disk, and files.
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

// Fills says, if the file system is full and this subjob is the one that fills it, how; empty if not. nameless is what it has, or had
// when that was full, in
// files without a name, in bytes: they have come free with its processes.
func (d Dir) Fills(l *Lease, nameless int64) string {
	s, full := d.Crowded(l)
	if !full && nameless == 0 || l.Free.Bytes == 0 {
		return ""
	}
	mine := d.taken(l)
	mine.Bytes += nameless
	files := full && s.Left(asRoot(l.User)) >= volume.Least // it is files that it has no more of
	if !filler(mine, l, files) || !d.largest(mine, files) {
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

// filler says whether so much is half of what was free when a subjob began.
func filler(u foreign.Usage, l *Lease, files bool) bool {
	if files {
		return l.Free.Files > 0 && 2*u.Files >= l.Free.Files
	}
	return l.Free.Bytes > 0 && 2*u.Bytes >= l.Free.Bytes
}

// largest says whether no other subjob beside this one that is not over has more, of those that may be the one.
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
		if filler(its, &l, files) && (more || as && e.Name() < own) {
			return false
		}
	}
	return true
}

// Strip removes what a subjob that is over leaves and nobody needs: its scratch, what was half written, and what of its work directory is
// its own.
func (d Dir) Strip() {
	for _, path := range []string{d.Work(), d.Upper(), d.Overlay(), d.Tmp(), d.forfeited(d.Output()), d.forfeited(d.Checkpoint())} {
		_ = foreign.Remove(path) // what stays goes with the run directory
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

// forfeited is where an output or checkpoint folder goes that does not count: from its own place it could be published.
func (d Dir) forfeited(folder string) string { return d.file(".forfeited-" + filepath.Base(folder)) }

// wasForfeited says whether somebody began to remove what the subjob had left.
func (d Dir) wasForfeited() bool {
	for _, folder := range []string{d.Output(), d.Checkpoint()} {
		if there, _ := exists(d.forfeited(folder)); there {
			return true
		}
	}
	return false
}

// Forfeit takes from a subjob that is over all that it wrote, for that it filled its file system, and makes this its result.
func (d Dir) Forfeit(l *Lease, r *job.Result, why string) error {
	var errs []error
	for _, folder := range []string{d.Output(), d.Checkpoint()} {
		err := os.Rename(folder, d.forfeited(folder))
		if errors.Is(err, fs.ErrPermission) {
			foreign.Free(folder)
			err = os.Rename(folder, d.forfeited(folder))
		}
		if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.ENOTDIR) { // it has put something there
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

// keptOfLog is what is left of a log that fills a disk, in bytes: its end.
const keptOfLog = 64 << 10

// shorten leaves the end of a log.
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
		n, _ := f.ReadAt(end, info.Size()-keptOfLog) // less of it is no harm
		if err = f.Truncate(0); err == nil {
			_, err = f.WriteAt(end[:n], 0)
		}
	}
	return errors.Join(err, f.Close())
}
