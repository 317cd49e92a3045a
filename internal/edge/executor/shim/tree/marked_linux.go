package tree

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

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
