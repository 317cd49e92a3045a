package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// PID is the number of the daemon's process.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Processor is what the daemon's process has used of processors, and what all those have that it has started, living or dead:
// supervisors with all of their subjobs. In steps of 10 ms.
func (d *Daemon) Processor() (own, started time.Duration, err error) {
	own, started, err = processor(d.PID())
	if err != nil {
		return 0, 0, err
	}
	return own, started + below(d.PID()), nil
}

// below is what the living descendants of a process have used, with those that they have reaped. One that ends meanwhile may be missing.
func below(pid int) (sum time.Duration) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range lists {
		text, _ := os.ReadFile(path)
		for _, field := range strings.Fields(string(text)) {
			child, err := strconv.Atoi(field)
			if err != nil {
				continue
			}
			own, reaped, err := processor(child)
			if err == nil {
				sum += own + reaped + below(child)
			}
		}
	}
	return sum
}

// processor is what a process has used, and what those that it has reaped have, with theirs.
func processor(pid int) (own, reaped time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, 0, fmt.Errorf("/proc/%d/stat has %d fields, want more", pid, len(fields))
	}
	var used [4]time.Duration // user and system of its own, and of its children
	for i := range used {
		ticks, err := strconv.Atoi(fields[11+i])
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/%d/stat: %w", pid, err)
		}
		used[i] = time.Duration(ticks) * (time.Second / 100) // USER_HZ is 100 wherever Linux runs Go
	}
	return used[0] + used[1], used[2] + used[3], nil
}
