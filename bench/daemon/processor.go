package daemon

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// PID is the number of the daemon's process.
func (d *Daemon) PID() int { return d.cmd.Process.Pid }

// Processor is what the daemon's process has used of processors, and what those that it has started and reaped have, with
// theirs: supervisors with all of their subjobs. In steps of 10 ms.
func (d *Daemon) Processor() (own, started time.Duration, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.PID()))
	if err != nil {
		return 0, 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0, 0, fmt.Errorf("/proc/%d/stat has %d fields, want more", d.PID(), len(fields))
	}
	var used [4]time.Duration // user and system of its own, and of its children
	for i := range used {
		ticks, err := strconv.Atoi(fields[11+i])
		if err != nil {
			return 0, 0, fmt.Errorf("/proc/%d/stat: %w", d.PID(), err)
		}
		used[i] = time.Duration(ticks) * (time.Second / 100) // USER_HZ is 100 wherever Linux runs Go
	}
	return used[0] + used[1], used[2] + used[3], nil
}
