package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// arrange shapes the init's mount namespace: a /proc of its own, places in memory of its own, the checkpoint read-only, and
// the work directory as an overlay. What is needed of places that will be covered is opened before.
func arrange(dir shim.Dir, l *shim.Lease) error {
	unix.Umask(0o022) // whatever the daemon's is: folders made here are to be passed through
	if err := mountProc(); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	var base *os.File
	if l.Base != "" {
		var err error
		if base, err = openPath(l.Base); err != nil {
			return err
		}
		defer func() { _ = base.Close() }()
	}
	if l.Isolation.Own {
		if err := ownPlaces(int64(l.Memory), string(dir), l.Resume); err != nil {
			return err
		}
	}
	if l.Resume != "" {
		if err := mountReadOnly(l.Resume); err != nil {
			return err
		}
	}
	if base == nil {
		return nil
	}
	upper, err := openPath(dir.Upper())
	if err != nil {
		return err
	}
	defer func() { _ = upper.Close() }()
	work, err := openPath(dir.Overlay())
	if err != nil {
		return err
	}
	defer func() { _ = work.Close() }()
	if err := mountOverlay(base, upper, work, dir.Work(), l.Isolation.UserNamespace); err != nil {
		return fmt.Errorf("showing the work directory: %w", err)
	}
	return cover(filepath.Dir(l.Base))
}

// mountProc gives a new mount namespace its own /proc. Mounts are made private first, or they would show outside.
func mountProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// mountReadOnly makes a directory read-only for the whole namespace, whoever owns it.
func mountReadOnly(path string) error {
	if err := unix.Mount(path, path, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("binding %s: %w", path, err)
	}
	// In a user namespace flags that are set outside may not be dropped: keep them.
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return err
	}
	keep := uintptr(st.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME)
	return unix.Mount("", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|keep, "")
}

// mountOverlay shows base at a path, with what is written there going to upper. The directories are given as descriptors, so
// that their names may hold anything and be covered meanwhile. The content of a work directory is nobody's after its subjob,
// so nothing of it need be synced (volatile, Linux 5.10). Folders of base can be renamed where the mount is root's own
// (redirect_dir); in a user namespace rename(2) of one says EXDEV, as between file systems.
func mountOverlay(base, upper, work *os.File, at string, userNamespace bool) (err error) {
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", again(base), again(upper), again(work))
	tries := []string{",index=off,redirect_dir=on,volatile", ",redirect_dir=on", ""}
	if userNamespace {
		tries = []string{",userxattr,volatile", ",userxattr"}
	}
	for _, more := range tries {
		if err = unix.Mount("overlay", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV, options+more); err == nil {
			return nil
		}
	}
	return fmt.Errorf("mounting an overlay: %w", err)
}

// cover hides what is at a path from the subjob, if it is still to be seen. Nobody may write there, whoever he is.
func cover(path string) error {
	err := unix.Mount("tmpfs", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,mode=000")
	if err == nil || errors.Is(err, unix.ENOENT) {
		return nil
	}
	return fmt.Errorf("covering %s: %w", path, err)
}

// ownPlaces puts an empty file system in memory at /tmp and /dev/shm, of at most so many bytes each (0: as the kernel likes),
// with those of the directories kept in sight that lie below, and bounds System V shared memory likewise. A place that
// does not exist is left out.
func ownPlaces(most int64, kept ...string) error {
	for _, place := range tree.OwnPlaces() {
		if info, err := os.Stat(place); err != nil || !info.IsDir() {
			continue
		}
		if err := ownPlace(place, most, kept); err != nil {
			return fmt.Errorf("giving the subjob its own %s: %w", place, err)
		}
	}
	if most > 0 {
		// Best effort: the name space has it since Linux 3.19, and before 6.4 only real root may write it.
		_ = os.WriteFile("/proc/sys/kernel/shmall", []byte(strconv.FormatInt(most/int64(os.Getpagesize())+1, 10)), 0)
	}
	return nil
}

func ownPlace(place string, most int64, kept []string) (err error) {
	type hold struct {
		path string
		file *os.File
	}
	var held []hold
	defer func() {
		for _, h := range held {
			_ = h.file.Close()
		}
	}()
	for _, path := range sights(kept) {
		if !below(path, place) {
			continue
		}
		f, failed := openPath(path)
		if failed != nil {
			return failed
		}
		held = append(held, hold{path, f})
	}
	options := "mode=1777"
	if most > 0 {
		options += ",size=" + strconv.FormatInt(most, 10)
	}
	if err = unix.Mount("tmpfs", place, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return err
	}
	for _, h := range held {
		if err = os.MkdirAll(h.path, 0o711); err != nil { // to pass through, as outside; not to be listed
			return err
		}
		if err = unix.Mount(again(h.file), h.path, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("keeping %s in sight: %w", h.path, err)
		}
	}
	return nil
}

// sights are the paths under which directories are known: as they are given, and without links.
func sights(paths []string) (all []string) {
	for _, p := range paths {
		if p == "" {
			continue
		}
		all = append(all, filepath.Clean(p))
		if real, err := filepath.EvalSymlinks(p); err == nil && real != filepath.Clean(p) {
			all = append(all, real)
		}
	}
	return all
}

// below says whether a path lies in a place, whatever links the place's own name has.
func below(path, place string) bool {
	if real, err := filepath.EvalSymlinks(place); err == nil && strings.HasPrefix(path, real+"/") {
		return true
	}
	return strings.HasPrefix(path, place+"/")
}

func inOwnPlace(path string) bool {
	return slices.ContainsFunc(tree.OwnPlaces(), func(place string) bool { return below(path, place) })
}

// openPath opens a directory to name it later.
func openPath(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// again is a path to what a descriptor stands for.
func again(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }
