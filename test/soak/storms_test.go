package soak

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A storm is a program beside Sluice that takes the memory of the control group that all of the soak is in, holds it for some seconds, and
// gives it back. What Sluice runs there grows as well. So the lines of Airlock are passed on real memory, and no other program of the
// machine is in the way.

// groupLimit is the memory of the group in bytes: the daemon, its supervisors and three subjobs have a fifth of it.
const groupLimit = 768 << 20

// group is a control group with a limit of memory, of either version.
type group struct {
	dir, used, inactive string
}

// newGroup makes one. An error says why there can be none: it takes root and the memory controller.
func newGroup() (*group, error) {
	name := "sluice-soak-" + strconv.Itoa(os.Getpid())
	var errs []error
	for _, v := range []struct{ root, limit, used, inactive string }{
		{"/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "},
		{"/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file "},
	} {
		g := &group{dir: filepath.Join(v.root, name), used: v.used, inactive: v.inactive}
		err := os.Mkdir(g.dir, 0o755)
		if err == nil {
			if err = os.WriteFile(filepath.Join(g.dir, v.limit), strconv.AppendInt(nil, groupLimit, 10), 0); err == nil {
				return g, nil
			}
			g.close()
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no control group with a limit of memory can be made (as root it can): %w", errors.Join(errs...))
}

// close removes it once what was in it is gone.
func (g *group) close() {
	for range 100 {
		if err := os.Remove(g.dir); err == nil || errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// into has a command begin in it; a nil group is none.
func (g *group) into(c *exec.Cmd) *exec.Cmd {
	if g == nil {
		return c
	}
	return exec.Command("/bin/sh", append([]string{"-c", `echo $$ > "$0" && exec "$@"`, filepath.Join(g.dir, "cgroup.procs")},
		c.Args...)...)
}

// free is what is left of it in bytes, files that are not used not counted.
func (g *group) free() int64 {
	used, _ := os.ReadFile(filepath.Join(g.dir, g.used))
	n, _ := strconv.ParseInt(strings.TrimSpace(string(used)), 10, 64)
	stat, _ := os.ReadFile(filepath.Join(g.dir, "memory.stat"))
	for line := range strings.Lines(string(stat)) {
		if v, ok := strings.CutPrefix(line, g.inactive); ok {
			inactive, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
			n -= inactive
		}
	}
	return groupLimit - n
}

// watchers are the processes in it that watch the machine's memory.
func (g *group) watchers() (pids []int) {
	procs, _ := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	for line := range strings.Lines(string(procs)) {
		args, _ := os.ReadFile("/proc/" + strings.TrimSpace(line) + "/cmdline")
		if pid, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && bytes.Contains(args, []byte("sluice-shim\x00watch\x00")) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// storms blow until stop is closed. Some leave 4% of the memory, which is over the severe line, some 1.5%, which is over that of emergency.
func (g *group) storms(seed uint64, stop <-chan struct{}) (blown int) {
	rng := rand.New(rand.NewPCG(seed, 2))
	for {
		select {
		case <-stop:
			return blown
		case <-time.After(time.Duration(500+rng.IntN(2500)) * time.Millisecond):
		}
		leave := int64(groupLimit) / 1000 * []int64{40, 40, 15}[rng.IntN(3)]
		if g.free() <= leave {
			continue
		}
		c := g.into(exec.Command(exeOf()))
		c.Env = append(os.Environ(), workerVariable+"=storm", "SOAK_STORM="+strconv.FormatInt(g.free()-leave, 10))
		c.SysProcAttr = newSession()
		if c.Start() != nil {
			continue
		}
		blown++
		select {
		case <-stop:
		case <-time.After(time.Duration(1000+rng.IntN(4000)) * time.Millisecond):
		}
		_ = c.Process.Kill() // the kernel may have ended it
		_ = c.Wait()
	}
}

// blow takes so much memory, and waits to be killed. Where it is too much the kernel ends it before anybody else.
func blow() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	n, _ := strconv.Atoi(os.Getenv("SOAK_STORM"))
	taken, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		fail("take %d bytes: %v", n, err)
	}
	for i := 0; i < len(taken); i += 4096 {
		taken[i] = 1
		if i%(8<<20) == 0 {
			time.Sleep(2 * time.Millisecond) // some 4 GiB a second
		}
	}
	time.Sleep(time.Hour)
}

// stillness notes for how long subjobs are suspended without a break.
type stillness struct {
	mu    sync.Mutex
	since map[string]time.Time
	// stood is how many were seen suspended.
	stood int
}

// longest is for how long one may be seen to be suspended: three entries of the timer, between which it may go on unseen, what a supervisor
// waits where nobody answers for it, and time for a machine that is busy.
const longest = 3*airlockTimer + 6*time.Second

const airlockTimer = 3 * time.Second

// look takes in which subjobs are suspended now, and returns which have been for too long.
func (s *stillness) look(procs []proc, now time.Time) (tooLong []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	standing := map[string]bool{}
	for _, p := range procs {
		if p.stands() {
			standing[p.token] = true
		}
	}
	for token, since := range s.since {
		if !standing[token] {
			delete(s.since, token)
		} else if now.Sub(since) > longest {
			tooLong = append(tooLong, fmt.Sprintf("subjob %s is suspended for %v", token, now.Sub(since).Round(time.Millisecond)))
		}
	}
	for token := range standing {
		if _, known := s.since[token]; !known {
			s.since[token] = now
			s.stood++
		}
	}
	return tooLong
}

// met says whether a watcher has acted, and a subjob was seen suspended.
func (s *stillness) met(d *daemon) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stood > 0 && len(d.acts()) > 0
}

// stands says whether the process is suspended: it was stopped, or its control group is frozen.
func (p proc) stands() bool {
	if _, state := stat(p.pid); state == "T" {
		return true
	}
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", p.pid))
	for line := range strings.Lines(string(data)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
				if text, err := os.ReadFile(filepath.Join(mount, strings.TrimSpace(path), "cgroup.freeze")); err == nil {
					return bytes.HasPrefix(text, []byte("1"))
				}
			}
		}
	}
	return false
}

func exeOf() string {
	self, err := os.Executable()
	if err != nil {
		fail("%v", err)
	}
	return self
}
