package supervisor

import (
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
func (s *script) arrange(dir shim.Dir, l *shim.Lease) error {
	s.do("setting the umask", unix.SYS_UMASK, 0o022) // whatever the daemon's is: folders made here are to be passed through
	s.mountProc()
	base := s.next
	if l.Base != "" {
		base = s.open(l.Base)
	}
	if l.Isolation.Own {
		s.ownPlaces(int64(l.Memory), seen(dir, l)...)
	}
	if begins := seen(dir, l)[1]; begins != "" {
		if err := s.mountReadOnly(begins); err != nil {
			return err
		}
	}
	if l.Base != "" {
		dir = l.Place(dir)
		upper, work := s.open(dir.Upper()), s.open(dir.Overlay())
		s.mountOverlay(base, upper, work, dir.Work(), l.Isolation.UserNamespace)
		s.cover(filepath.Dir(l.Base))
	}
	s.shut(base)
	return nil
}

// seen are the directories that a subjob's program sees wherever they lie: its run directory, and the checkpoint it begins from, "" if
// none. One that stays has others later.
func seen(dir shim.Dir, l *shim.Lease) []string {
	if l.Home() != "" {
		return []string{filepath.Dir(string(dir)), l.Stay.Checkpoints}
	}
	return []string{string(dir), l.Resume}
}

// mountProc gives a new mount namespace its own /proc. Mounts are made private first, or they would show outside.
func (s *script) mountProc() {
	s.mount("making mounts private", "", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")
	s.mount("mounting /proc", "proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

// mountReadOnly makes a directory read-only for the whole namespace, whoever owns it.
func (s *script) mountReadOnly(path string) error {
	s.mount("binding "+path, path, path, "", unix.MS_BIND, "")
	// In a user namespace flags that are set outside may not be dropped: keep them.
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return &fs.PathError{Op: "looking at", Path: path, Err: err}
	}
	keep := uintptr(st.Flags) & (unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC | unix.MS_NOATIME | unix.MS_NODIRATIME | unix.MS_RELATIME)
	s.mount("making read-only "+path, "", path, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY|keep, "")
	return nil
}

// mountOverlay shows base at a path, with what is written there going to upper. The directories are given as descriptors, so
// that their names may hold anything and be covered meanwhile. The content of a work directory is nobody's after its subjob,
// so nothing of it need be synced (volatile, Linux 5.10). Folders of base can be renamed where the mount is root's own
// (redirect_dir); in a user namespace rename(2) of one says EXDEV, as between file systems.
func (s *script) mountOverlay(base, upper, work int, at string, userNamespace bool) {
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", again(base), again(upper), again(work))
	tries := []string{",index=off,redirect_dir=on,volatile", ",redirect_dir=on", ""}
	if userNamespace {
		tries = []string{",userxattr,volatile", ",userxattr"}
	}
	for i, more := range tries {
		c := s.mount("showing the work directory: mounting an overlay", "overlay", at, "overlay", unix.MS_NOSUID|unix.MS_NODEV,
			options+more)
		c.enough = len(tries) - 1 - i
		c.optional = c.enough > 0
	}
}

// cover hides what is at a path from the subjob, if it is still visible. Nobody may write there, root included.
func (s *script) cover(path string) {
	c := s.mount("covering "+path, "tmpfs", path, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "size=4k,mode=000")
	c.tolerated = unix.ENOENT
}

// ownPlaces mounts an empty tmpfs on /tmp and /dev/shm, of at most so many bytes each (0: the kernel's default), keeps the kept directories
// below them visible, and bounds System V shared memory likewise. A place that does not exist is left out.
func (s *script) ownPlaces(most int64, kept ...string) {
	for _, place := range tree.OwnPlaces() {
		if info, err := os.Stat(place); err != nil || !info.IsDir() {
			continue
		}
		s.ownPlace(place, most, kept)
	}
	if most > 0 {
		// Best effort: the name space has it since Linux 3.19, and before 6.4 only real root may write it.
		s.offer("/proc/sys/kernel/shmall", strconv.FormatInt(most/int64(os.Getpagesize())+1, 10))
	}
}

func (s *script) ownPlace(place string, most int64, kept []string) {
	first := s.next
	var held []string
	for _, path := range sights(kept) {
		if below(path, place) {
			s.open(path)
			held = append(held, path)
		}
	}
	options := "mode=1777"
	if most > 0 {
		options += ",size=" + strconv.FormatInt(most, 10)
	}
	s.mount("giving the subjob its own "+place, "tmpfs", place, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options)
	for i, path := range held {
		s.mkdirs(path, 0o711) // to pass through, as outside; not to be listed
		s.mount("keeping "+path+" in sight", again(first+i), path, "", unix.MS_BIND|unix.MS_REC, "")
	}
	s.shut(first)
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
