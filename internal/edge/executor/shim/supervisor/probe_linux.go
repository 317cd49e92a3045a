package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/planted"
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
	wanted, err := json.Marshal(iso)
	if err != nil {
		return false
	}
	cmd := exec.Command("/proc/self/exe", ProbeInit, string(wanted), dir)
	cmd.SysProcAttr = surroundings(iso)
	return cmd.Run() == nil
}

// probeInit is an init that only tries its surroundings.
func probeInit(wanted, dir string) error {
	var iso shim.Isolation
	if err := json.Unmarshal([]byte(wanted), &iso); err != nil {
		return err
	}
	if os.Getpid() != 1 {
		return errors.New("not the init of a namespace")
	}
	if !iso.Proc {
		return nil
	}
	if err := mountProc(); err != nil {
		return err
	}
	if iso.Work == shim.WorkOverlay {
		return tryOverlay(dir, iso.UserNamespace)
	}
	if iso.Own {
		return ownPlaces(1 << 20)
	}
	return nil
}

// tryOverlay does to an overlay what programs do to a work directory, and looks whether the original is as it was.
func tryOverlay(dir string, userNamespace bool) (err error) {
	trial, err := os.MkdirTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, foreign.Remove(trial)) }()
	in := func(name string) string { return filepath.Join(trial, name) }
	open := func(name string) (*os.File, error) {
		if err := os.Mkdir(in(name), 0o700); err != nil {
			return nil, err
		}
		return openPath(in(name))
	}
	base, errBase := open("base")
	upper, errUpper := open("upper")
	work, errWork := open("overlay")
	if err := errors.Join(errBase, errUpper, errWork, os.Mkdir(in("work"), 0o700), os.Mkdir(in("base/d"), 0o700),
		os.WriteFile(in("base/f"), []byte("old"), 0o600), os.WriteFile(in("base/d/g"), nil, 0o600)); err != nil {
		return err
	}
	if err := mountOverlay(base, upper, work, in("work"), userNamespace); err != nil {
		return err
	}
	done := errors.Join(os.WriteFile(in("work/f"), []byte("new"), 0o600), os.Rename(in("work/f"), in("work/e")), os.Remove(in("work/d/g")),
		os.Mkdir(in("work/d/h"), 0o700), os.RemoveAll(in("work/d")), //sluice:trusted made by this function
		unix.Unmount(in("work"), 0))
	if data, err := os.ReadFile(in("base/f")); err != nil || string(data) != "old" {
		return errors.Join(done, fmt.Errorf("the original was written to: %q, %w", data, err))
	}
	return done
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

// surroundings are the namespaces of the init, and its end with its parent's.
func surroundings(iso shim.Isolation) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	if planted.In(planted.OrphanTree) || planted.In(planted.SellBeforeGone) {
		return &syscall.SysProcAttr{Setsid: true}
	}
	if !iso.PIDNamespace {
		return attr
	}
	attr.Cloneflags = unix.CLONE_NEWPID
	if iso.Proc {
		attr.Cloneflags |= unix.CLONE_NEWNS
	}
	if iso.Own {
		attr.Cloneflags |= unix.CLONE_NEWIPC
	}
	if iso.UserNamespace {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		uid, gid := os.Geteuid(), os.Getegid()
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// An exec by anyone but root drops the capabilities that the new namespace gave. Mounting needs one, and an overlay the
		// second: its kernel side keeps a directory that is closed to everybody. The command gets neither.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_DAC_OVERRIDE}
	}
	return attr
}
