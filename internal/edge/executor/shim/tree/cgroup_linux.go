package tree

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/volume"
)

// Group is a cgroup v2 directory that holds one subjob.
type Group string

// DaemonGroup is the name of the control group that a service manager puts the daemon into (systemd:
// DelegateSubgroup=). Its parent is then the daemon's to use, and holds no process: only such a group can give its
// children memory limits (cgroups(7), "no internal processes").
const DaemonGroup = "sluice-daemon"

// GroupBase finds a cgroup v2 directory in which groups can be made and killed: the one this process is in, or the one
// above if this one is DaemonGroup. memory and processes say that groups have limits of their own there.
func GroupBase() (base string, memory, processes bool) {
	if base = OwnGroup(); base == "" {
		return "", false, false
	}
	if filepath.Base(base) == DaemonGroup {
		base = filepath.Dir(base)
	}
	Delegate(base)
	g, err := MakeProbe(base, Bounds{Memory: 1 << 40, Processes: 1 << 20})
	if err != nil {
		return "", false, false
	}
	defer func() { _ = g.Remove() }()
	if unix.Access(g.file("cgroup.kill"), unix.W_OK) != nil {
		return "", false, false
	}
	return base, g.has("memory.max"), g.has("pids.max")
}

// Delegate turns on in base what its groups are to have of their own: memory, and a count of processes, each where that may be had. It is
// refused where processes live in base, or where base itself has neither from above; then groups there have none.
func Delegate(base string) {
	_ = Group(base).write("cgroup.subtree_control", "+memory")
	_ = Group(base).write("cgroup.subtree_control", "+pids")
}

// OwnGroup is the cgroup v2 directory that this process is in, empty if there is none.
func OwnGroup() string {
	mount, own := groupMount(), groupOwn()
	if mount == "" || own == "" {
		return ""
	}
	return filepath.Join(mount, own)
}

// groupMount is where the cgroup2 file system is mounted, empty if nowhere.
func groupMount() string {
	mounts, _ := volume.Mounts()
	for _, m := range mounts {
		if m.Type == "cgroup2" {
			return m.Point
		}
	}
	return ""
}

// groupOwn is this process's path in it.
func groupOwn() string { return groupOf("self") }

// groupOf is the path in it of a process, by its name in /proc.
func groupOf(process string) string {
	data, err := os.ReadFile("/proc/" + process + "/cgroup")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSpace(path)
		}
	}
	return ""
}

// Bounds of a group; 0 for none.
type Bounds struct {
	// Memory in bytes, Processes with threads.
	Memory, Processes int64
}

// groupPrefix begins the names of all groups that supervisors make.
const groupPrefix = "sluice-"

// GroupIn is the group of a name below base; none where there is no base.
func GroupIn(base, name string) Group {
	if base == "" {
		return ""
	}
	return Group(filepath.Join(base, groupPrefix+name))
}

// MakeGroup makes a group with bounds, those that the kernel can hold there. An empty one of that name is replaced: it was left by a
// supervisor that was killed, and a new one that froze with it, or that had its counts of events, would never run or be blamed for
// them. One with processes in it is somebody else's: EBUSY.
func MakeGroup(g Group, b Bounds) (Group, error) {
	err := os.Mkdir(string(g), 0o755)
	if errors.Is(err, fs.ErrExist) {
		if err = g.Remove(); err == nil {
			err = os.Mkdir(string(g), 0o755)
		}
	}
	if err != nil {
		return "", fmt.Errorf("making a control group: %w", err)
	}
	return g.bound(b)
}

// bound gives a group that was just made its bounds.
func (g Group) bound(b Bounds) (Group, error) {
	var errs []error
	if b.Memory > 0 && g.has("memory.max") {
		// What counts is memory and swap together; the watch sees to their sum, the kernel to the part that hurts at once.
		errs = append(errs, g.write("memory.max", strconv.FormatInt(b.Memory, 10)), g.write("memory.oom.group", "1"))
	}
	if b.Processes > 0 && g.has("pids.max") {
		errs = append(errs, g.write("pids.max", strconv.FormatInt(b.Processes, 10)))
	}
	if err := errors.Join(errs...); err != nil {
		return "", errors.Join(fmt.Errorf("limiting a control group: %w", err), g.Remove())
	}
	return g, nil
}

// Limit gives the group another bound of its memory, in bytes; 0 or less, or where the kernel holds it to none: nothing changes.
func (g Group) Limit(memory int64) error {
	if g == "" || memory <= 0 || !g.has("memory.max") {
		return nil
	}
	return g.write("memory.max", strconv.FormatInt(memory, 10))
}

// MakeProbe makes a group of its own below base to find out with what can be done there. Its name is nobody else's: numbers of processes
// are those of a pid namespace, and daemons of several may share a base.
func MakeProbe(base string, b Bounds) (Group, error) {
	sweepProbes(base)
	dir, err := os.MkdirTemp(base, probes)
	if err != nil {
		return "", fmt.Errorf("making a control group: %w", err)
	}
	return Group(dir).bound(b)
}

// probes are the names of groups of MakeProbe; one that is older than probed is nobody's any more.
const (
	probes = "sluice-probe-*"
	probed = time.Minute
)

// sweepProbes removes groups of MakeProbe whose makers were killed before they could. One that anything is in the kernel keeps.
func sweepProbes(base string) {
	left, _ := filepath.Glob(filepath.Join(base, probes))
	for _, dir := range left {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() && time.Since(info.ModTime()) > probed {
			_ = os.Remove(dir)
		}
	}
}

func (g Group) file(name string) string { return filepath.Join(string(g), name) }

func (g Group) has(name string) bool {
	_, err := os.Stat(g.file(name))
	return err == nil
}

// write uses a plain descriptor: the runtime's poller would wait for ever on a control file that says EAGAIN.
func (g Group) write(name, text string) error {
	fd, err := unix.Open(g.file(name), unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", g.file(name), err)
	}
	_, err = unix.Write(fd, []byte(text))
	return errors.Join(err, unix.Close(fd))
}

// Kill ends every process of the group. A group that is gone is no error.
func (g Group) Kill() error {
	if g == "" {
		return nil
	}
	if err := g.write("cgroup.kill", "1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Frozen reports whether the group was told to freeze.
func (g Group) Frozen() bool {
	if g == "" {
		return false
	}
	data, err := os.ReadFile(g.file("cgroup.freeze"))
	return err == nil && len(data) > 0 && data[0] == '1'
}

// Thaw resumes a frozen group. A group that is gone is no error.
func (g Group) Thaw() error {
	if !g.Frozen() {
		return nil
	}
	if err := g.write("cgroup.freeze", "0"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Members are the living processes of the group.
func (g Group) Members() (found []Process) {
	if g == "" {
		return nil
	}
	data, err := os.ReadFile(g.file("cgroup.procs"))
	if err != nil {
		return nil
	}
	for _, f := range bytes.Fields(data) {
		if pid, err := strconv.Atoi(string(f)); err == nil {
			if p, ok := Look(pid); ok {
				found = append(found, p)
			}
		}
	}
	return found
}

// OutOfMemory says whether the kernel killed a process of the group because the group passed its own limit. When the
// machine as a whole runs out, processes die here too (oom_kill) without the group having been at its limit (oom).
func (g Group) OutOfMemory() bool {
	if g == "" {
		return false
	}
	data, err := os.ReadFile(g.file("memory.events"))
	if err != nil {
		return false
	}
	return counter(data, "oom") > 0 && counter(data, "oom_kill") > 0
}

// OutOfProcesses says whether the kernel refused a process of the group another one because of the group's bound.
func (g Group) OutOfProcesses() bool {
	if g == "" {
		return false
	}
	data, err := os.ReadFile(g.file("pids.events"))
	return err == nil && counter(data, "max") > 0
}

// counter is one number of a file of lines "name number"; 0 if it is not there.
func counter(data []byte, name string) (n uint64) {
	for line := range bytes.Lines(data) {
		if f := bytes.Fields(line); len(f) == 2 && string(f[0]) == name {
			n, _ = strconv.ParseUint(string(f[1]), 10, 64)
		}
	}
	return n
}

// Remove removes the empty group. One that is gone is no error.
func (g Group) Remove() error {
	if g == "" {
		return nil
	}
	if err := os.Remove(string(g)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// GroupOf is the control group of a process if a supervisor made it for a subjob of this name (see GroupIn), else none.
func GroupOf(pid int, name string) Group {
	mount, own := groupMount(), groupOf(strconv.Itoa(pid))
	if mount == "" || !strings.HasPrefix(filepath.Base(own), groupPrefix+name+"-") {
		return ""
	}
	return Group(filepath.Join(mount, own))
}
