package slurm

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/test/slurm/cluster"
	"sluice.dev/sluice/test/witness"
)

const (
	// nodes of the Slurm, each with so many CPUs, of which a pilot has one and a job of the site all.
	nodes, cpus = 3, 2
	// most is how many pilots there may be.
	most = 4
	// unitsOfAJob is what each job does, and atOnce how many jobs are not over at any time.
	unitsOfAJob, atOnce = 200, 3
	// pool is the provider's name.
	pool = "scavenger"
)

// world is a Slurm and a head that has its pilots from there alone.
type world struct {
	t      *testing.T
	dir    string
	slurm  *cluster.Cluster
	client *witness.Client
	head   *head
	watch  *watch
	// scripts is how many scripts of pilots were killed before they could clear their folder, crashes how often slurmctld was.
	scripts, crashes int
}

// newWorld starts it all.
func newWorld(t *testing.T, bin string) *world {
	t.Helper()
	w := emptyWorld(t, begin(t, cluster.Config{Dir: filepath.Join(shortDir(t), "slurm"), Nodes: nodes, CPUs: cpus, Preempt: true}))
	w.run(bin, preemptPool(w, bin), &witness.Client{Units: unitsOfAJob, AtOnce: atOnce, Many: 4, Few: 2})
	w.watch = newWatch(w)
	return w
}

// emptyWorld has a Slurm and no head.
func emptyWorld(t *testing.T, c *cluster.Cluster) *world {
	t.Helper()
	w := &world{t: t, dir: shortDir(t), slurm: c}
	for _, d := range []string{"shared", "scratch", "witnesses", "tools"} {
		if err := os.MkdirAll(filepath.Join(w.dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyProgram(w.worker()); err != nil {
		t.Fatal(err)
	}
	return w
}

// worker is the program of the jobs: not below /tmp, which each subjob has for itself.
func (w *world) worker() string { return filepath.Join(w.dir, "worker") }

// run starts a head with a file of --config, and makes a client of it, whose sizes are given.
func (w *world) run(bin, text string, client *witness.Client) {
	w.t.Helper()
	w.head = newHead(w.t, w, bin, text)
	client.Program, client.Socket, client.Dir = filepath.Join(bin, "sluice"), filepath.Join(w.head.data, "socket"), w.dir
	client.Witnesses, client.Memory, client.Worker = filepath.Join(w.dir, "witnesses"), "64Mi", w.worker()
	w.client = client
	w.head.start()
	if err := witness.Until("the head answers", time.Minute, func() error { _, err := w.client.Sluice("nodes"); return err }); err != nil {
		log, _ := os.ReadFile(w.head.data + ".log")
		w.t.Fatalf("%v\n%s", err, log)
	}
}

// submits keeps the client's jobs coming until the test is over.
func (w *world) submits() {
	ctx, end := context.WithCancel(w.t.Context())
	submitted := make(chan error, 1)
	go func() { submitted <- w.client.Submit(ctx) }()
	w.t.Cleanup(func() {
		end()
		if err := <-submitted; err != nil {
			w.t.Error(err)
		}
	})
}

// copyProgram copies this one.
func copyProgram(to string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	data, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	return os.WriteFile(to, data, 0o700)
}

// shortDir is a folder whose path is short enough for sockets, removed at the end unless something failed.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/tmp", "sluice-slurm-") //nolint:usetesting // paths of sockets must be short, and it is kept on failure
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("what is left is in %s", dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// ctx is for calls of Slurm: also while the test ends.
func (w *world) ctx() context.Context { return context.WithoutCancel(w.t.Context()) }

func (w *world) until(what string, limit time.Duration, holds func() error) {
	w.t.Helper()
	if err := witness.Until(what, limit, holds); err != nil {
		w.t.Error(err)
	}
}

// freeAddress is one of loopback that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// head is the daemon whose pilots these are.
type head struct {
	t         *testing.T
	data      string
	args, env []string

	mu  sync.Mutex
	cmd *exec.Cmd
}

// tools are the commands of Slurm as the head finds them: scripts that do what the file beside them says, and else call the real ones.
const tool = `#!/bin/bash
# hang: it answers nobody. junk: it prints what it should not. old: it answers as it did last. refuse: it takes nothing. lost: it does what
# it is told, and its answer is lost.
name=%[1]s real=%[2]s dir=%[3]s
mode=$(cat "$dir/$name.mode" 2>/dev/null)
case $mode in
hang) exec sleep 600 ;;
junk) echo "slurm_load_jobs error: Unexpected message received"; exit 0 ;;
old) if [ -f "$dir/$name.last" ]; then cat "$dir/$name.last"; exit 0; fi ;;
refuse) echo "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)" >&2; exit 1 ;;
lost)
  "$real" "$@" >/dev/null 2>&1
  echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2
  exit 1 ;;
esac
if [ "$name" = squeue ]; then
  "$real" "$@" >"$dir/squeue.$$" || { s=$?; rm -f "$dir/squeue.$$"; exit $s; }
  cat "$dir/squeue.$$"; mv "$dir/squeue.$$" "$dir/squeue.last"; exit 0
fi
exec "$real" "$@"
`

// preemptPool is a head's file with a pool of the partition that gives way.
func preemptPool(w *world, bin string) string {
	return fmt.Sprintf(`providers:
- name: %s
  kind: slurm
  partition: preempt
  atMost: %d
  lengths: [1m, 2m, 4m]
  idle: 5s
  start: 5s
  every: 1s
  slices: [{memory: 512Mi}, {memory: 256Mi}]
  cpus: 1
  shared: %s
  scratch: %s
  sluice: %s
  gpus: "sim:custom,mem=512Mi+256Mi"
`, pool, most, filepath.Join(w.dir, "shared"), filepath.Join(w.dir, "scratch"), filepath.Join(bin, "sluice"))
}

// newHead makes one with a file of --config.
func newHead(t *testing.T, w *world, bin, text string) *head {
	t.Helper()
	tools := filepath.Join(w.dir, "tools")
	for _, name := range []string{"sbatch", "squeue", "scancel", "scontrol"} {
		real := filepath.Join(w.slurm.Bin(), name)
		if err := os.WriteFile(filepath.Join(tools, name), fmt.Appendf(nil, tool, name, real, tools), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	at := freeAddress(t)
	file := filepath.Join(w.dir, "head.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h := &head{t: t, data: filepath.Join(w.dir, "head")}
	h.args = []string{filepath.Join(bin, "sluice"), "up", "--data", h.data, "--name", "head", "--listen", freeAddress(t),
		"--cluster", at, "--gpus", "sim:custom,mem=4Mi", "--config", file, "--snapshot-records", "500"}
	h.env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
	t.Cleanup(h.kill)
	return h
}

func (h *head) start() {
	h.t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	log, err := os.OpenFile(h.data+".log", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		h.t.Fatal(err)
	}
	defer log.Close()
	h.cmd = exec.Command(h.args[0], h.args[1:]...)
	h.cmd.Env, h.cmd.Stdout, h.cmd.Stderr = h.env, log, log
	h.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
}

func (h *head) signal(s syscall.Signal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cmd != nil {
		_ = h.cmd.Process.Signal(s) // one that has ended is seen by what does not answer
	}
}

// kill ends the daemon at once.
func (h *head) kill() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.cmd != nil {
		_ = h.cmd.Process.Kill()
		_ = h.cmd.Wait()
		h.cmd = nil
	}
}

// as makes one of the head's commands of Slurm behave in a way for as long as f runs.
func (w *world) as(name, mode string, f func()) error {
	path := filepath.Join(w.dir, "tools", name+".mode")
	if err := os.WriteFile(path, []byte(mode), 0o600); err != nil {
		return err
	}
	defer func() { _ = os.Remove(path) }()
	f()
	return nil
}

// pilot is one as Slurm has it: nobody but Slurm is asked.
type pilot struct{ id, name, state string }

// alive reports whether it waits or runs.
func (p pilot) alive() bool {
	return slices.Contains([]string{"PENDING", "RUNNING", "CONFIGURING", "SUSPENDED"}, p.state)
}

// pilots are those that Slurm knows.
func (w *world) pilots() ([]pilot, error) {
	out, err := w.slurm.Run(w.ctx(), "squeue", "-h", "-t", "all", "-p", "preempt", "-o", "%i|%j|%T")
	if err != nil {
		return nil, fmt.Errorf("squeue: %w", err)
	}
	var list []pilot
	for line := range strings.Lines(out) {
		if f := strings.Split(strings.TrimSpace(line), "|"); len(f) == 3 && strings.HasPrefix(f[1], "sluice.") {
			list = append(list, pilot{f[0], f[1], f[2]})
		}
	}
	return list, nil
}

// running is any of the pilots that run, by a draw.
func (w *world) running(draw int) (pilot, bool) {
	list, err := w.pilots()
	if err != nil {
		return pilot{}, false
	}
	list = slices.DeleteFunc(list, func(p pilot) bool { return p.state != "RUNNING" })
	if len(list) == 0 {
		return pilot{}, false
	}
	return list[draw%len(list)], true
}

// processes are those on this machine whose command line or environment names a folder.
func processes(folder string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range all {
		line, _ := os.ReadFile(filepath.Join(path, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(path, "environ"))
		var pid int
		if _, err := fmt.Sscan(filepath.Base(path), &pid); err == nil && pid != os.Getpid() &&
			(bytes.Contains(line, []byte(folder)) || bytes.Contains(env, []byte(folder))) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// leased reports whether a subjob runs on a pilot: its supervisor names the pilot's folder.
func (w *world) leased() bool {
	for _, pid := range processes(filepath.Join(w.dir, "scratch") + "/") {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if bytes.Contains(line, []byte("sluice-shim")) {
			return true
		}
	}
	return false
}

// watch counts pilots for as long as the world is there.
type watch struct {
	stop chan struct{}
	done chan struct{}

	mu      sync.Mutex
	most    int
	looks   int
	overran []string
}

func newWatch(w *world) *watch {
	v := &watch{stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(v.done)
		for {
			select {
			case <-v.stop:
				return
			case <-time.After(500 * time.Millisecond):
			}
			if list, err := w.pilots(); err == nil {
				v.count(list)
			}
		}
	}()
	w.t.Cleanup(v.end)
	return v
}

func (v *watch) count(list []pilot) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var alive []string
	for _, p := range list {
		if p.alive() {
			alive = append(alive, fmt.Sprintf("%s %s %s", p.id, p.name, p.state))
		}
	}
	v.looks++
	if v.most = max(v.most, len(alive)); len(alive) > most && len(v.overran) < 5 {
		v.overran = append(v.overran, strings.Join(alive, ", "))
	}
}

// end stops counting; what was counted stays.
func (v *watch) end() {
	select {
	case <-v.stop:
	default:
		close(v.stop)
	}
	<-v.done
}
