// Package cluster runs a Slurm for tests and benchmarks: munged, slurmctld and several slurmd of its own on loopback, with a configuration,
// a key and folders below one folder, as the user that the test runs as. It touches nothing of a Slurm that may be installed here.
package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Config of a cluster. Dir, Nodes and CPUs are needed.
type Config struct {
	// Dir is made for it.
	Dir string
	// Nodes is how many slurmd there are, each with so many CPUs and MiB of Memory (0: 1000) whatever the machine has.
	Nodes, CPUs, Memory int
	// Gres that each node has, as name:type:count: files stand for the devices.
	Gres []string
	// Preempt: there are partitions normal and preempt, which gives way to it after a grace of 10 s.
	Preempt bool
	// Accounting: it has a slurmdbd with a database of its own, and sacctmgr and sacct work.
	Accounting bool
	// Partitions are their lines of slurm.conf; empty: those of Preempt, or one of the name all. Extra are further lines, each in the place
	// of a default one with its key.
	Partitions, Extra []string
}

// upTime is how long its nodes may take until they are idle.
const upTime = time.Minute

// Cluster is a Slurm that runs. Its methods may be called at once.
type Cluster struct {
	o        Config
	programs programs
	// books are where the programs of Accounting are.
	books books

	mu sync.Mutex
	// daemons that were started, by name: slurmd of node i is slurmd-i.
	daemons map[string]*exec.Cmd
}

// Start starts it, and waits until all nodes are idle. The error says what is missing.
func Start(ctx context.Context, o Config) (c *Cluster, err error) {
	if o.Memory == 0 {
		o.Memory = 1000
	}
	p, err := find()
	if err != nil {
		return nil, err
	}
	c = &Cluster{o: o, programs: p, daemons: map[string]*exec.Cmd{}}
	if o.Accounting {
		if c.books, err = findBooks(); err != nil {
			return nil, err
		}
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
			c = nil
		}
	}()
	if err = c.configure(); err != nil {
		return c, err
	}
	if err = c.startMunge(ctx); err != nil {
		return c, err
	}
	if o.Accounting {
		if err = c.startAccounting(ctx); err != nil {
			return c, err
		}
	}
	if err = c.StartController(); err != nil {
		return c, err
	}
	for i := range o.Nodes {
		if err = c.StartNode(i); err != nil {
			return c, err
		}
	}
	return c, c.Idle(ctx)
}

// startMunge waits for its socket: the others fail at once without it.
func (c *Cluster) startMunge(ctx context.Context) error {
	dir := c.o.Dir
	err := c.start("munged", "munged", "-F", "-f", "-S", dir+"/munge.sock", "--key-file", dir+"/munge.key", "--pid-file", dir+"/munge.pid",
		"--log-file", dir+"/munge.log", "--seed-file", dir+"/munge.seed")
	if err != nil {
		return err
	}
	return c.await(ctx, "munged", exists(dir+"/munge.sock"))
}

// Idle waits until slurmctld answers and all nodes are idle.
func (c *Cluster) Idle(ctx context.Context) error {
	for until := time.Now().Add(upTime); ; time.Sleep(100 * time.Millisecond) {
		out, err := c.Command(ctx, "sinfo", "-h", "-N", "-t", "idle", "-o", "%N").CombinedOutput()
		names := strings.Fields(string(out))
		slices.Sort(names)
		if err == nil && len(slices.Compact(names)) == c.o.Nodes {
			return nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return fmt.Errorf("its nodes did not all become idle in %v (%s); slurmctld: %s; slurmd: %s", upTime,
				strings.TrimSpace(string(out)), c.Tail("slurmctld"), c.Tail("slurmd-0"))
		}
	}
}

// start starts a daemon under a name, with a log of its own.
func (c *Cluster) start(name, program string, args ...string) error {
	return c.startAs(nil, c.books.environment(&c.programs, c.o.Dir), name, c.daemon(program), args...)
}

// startAs starts a program as start does, as another user and with more in its environment.
func (c *Cluster) startAs(as *syscall.SysProcAttr, env []string, name, path string, args ...string) error {
	log, err := os.OpenFile(filepath.Join(c.o.Dir, name+".out"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = append(c.Env(), env...), log, log, as
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.daemons[name] != nil {
		return fmt.Errorf("%s runs already", name)
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.daemons[name] = cmd
	return nil
}

// end ends a daemon by a signal, and waits for it.
func (c *Cluster) end(name string, signal syscall.Signal) {
	c.mu.Lock()
	cmd := c.daemons[name]
	delete(c.daemons, name)
	c.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(signal)
	_ = cmd.Process.Signal(syscall.SIGCONT) // one that was stopped ends, too
	kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // how a daemon that is told to end ends is no news
	kill.Stop()
}

// KillController ends slurmctld as a crash does.
func (c *Cluster) KillController() { c.end("slurmctld", syscall.SIGKILL) }

// SignalController signals slurmctld, if it runs.
func (c *Cluster) SignalController(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cmd := c.daemons["slurmctld"]; cmd != nil {
		_ = cmd.Process.Signal(s) // one that has ended is told of by what follows
	}
}

// StartController starts slurmctld, also again with the state that it had saved.
func (c *Cluster) StartController() error { return c.start("slurmctld", "slurmctld", "-D") }

// KillNode ends a node's slurmd as a crash does. What runs there goes on.
func (c *Cluster) KillNode(i int) { c.end("slurmd-"+strconv.Itoa(i), syscall.SIGKILL) }

// StartNode starts a node's slurmd.
func (c *Cluster) StartNode(i int) error {
	return c.start("slurmd-"+strconv.Itoa(i), "slurmd", "-D", "-N", Node(i), "-d", c.daemon("slurmstepd"))
}

// Env is the environment of Slurm's commands for this cluster.
func (c *Cluster) Env() []string { return c.programs.environment(c.conf()) }

// Bin is a folder of commands that are this cluster's, whatever their environment.
func (c *Cluster) Bin() string { return filepath.Join(c.o.Dir, "bin") }

// Command is one of Slurm's for this cluster.
func (c *Cluster) Command(ctx context.Context, name string, args ...string) *exec.Cmd {
	path := c.programs.path[name]
	if path == "" {
		path = name
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Dir = c.Env(), c.o.Dir
	return cmd
}

// Run runs a command of Slurm's, and returns what it printed on its output.
func (c *Cluster) Run(ctx context.Context, name string, args ...string) (string, error) {
	var out, said bytes.Buffer
	cmd := c.Command(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("%s %s: %w: %s%s", name, strings.Join(args, " "), err, said.String(), out.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// Reserve takes nodes for maintenance, from a moment on for whole minutes.
func (c *Cluster) Reserve(ctx context.Context, name string, from time.Time, length time.Duration, nodes string) error {
	me, err := c.Run(ctx, "id", "-un")
	if err != nil {
		return err
	}
	_, err = c.Run(ctx, "scontrol", "create", "reservation", "ReservationName="+name,
		"StartTime="+from.Local().Format("2006-01-02T15:04:05"),
		fmt.Sprintf("Duration=%d", int(length/time.Minute)), "Nodes="+nodes, "Users="+me, "Flags=MAINT")
	return err
}

// Tail is the end of a daemon's log, for failures.
func (c *Cluster) Tail(name string) string {
	text, err := os.ReadFile(filepath.Join(c.o.Dir, name+".out"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

// Stop ends the daemons and everything that ran there. The folder stays.
func (c *Cluster) Stop() error {
	names := []string{"slurmrestd", "slurmctld"}
	for i := range c.o.Nodes {
		names = append(names, "slurmd-"+strconv.Itoa(i))
	}
	for _, name := range append(names, "slurmdbd", "mariadbd", "munged") {
		c.end(name, syscall.SIGTERM)
	}
	return c.sweep()
}

// sweep kills whatever has the cluster's folder in its arguments or its environment: slurmstepd and its jobs outlive slurmd.
func (c *Cluster) sweep() error {
	for until := time.Now().Add(upTime); ; time.Sleep(20 * time.Millisecond) {
		left := 0
		dirs, err := filepath.Glob("/proc/[0-9]*")
		if err != nil {
			return err
		}
		for _, dir := range dirs {
			pid, err := strconv.Atoi(filepath.Base(dir))
			if err != nil || pid == os.Getpid() || pid == 1 {
				continue
			}
			args, _ := os.ReadFile(dir + "/cmdline") // it may end meanwhile, or be another user's
			env, _ := os.ReadFile(dir + "/environ")
			if bytes.Contains(args, []byte(c.o.Dir+"/")) || bytes.Contains(env, []byte(c.o.Dir+"/")) {
				left++
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if left == 0 {
			return nil
		}
		if time.Now().After(until) {
			return fmt.Errorf("%d processes of %s can't be ended", left, c.o.Dir)
		}
	}
}
