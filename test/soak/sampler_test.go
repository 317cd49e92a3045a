package soak

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// sampler looks at /proc all the time for what no promise allows: two subjobs alive on one slice, or one alive after its
// lease's end.
type sampler struct {
	data string
	stop chan struct{}
	done sync.WaitGroup

	mu      sync.Mutex
	wrong   []string
	slices  map[string]string // token to slice, from the supervisors' event file
	samples int
	still   stillness
}

// proc is one process of a subjob.
type proc struct {
	pid      int
	start    string // start time in ticks: tells a reused pid apart
	token    string
	deadline time.Time
}

// slack is what a process may be seen after its lease's end: it takes the kernel a moment to take it down.
const slack = time.Second

func startSampler(data string) *sampler {
	s := &sampler{data: data, stop: make(chan struct{}), slices: map[string]string{}, still: stillness{since: map[string]time.Time{}}}
	s.done.Go(func() {
		for {
			select {
			case <-s.stop:
				return
			case <-time.After(5 * time.Millisecond):
				s.sample()
			}
		}
	})
	return s
}

func (s *sampler) close() []string {
	close(s.stop)
	s.done.Wait()
	return s.wrong
}

func (s *sampler) found() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.wrong)
}

func (s *sampler) sample() {
	now := time.Now()
	procs := subjobs(s.data)
	if s.samples++; s.samples%2 == 0 { // a look at how each stands is dearer, and a stand may be short
		for _, w := range s.still.look(procs, now) {
			s.add("%s", w)
		}
	}
	first := map[string]proc{}
	for _, p := range procs {
		if !p.deadline.IsZero() && now.After(p.deadline.Add(slack)) && p.alive() {
			s.add("subjob %s (pid %d) is alive %v after the end of its lease", p.token, p.pid, now.Sub(p.deadline).Round(time.Millisecond))
		}
		slice := s.sliceOf(p.token)
		if slice == "" {
			continue
		}
		other, seen := first[slice]
		if !seen {
			first[slice] = p
			continue
		}
		// Both were seen, one after the other. Only if the first is still there now, after the second was seen, were they alive
		// together. A process that is being taken down can still be listed: look again once it had time to go.
		if other.token != p.token && other.alive() && p.alive() {
			time.Sleep(20 * time.Millisecond)
			if other.alive() && p.alive() {
				s.add("subjobs %s (pid %d) and %s (pid %d) are alive on slice %s at once", other.token, other.pid, p.token, p.pid, slice)
			}
		}
	}
}

func (s *sampler) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wrong) < 20 {
		s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
	}
}

func (s *sampler) sliceOf(token string) string {
	if slice := s.slices[token]; slice != "" {
		return slice
	}
	all, err := readEvents(s.data)
	if err != nil {
		return ""
	}
	for _, e := range all {
		s.slices[e.Token] = e.Slice
	}
	return s.slices[token]
}

// alive says whether the process is still there, is the same one, and is not a zombie.
func (p proc) alive() bool {
	start, state := stat(p.pid)
	return start == p.start && state != "Z" && state != "X"
}

// processes are all that there are.
func processes() (pids []int) {
	dirs, _ := os.ReadDir("/proc")
	for _, d := range dirs {
		if pid, err := strconv.Atoi(d.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// subjobs lists the processes whose environment says that they belong to a subjob of this data directory.
func subjobs(data string) []proc {
	var out []proc
	for _, pid := range processes() {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || !bytes.Contains(environ, []byte("SLUICE_OUTPUT_DIR="+data)) {
			continue
		}
		p := proc{pid: pid}
		for v := range strings.SplitSeq(string(environ), "\x00") {
			if t, ok := strings.CutPrefix(v, "SLUICE_SUBJOB="); ok {
				p.token = t
			}
			if t, ok := strings.CutPrefix(v, "SLUICE_DEADLINE="); ok {
				p.deadline, _ = time.Parse(time.RFC3339Nano, t)
			}
		}
		var state string
		if p.start, state = stat(pid); p.start != "" && state != "Z" && p.token != "" {
			out = append(out, p)
		}
	}
	return out
}

// stat reads a process's start time and state.
func stat(pid int) (start, state string) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", ""
	}
	_, rest, ok := strings.Cut(string(data), ") ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return "", ""
	}
	return fields[19], fields[0]
}

// supervisors lists the processes of the supervisor program that serve this data directory. The init of a subjob, which has the
// arguments of its supervisor, is none: who kills it ends a subjob as the subjob itself might.
func supervisors(data string) []int {
	var out []int
	for _, pid := range processes() {
		cmdline, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err == nil && bytes.Contains(cmdline, []byte("sluice-shim")) && bytes.Contains(cmdline, []byte(data)) &&
			!bytes.HasPrefix(name, []byte("sluice-init")) {
			out = append(out, pid)
		}
	}
	return out
}
