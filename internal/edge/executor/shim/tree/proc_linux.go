package tree

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Process names one process for good: a reused number has another start time.
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
