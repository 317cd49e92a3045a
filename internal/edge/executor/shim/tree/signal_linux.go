package tree

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// Catches says whether a process has a handler of its own for a signal (SigCgt of /proc/PID/status).
func (p Process) Catches(s syscall.Signal) bool { return p.mask("SigCgt:")&(1<<(uint(s)-1)) != 0 }

func (p Process) mask(name string) uint64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			v, _ := strconv.ParseUint(string(bytes.TrimSpace(rest)), 16, 64)
			return v
		}
	}
	return 0
}

// Warn sends s to those of the tree that catch it: a warning must not end what does not know it.
func Warn(members []Member, s syscall.Signal) (told int) {
	for _, m := range members {
		if m.Catches(s) && m.Signal(s) == nil {
			told++
		}
	}
	return told
}

// Ask asks a tree to end with s. It goes to every process but those that have no handler for it while one below them
// has: a shell that only waits for the program it started would die at once, and take with it the checkpoint that the
// program is about to write.
func Ask(members []Member, s syscall.Signal) {
	wrapper := map[int]bool{}
	parent := map[int]int{}
	for _, m := range members {
		parent[m.PID] = m.Parent
	}
	catches := map[int]bool{}
	for _, m := range members {
		if !m.Catches(s) {
			continue
		}
		catches[m.PID] = true
		for up := parent[m.PID]; up != 0 && !wrapper[up]; up = parent[up] {
			wrapper[up] = true
		}
	}
	for _, m := range members {
		if catches[m.PID] || !wrapper[m.PID] {
			_ = m.Signal(s) // one that may not be signalled is killed later
		}
	}
}

// Stopped are those of the tree that a signal has stopped.
func Stopped(members []Member) (standing []Member) {
	for _, m := range members {
		if s, err := readStat(m.PID); err == nil && s.started == m.Started && s.state == 'T' {
			standing = append(standing, m)
		}
	}
	return standing
}

// Suspended reports whether all of a tree is suspended, by anyone: by its control group, or because every process of it was stopped.
func Suspended(g Group, members []Member) bool {
	return g.Frozen() || len(members) > 0 && len(Stopped(members)) == len(members)
}

// Thaw resumes a suspended tree, whoever suspended it: its control group, and its stopped processes.
func Thaw(g Group, members []Member) error {
	err := g.Thaw()
	for _, m := range slices.Backward(Stopped(members)) { // children first: their parents find them as they were
		err = errors.Join(err, m.Signal(syscall.SIGCONT))
	}
	return err
}

// End kills what list returns until it returned nothing twice running (one look can miss what moves while it looks) or
// patience is over, and returns who is left.
func End(list func() []Process, patience time.Duration) (left []Process) {
	until := time.Now().Add(patience)
	empty := 0
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		left = list()
		if empty++; len(left) > 0 {
			empty = 0
		}
		if empty == 2 || !time.Now().Before(until) {
			return left
		}
		Kill(left)
		time.Sleep(pause)
	}
}

// Kill sends SIGKILL to all, after having stopped all: a tree that grows faster than it is killed does not escape. A process that may not
// be signalled stays, and the next look finds it.
func Kill(all []Process) {
	if len(all) > 1 {
		for _, p := range all {
			_ = p.Signal(syscall.SIGSTOP)
		}
	}
	for _, p := range all {
		_ = p.Signal(syscall.SIGKILL)
	}
}

// Processes drops the parents.
func Processes(members []Member) []Process {
	out := make([]Process, len(members))
	for i, m := range members {
		out[i] = m.Process
	}
	return out
}
