package supervisor

import (
	"errors"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/planted"
	"sluice.dev/sluice/internal/edge/executor/shim"
	"sluice.dev/sluice/internal/edge/executor/shim/tree"
)

// noProc is the exit status of a probed init whose namespace can have no /proc of its own.
const noProc = 3

// probe tries what this machine allows, the best first.
func probe() shim.Isolation {
	var iso shim.Isolation
	iso.Cgroup, iso.KernelMemory = tree.GroupBase()
	tries := []shim.Isolation{{PIDNamespace: true, Proc: true}, {PIDNamespace: true}}
	if os.Geteuid() != 0 {
		tries = []shim.Isolation{{PIDNamespace: true, UserNamespace: true, Proc: true}, {PIDNamespace: true, UserNamespace: true}}
	}
	for _, try := range tries {
		if works(try) {
			iso.PIDNamespace, iso.UserNamespace, iso.Proc = true, try.UserNamespace, try.Proc
			break
		}
	}
	return iso
}

func works(iso shim.Isolation) bool {
	cmd := exec.Command("/proc/self/exe", ProbeInit)
	cmd.SysProcAttr = surroundings(iso)
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode() == noProc && !iso.Proc
	}
	return err == nil
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
	if iso.UserNamespace {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		uid, gid := os.Geteuid(), os.Getegid()
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		// An exec by anyone but root drops the capabilities that the new namespace gave; mounting /proc needs one.
		attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	}
	return attr
}

func probeInit() int {
	if os.Getpid() != 1 {
		return 1
	}
	if mountProc() != nil {
		return noProc
	}
	return 0
}

// mountProc gives a new mount namespace its own /proc. Mounts are made private first, or they would show outside.
func mountProc() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	return unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}
