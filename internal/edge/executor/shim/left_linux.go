package shim

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/volume"
)

// Conclude judges how a subjob ended that has said e: by what it left, which is made durable first. An error: it can't be now, and nothing
// of the result may count.
//
// On a full disk room is made before anything is written: the culprit forfeits what it wrote and is LimitKilled for it, unless it
// succeeded (NodeFailed: see Forfeit). The failure of any other subjob counts as its node's.
func (d Dir) Conclude(l *Lease, e Ending) (job.Result, error) {
	state, full := d.DiskFull(l)
	switch {
	case full:
	case e.DiskFull:
		full = true
		if e.Short.Limit != volume.Whole { // for a file system its present free space is shown
			state = e.Short
		}
	case !e.well() && (e.Cause == 0 || e.Cause == job.Lost): // it failed by itself, perhaps for want of room
		if s, no := d.refused(); no {
			state, full = s, true
		}
	}
	fills := e.Fills
	switch {
	case fills != "":
	case d.wasForfeited():
		fills = "it filled its file system, or a quota there: what it wrote does not count and is removed"
	case full:
		fills = d.Fills(l, state, e.Unlinked, false)
	}
	if fills != "" && (!e.well() || e.Fills != "") {
		return d.forfeit(l, e, fills)
	}
	if full {
		d.Strip()
	}
	unfit, files := cmp.Or(e.Unfit, d.Damaged(), d.Unfit(l.OutputLimit)), 0
	var err error
	if unfit == "" {
		files, err = d.SyncWork()
		if errkind.Of(err) == errkind.Invalid { // it will be no better the next time
			unfit, err = "what it wrote can't be made durable: "+strings.ToValidUTF8(err.Error(), "?"), nil
		}
	}
	if volume.OverQuota(err) && fills == "" {
		fills = d.Fills(l, volume.State{Limit: volume.HiddenQuota}, e.Unlinked, false)
	}
	if volume.NoRoom(err) && fills != "" { // even if it succeeded: its output can't be made durable
		return d.forfeit(l, e, fills)
	}
	e.Whole = err == nil && files > 0 || unfit != "" // what it claims is judged, and then refused
	r := Judge(l, e)
	if unfit != "" {
		refuse(&r, l, unfit)
	}
	if full && r.Outcome == job.ExitFailed && (l.free(state.Limit) != (foreign.Usage{}) || state.Limit == volume.HiddenQuota) {
		r.Outcome = job.NodeFailed
		r.Detail = fmt.Sprintf("it failed while %s was full (%s), which others fill: %s",
			state.Name(string(d)), state.Text(asRoot(l.User)), r.Detail)
	}
	return r, err
}

// forfeit makes the result of a subjob that filled its disk, and removes what it wrote.
func (d Dir) forfeit(l *Lease, e Ending, why string) (job.Result, error) {
	e.Spoke = false
	r := Judge(l, e)
	if err := d.Forfeit(l, &r, why); err != nil { // what could not be removed does not count either
		r.Detail += "; it could not be removed: " + strings.ToValidUTF8(err.Error(), "?")
	}
	return r, nil
}

// Unfit says what is wrong with what a subjob that has ended left in its output and checkpoint folders, so that nothing of it can be
// published; empty: nothing. It reads no file: what passes the limit, in bytes of both together, may be a hundred gigabytes of which none
// was ever written. What would keep a folder from being read or moved, and can be taken away, is.
func (d Dir) Unfit(limit int64) string {
	var size int64
	for _, f := range [][2]string{{"SLUICE_OUTPUT_DIR", d.Output()}, {"SLUICE_CHECKPOINT_DIR", d.Checkpoint()}} {
		name, path := f[0], f[1]
		if kind := kindOf(path); kind != "" && kind != aFolder {
			return name + " is " + kind + ", and not the folder that it was: write into it"
		}
		foreign.Free(path)
		large := ""
		err := foreign.Walk(path, func(e *foreign.Entry) error {
			e.Free()
			if size += e.Size; size > limit {
				large = fmt.Sprintf("output and checkpoint hold more than the limit of %d bytes, with %.200q of %d in %s: "+
					"write less, or raise limits.output", limit, e.Path, e.Size, name)
				return fs.SkipAll
			}
			return nil
		})
		switch {
		case large != "":
			return large
		case errkind.Of(err) == errkind.Invalid || errors.Is(err, fs.ErrPermission):
			return name + " can't be looked through: " + strings.ToValidUTF8(err.Error(), "?")
		}
	}
	return ""
}

// Damaged returns why the run directory is damaged, if one of Sluice's own files there is not a plain file any more; else "". A program
// that runs as the daemon's own user can replace them.
func (d Dir) Damaged() string {
	for _, path := range []string{d.Lease(), d.Control(), d.Note(), d.Result(), d.Fenced(), d.Stuck()} {
		if kind := kindOf(path); kind != "" && kind != aFile && kind != gone {
			return DamagedBy(filepath.Base(path) + " is " + kind)
		}
	}
	return ""
}

// DamagedBy is the reason of a subjob whose run directory is damaged.
func DamagedBy(what string) string {
	return "its run directory is damaged: " + what + "; a subjob may write into the folders alone that its environment names"
}

// refuse takes from a result what can't be published. Where something would have counted, or the subjob called it a success, that is its
// own failure.
func refuse(r *job.Result, l *Lease, why string) {
	if counted := r.Progress > l.Range.From || r.Checkpoint || r.Outcome == job.Done || r.Outcome == job.Yielded; !counted {
		return
	}
	r.Outcome, r.Progress, r.Checkpoint = job.LimitKilled, l.Range.From, false
	if r.Detail != "" {
		why += "; " + r.Detail
	}
	r.Detail = why
}

// Unmount unmounts what a subjob that has ended had mounted in its run directory: a mount point can be neither moved nor removed. (Without
// a mount namespace of its own a subjob's mounts stay behind.) It returns why the output or the checkpoint can't be published, if one of
// them was mounted on, else "".
func (d Dir) Unmount() (held string) {
	mounts, err := volume.Mounts()
	if err != nil {
		return ""
	}
	root := string(d)
	if above, err := filepath.EvalSymlinks(filepath.Dir(root)); err == nil { // the kernel's names have no links
		root = filepath.Join(above, filepath.Base(root))
	}
	all := mountedIn(mounts, root)
	for _, path := range slices.Backward(all) { // what was mounted last is on top
		_ = unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW) // where that is not allowed, held says so all the same
	}
	for _, path := range all {
		in, _ := filepath.Rel(root, path)
		folder, rest, _ := strings.Cut(in, "/")
		var name string
		switch folder {
		case ".":
			name = "its run directory"
		case filepath.Base(d.Output()):
			name = "SLUICE_OUTPUT_DIR"
		case filepath.Base(d.Checkpoint()):
			name = "SLUICE_CHECKPOINT_DIR"
		default:
			continue
		}
		if rest != "" {
			name = strings.ToValidUTF8(rest, "?") + " in " + name
		}
		return "a file system is mounted on " + name + ": write into the folder itself"
	}
	return ""
}

// mountedIn returns the mount points at or below a path, in the order of the mounts.
func mountedIn(mounts []volume.Mount, root string) (all []string) {
	for _, m := range mounts {
		if m.Point == root || strings.HasPrefix(m.Point, root+"/") {
			all = append(all, m.Point)
		}
	}
	return all
}
