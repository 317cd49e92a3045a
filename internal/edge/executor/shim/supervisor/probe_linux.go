package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/foreign"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// probe tries what this machine allows, the best first. dir is where work directories are unpacked; empty to leave them out.
func probe(dir string) shim.Isolation {
	var iso shim.Isolation
	for _, try := range []shim.Isolation{{PIDNamespace: true, Proc: true}, {PIDNamespace: true}} {
		try.UserNamespace = os.Geteuid() != 0
		if works(try, dir) {
			iso = try
			break
		}
	}
	if iso.Proc {
		iso.Own = true
		iso.Own = works(iso, dir)
	}
	iso.Work = probeWork(iso, dir)
	iso.Cgroup, iso.KernelMemory, iso.KernelProcesses = tree.GroupBase()
	// A user namespace has its own count since Linux 5.14.
	iso.KernelProcesses = iso.KernelProcesses || iso.UserNamespace && kernelIs(5, 14)
	return iso
}

// probeWork tries how a subjob can be given its work directory.
func probeWork(iso shim.Isolation, dir string) string {
	if dir == "" {
		return shim.WorkCopy
	}
	if iso.Work = shim.WorkOverlay; iso.Proc && works(iso, dir) {
		return shim.WorkOverlay
	}
	if reflinks(dir) {
		return shim.WorkReflink
	}
	return shim.WorkCopy
}

// works says whether an init with these surroundings can be started and arranges itself.
func works(iso shim.Isolation, dir string) bool {
	b := &birth{}
	b.surround(iso)
	s := &b.prepare
	if iso.Proc {
		s.mountProc()
	}
	switch {
	case iso.Proc && iso.Work == shim.WorkOverlay:
		trial, err := tryOverlay(s, dir, iso.UserNamespace)
		defer func() { _ = foreign.Remove(trial) }()
		if err != nil {
			return false
		}
		return b.ends() && untouched(trial)
	case iso.Own:
		s.ownPlaces(1 << 20)
	}
	return b.ends()
}

// ends forks an init without a command and says whether it has done all that it was to do.
func (b *birth) ends() bool {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer func() { _ = null.Close() }()
	for i := range b.files {
		b.files[i] = null.Fd()
	}
	pid, err := b.fork()
	if err != nil {
		return false
	}
	for {
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(pid, &ws, 0, nil); !errors.Is(err, syscall.EINTR) {
			return err == nil && ws.Exited() && ws.ExitStatus() == 0
		}
	}
}

// tryOverlay makes an init use an overlay as programs use a work directory. All of it is in trial, to be removed.
func tryOverlay(s *script, dir string, userNamespace bool) (trial string, err error) {
	if trial, err = os.MkdirTemp(dir, ".probe-*"); err != nil {
		return "", err
	}
	in := func(name string) string { return filepath.Join(trial, name) }
	for _, name := range []string{"base", "upper", "overlay", "work", "base/d"} {
		err = errors.Join(err, os.Mkdir(in(name), 0o700))
	}
	if err = errors.Join(err, os.WriteFile(in("base/f"), []byte("old"), 0o600), os.WriteFile(in("base/d/g"), nil, 0o600)); err != nil {
		return trial, err
	}
	base, upper, work := s.open(in("base")), s.open(in("upper")), s.open(in("overlay"))
	s.mountOverlay(base, upper, work, in("work"), userNamespace)
	s.shut(base)
	s.put(in("work/f"), "new")
	s.do("renaming", unix.SYS_RENAMEAT2, here, s.text(in("work/f")), here, s.text(in("work/e")), 0)
	s.do("removing", unix.SYS_UNLINKAT, here, s.text(in("work/d/g")), 0)
	s.do("making", unix.SYS_MKDIRAT, here, s.text(in("work/d/h")), 0o700)
	s.do("removing", unix.SYS_UNLINKAT, here, s.text(in("work/d/h")), unix.AT_REMOVEDIR)
	s.do("removing", unix.SYS_UNLINKAT, here, s.text(in("work/d")), unix.AT_REMOVEDIR)
	s.do("unmounting", unix.SYS_UMOUNT2, s.text(in("work")), 0)
	return trial, nil
}

// untouched says whether the original of a trial is as it was.
func untouched(trial string) bool {
	data, err := os.ReadFile(filepath.Join(trial, "base", "f"))
	_, gone := os.Stat(filepath.Join(trial, "base", "d", "g"))
	return err == nil && string(data) == "old" && gone == nil
}

// reflinks says whether a file in a directory can share its blocks with another.
func reflinks(dir string) bool {
	from, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return false
	}
	defer func() { _ = errors.Join(from.Close(), os.Remove(from.Name())) }()
	to, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return false
	}
	defer func() { _ = errors.Join(to.Close(), os.Remove(to.Name())) }()
	_, err = from.WriteString("x")
	return err == nil && unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) == nil
}

// kernelIs says whether the kernel is of this version or a later one.
func kernelIs(major, minor int) bool {
	var u unix.Utsname
	var a, b int
	if unix.Uname(&u) != nil {
		return false
	}
	n, _ := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &a, &b)
	return n == 2 && (a > major || a == major && b >= minor)
}
