package tree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Process identifies one process for ever: a reused number has another start time.
type Process struct {
	PID int
	// Started is its start time in clock ticks since boot: field 22 of /proc/PID/stat (proc_pid_stat(5)).
	Started uint64
}

// Look returns the process that has a number now; false if there is none, or only one that is dead and not yet reaped.
func Look(pid int) (Process, bool) {
	s, err := readStat(pid)
	return Process{PID: pid, Started: s.started}, err == nil && !s.dead()
}

// Alive says whether exactly this process is still there and not dead.
func (p Process) Alive() bool {
	now, ok := Look(p.PID)
	return ok && now == p
}

// Signal sends a signal to exactly this process. A process that is gone is no error.
func (p Process) Signal(s syscall.Signal) error {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("opening process %d: %w", p.PID, err)
	}
	defer func() { _ = unix.Close(fd) }()
	if !p.Alive() { // looked at after opening: the descriptor is of the process that was looked at
		return nil
	}
	if err := unix.PidfdSendSignal(fd, s, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signalling process %d: %w", p.PID, err)
	}
	return nil
}

// stat is what is read of /proc/PID/stat.
type stat struct {
	state   byte
	parent  int
	threads int
	started uint64
	// kernel: it is a thread of the kernel.
	kernel bool
	// environ is the size of its environment in bytes; -1 while a program is being started and has none yet.
	environ int64
}

// dead says whether no thread of it runs any more: a process whose first thread has ended shows as a zombie although
// others may go on.
func (s stat) dead() bool { return (s.state == 'Z' || s.state == 'X') && s.threads <= 1 }

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(data)
}

// parseStat reads a stat line. The command's name, in parentheses, may hold anything, so fields count from the last
// closing one.
func parseStat(data []byte) (s stat, err error) {
	i := bytes.LastIndexByte(data, ')')
	if i < 0 {
		return s, fmt.Errorf("stat line %q: no command name", data)
	}
	fields := bytes.Fields(data[i+1:])
	const state, parent, threads, started = 0, 1, 17, 19 // fields 3, 4, 20 and 22 of the man page, which counts from 1
	if len(fields) <= started || len(fields[state]) != 1 {
		return s, fmt.Errorf("stat line %q: too few fields", data)
	}
	if s.state = fields[state][0]; !('A' <= s.state && s.state <= 'Z' || 'a' <= s.state && s.state <= 'z') {
		return stat{}, fmt.Errorf("stat line %q: state: want a letter", data)
	}
	if s.parent, err = strconv.Atoi(string(fields[parent])); err != nil {
		return s, fmt.Errorf("stat line %q: parent: %w", data, err)
	}
	if s.threads, err = strconv.Atoi(string(fields[threads])); err != nil {
		return s, fmt.Errorf("stat line %q: threads: %w", data, err)
	}
	if s.started, err = strconv.ParseUint(string(fields[started]), 10, 64); err != nil {
		return s, err
	}
	const flags, code, environStart, environEnd, kernelThread = 6, 23, 47, 48, 0x00200000 // fields 9, 26, 50, 51; PF_KTHREAD
	number := func(field int) (n int64) {
		if field < len(fields) {
			n, _ = strconv.ParseInt(string(fields[field]), 10, 64) // addresses of programs fit
		}
		return n
	}
	s.kernel = number(flags)&kernelThread != 0
	// An exec sets where the environment is, fills it in, and only then says where the code is.
	if s.environ = number(environEnd) - number(environStart); number(code) == 0 || number(environEnd) == 0 {
		s.environ = -1
	}
	return s, nil
}

// pids lists all processes that /proc shows.
func pids() ([]int, error) {
	d, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = d.Close() }()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []int
	for _, n := range names {
		if pid, err := strconv.Atoi(n); err == nil {
			all = append(all, pid)
		}
	}
	return all, nil
}

// Member is a process of a tree with its parent's number.
type Member struct {
	Process
	Parent int
	// Threads it has.
	Threads int
}

// Below returns the living descendants of a process, not itself, parents before children. What is born while it looks
// may be missed, so whoever wants to end a tree must look again until nothing is left.
func Below(root int) []Member {
	if _, err := os.Stat("/proc/self/task/" + strconv.Itoa(os.Getpid()) + "/children"); err == nil {
		return byChildren(root)
	}
	return byParents(root)
}

// byChildren walks down the kernel's own lists (CONFIG_PROC_CHILDREN): its cost depends on the tree alone.
func byChildren(root int) (found []Member) {
	type node struct{ pid, threads int }
	queue, seen := []node{{pid: root}}, map[int]bool{root: true}
	for len(queue) > 0 {
		parent := queue[0]
		queue = queue[1:]
		for _, pid := range children(parent.pid, parent.threads) {
			if seen[pid] {
				continue
			}
			seen[pid] = true
			s, err := readStat(pid)
			if err == nil && !s.dead() {
				found = append(found, Member{Process{pid, s.started}, parent.pid, s.threads})
			}
			queue = append(queue, node{pid, s.threads}) // a dead one's children may not have moved yet
		}
	}
	return found
}

// children of all threads of a process. Most have one thread, and then there is nothing to list: of thousands this halves the time.
func children(pid, threads int) (all []int) {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	if threads == 1 {
		return childrenIn(dir + "/" + strconv.Itoa(pid) + "/children")
	}
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	tasks, err := d.Readdirnames(-1)
	if err != nil {
		return nil
	}
	for _, t := range tasks {
		all = append(all, childrenIn(dir+"/"+t+"/children")...)
	}
	return all
}

func childrenIn(path string) (all []int) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	for _, f := range bytes.Fields(data) {
		if pid, err := strconv.Atoi(string(f)); err == nil {
			all = append(all, pid)
		}
	}
	return all
}

// byParents reads every process of the machine.
func byParents(root int) (found []Member) {
	all, err := pids()
	if err != nil {
		return nil
	}
	below := map[int][]Member{}
	for _, pid := range all {
		if s, err := readStat(pid); err == nil {
			below[s.parent] = append(below[s.parent], Member{Process{pid, s.started}, s.parent, s.threads})
		}
	}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, m := range below[queue[0]] {
			if m.Alive() {
				found = append(found, m)
			}
			queue = append(queue, m.PID)
		}
	}
	return found
}

// execPatience is how long a process may take over an exec until it is no longer waited for: in between it has no
// environment that could be read.
const execPatience = time.Second

// Marked returns all living processes whose environment at exec held the entry mark ("KEY=VALUE"), wherever in the
// machine's process tree they hang. A process that is just changing its program is waited for, for execPatience at most:
// what is not found is not ended. A process that cleared its environment is not found.
func Marked(mark string) (found []Process) {
	all, err := pids()
	if err != nil {
		return nil
	}
	self := os.Getpid()
	until := time.Now().Add(execPatience)
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 20*time.Millisecond) {
		var again []int
		for _, pid := range all {
			if pid == self {
				continue
			}
			marked, known := hasMark(pid, mark)
			if !known {
				again = append(again, pid)
			}
			if p, ok := Look(pid); ok && marked {
				found = append(found, p)
			}
		}
		if len(again) == 0 || !time.Now().Before(until) {
			return found
		}
		all = again
		time.Sleep(pause)
	}
}

// hasMark says whether a process's environment holds a mark. It is not known while it changes its program: the kernel has
// taken the environment of the one, in the middle of being read perhaps, and not yet made that of the other.
func hasMark(pid int, mark string) (marked, known bool) {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false, true // it is gone, or somebody else's
	}
	if contains(env, mark) {
		return true, true
	}
	s, err := readStat(pid)
	switch {
	case err != nil || s.dead() || s.kernel:
		return false, true
	case s.state == 'Z': // its first thread has ended
		return contains(environOfThreads(pid), mark), true
	}
	return false, int64(len(env)) == s.environ
}

func contains(env []byte, mark string) bool {
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if string(entry) == mark {
			return true
		}
	}
	return false
}

// environOfThreads reads the environment through the other threads of a process whose first one has ended.
func environOfThreads(pid int) []byte {
	paths, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/environ")
	if err != nil {
		return nil
	}
	for _, path := range paths {
		if env, err := os.ReadFile(path); err == nil && len(env) > 0 {
			return env
		}
	}
	return nil
}

// Holding returns all other living processes that have the file of a path open, or one that was removed or replaced there; with past, only
// the latter. It reads every descriptor on the machine, so it is only for processes that cannot be found by anything else.
func Holding(path string, past bool) (found []Process) {
	all, err := pids()
	if err != nil {
		return nil
	}
	var now os.FileInfo
	if past {
		now, _ = os.Stat(path)
	}
	for _, pid := range all {
		if pid == os.Getpid() || !holds(pid, path, now) {
			continue
		}
		if p, ok := Look(pid); ok {
			found = append(found, p)
		}
	}
	return found
}

// holds says whether a process has a file open that is or was at a path, leaving out the file but, if that is not nil.
func holds(pid int, path string, but os.FileInfo) bool {
	dir := "/proc/" + strconv.Itoa(pid) + "/fd"
	list, err := os.ReadDir(dir)
	if err != nil {
		return false // it is gone, or somebody else's
	}
	for _, e := range list {
		link := filepath.Join(dir, e.Name())
		if to, err := os.Readlink(link); err != nil || strings.TrimSuffix(to, " (deleted)") != path {
			continue
		}
		if info, err := os.Stat(link); err == nil && (but == nil || !os.SameFile(info, but)) {
			return true
		}
	}
	return false
}
