// Package slurm runs a Slurm for benchmarks: daemons, a configuration, a key and directories of its own. It touches nothing of a Slurm that
// may be installed here, and measures nothing but how long its batches take.
package slurm

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Options of a Slurm. All but Tuned are needed.
type Options struct {
	// Dir is made for it.
	Dir string
	// Nodes is how many slurmd there are, each with so many CPUs whatever the machine has.
	Nodes, CPUs int
	// Tuned: beyond scheduling at once, what an administrator can switch off or shorten for many short jobs.
	Tuned bool
}

// Cluster is a Slurm that runs.
type Cluster struct {
	o         Options
	processes []*exec.Cmd
	env       []string
}

// upTime is how long its nodes may take until they are idle.
const upTime = 30 * time.Second

// Start starts munged, slurmctld and each slurmd, and waits until all nodes are idle. The error says what is missing.
func Start(ctx context.Context, o Options) (c *Cluster, err error) {
	for _, p := range []string{"munged", "slurmctld", "slurmd", "sbatch", "sinfo", "squeue", "srun"} {
		if _, err = lookUp(p); err != nil {
			return nil, err
		}
	}
	c = &Cluster{o: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
			c = nil
		}
	}()
	if err := c.configure(); err != nil {
		return c, err
	}
	all := [][]string{
		{"munged", "-F", "-f", "-S", o.Dir + "/munge.sock", "--key-file", o.Dir + "/munge.key", "--pid-file", o.Dir + "/munge.pid",
			"--log-file", o.Dir + "/munge.log", "--seed-file", o.Dir + "/munge.seed"},
		{"slurmctld", "-D"},
	}
	for i := range o.Nodes {
		all = append(all, []string{"slurmd", "-D", "-N", node(i)})
	}
	for _, args := range all {
		if err := c.start(args); err != nil {
			return c, err
		}
	}
	for until := time.Now().Add(upTime); ; time.Sleep(200 * time.Millisecond) {
		out, err := c.command(ctx, "sinfo", "-h", "-t", "idle", "-o", "%D").CombinedOutput()
		if err == nil && strings.TrimSpace(string(out)) == strconv.Itoa(o.Nodes) {
			return c, nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return c, fmt.Errorf("its nodes did not all become idle in %v (%s); slurmctld: %s; slurmd: %s", upTime,
				strings.TrimSpace(string(out)), c.tail("slurmctld"), c.tail("slurmd-"+node(0)))
		}
	}
}

// node is the name of a node.
func node(i int) string { return fmt.Sprintf("bench%d", i) }

// lookUp finds a program, in the directories of root's too.
func lookUp(name string) (string, error) {
	for _, dir := range []string{"", "/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// slurmConf is the configuration but for its nodes, a format of host, slurmctld's port, user and directory.
//
//go:embed slurm.conf.fmt
var slurmConf string

// tuned is what Tuned sets besides: no state is kept of jobs that are over, nothing waits between jobs, one pass plans deeper, and there is
// no second scheduler. The default of SchedulerParameters' line is replaced.
var tuned = []string{ //nolint:gochecknoglobals // read-only by use
	"SchedulerType=sched/builtin",
	"SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,default_queue_depth=10000,sched_max_job_start=0,max_rpc_cnt=0",
	"EpilogMsgTime=0", "CompleteWait=0", "MinJobAge=2", "JobRequeue=0", "SlurmctldDebug=error", "SlurmdDebug=error",
	"MaxJobCount=100000", "MaxArraySize=100000",
}

// configure writes the key and slurm.conf: free ports of loopback, and what Slurm does by default but for scheduling at once.
func (c *Cluster) configure() error {
	ports := make([]int, 1+c.o.Nodes)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	me, err := user.Current()
	if err != nil {
		return err
	}
	key := make([]byte, 128)
	_, _ = rand.Read(key) // never fails (package crypto/rand)
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	host, _, _ = strings.Cut(host, ".")
	lines := strings.Split(strings.TrimSpace(fmt.Sprintf(slurmConf, host, ports[0], me.Username, c.o.Dir)), "\n")
	if c.o.Tuned {
		lines = slices.DeleteFunc(lines, func(s string) bool { return strings.HasPrefix(s, "SchedulerParameters=") })
		lines = append(lines, tuned...)
	}
	names := make([]string, c.o.Nodes)
	for i := range names {
		names[i] = node(i)
		lines = append(lines, fmt.Sprintf("NodeName=%s NodeHostname=%s NodeAddr=127.0.0.1 Port=%d CPUs=%d RealMemory=64 State=UNKNOWN",
			names[i], host, ports[1+i], c.o.CPUs))
	}
	lines = append(lines, "PartitionName=all Nodes="+strings.Join(names, ",")+" Default=YES MaxTime=INFINITE State=UP\n")
	dirs := []string{c.o.Dir, c.o.Dir + "/state", c.o.Dir + "/spool"}
	for _, name := range names {
		dirs = append(dirs, c.o.Dir+"/spool/"+name)
	}
	for _, d := range dirs {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	c.env = append(os.Environ(), "SLURM_CONF="+c.o.Dir+"/slurm.conf")
	return errors.Join(os.WriteFile(c.o.Dir+"/munge.key", key, 0o400),
		os.WriteFile(c.o.Dir+"/slurm.conf", []byte(strings.Join(lines, "\n")), 0o644))
}

// start starts one daemon of the cluster with a log of its own.
func (c *Cluster) start(args []string) error {
	path, err := lookUp(args[0])
	if err != nil {
		return err
	}
	name := args[0]
	if name == "slurmd" {
		name += "-" + args[len(args)-1]
	}
	log, err := os.Create(filepath.Join(c.o.Dir, name+".out"))
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(path, args[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = c.env, log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	c.processes = append(c.processes, cmd)
	if args[0] != "munged" {
		return nil
	}
	for range 100 { // the others fail at once without it
		if _, err := os.Stat(c.o.Dir + "/munge.sock"); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("munged made no socket: %s", c.tail("munged"))
}

func (c *Cluster) tail(name string) string {
	text, err := os.ReadFile(filepath.Join(c.o.Dir, name+".out"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

func (c *Cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir = c.env, c.o.Dir
	return cmd
}

// Array submits an array of n tasks, one processor each, and waits for them.
func (c *Cluster) Array(ctx context.Context, n int) (time.Duration, error) {
	begin := time.Now()
	if err := c.submit(ctx, "-n", "1", "--array", fmt.Sprintf("0-%d", n-1), "--wrap", "exec /bin/true"); err != nil {
		return 0, err
	}
	return c.empty(ctx, begin)
}

// Jobs submits n jobs of one processor by a call of sbatch each, some at once, and waits for them.
func (c *Cluster) Jobs(ctx context.Context, n int) (time.Duration, error) {
	const atOnce = 4
	begin := time.Now()
	errs := make(chan error, atOnce)
	for part := range atOnce {
		go func() {
			var err error
			for i := part; i < n && err == nil; i += atOnce {
				err = c.submit(ctx, "-n", "1", "--wrap", "exec /bin/true")
			}
			errs <- err
		}()
	}
	var err error
	for range atOnce {
		err = errors.Join(err, <-errs)
	}
	if err != nil {
		return 0, err
	}
	return c.empty(ctx, begin)
}

// Steps submits one job of a node's processors that starts n steps, as many at once as there are.
func (c *Cluster) Steps(ctx context.Context, n int) (time.Duration, error) {
	begin := time.Now()
	err := c.submit(ctx, "-n", strconv.Itoa(c.o.CPUs), "--wrap",
		fmt.Sprintf("seq %d | xargs -n 1 -P %d srun -Q -n 1 --exact --overlap /bin/true", n, c.o.CPUs))
	if err != nil {
		return 0, err
	}
	return c.empty(ctx, begin)
}

func (c *Cluster) submit(ctx context.Context, args ...string) error {
	out, err := c.command(ctx, "sbatch", append([]string{"-Q", "--mem", "1", "-o", filepath.Join(c.o.Dir, "batch.out")},
		args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("sbatch: %w: %s", err, out)
	}
	return nil
}

// empty waits until the queue is empty. (sbatch --wait looks every few seconds only.)
func (c *Cluster) empty(ctx context.Context, begin time.Time) (time.Duration, error) {
	for until := begin.Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, err := c.command(ctx, "squeue", "-h").CombinedOutput()
		if err != nil {
			return 0, fmt.Errorf("squeue: %w: %s", err, out)
		}
		if len(out) == 0 {
			said, err := os.ReadFile(filepath.Join(c.o.Dir, "batch.out"))
			if err == nil && len(said) > 0 {
				err = fmt.Errorf("a batch script said: %s", said)
			}
			return time.Since(begin), err
		}
		if time.Now().After(until) {
			return 0, fmt.Errorf("after 5 minutes there still are: %s; slurmctld: %s", out, c.tail("slurmctld"))
		}
	}
}

// Stop ends the daemons, the last started first.
func (c *Cluster) Stop() error {
	for i := len(c.processes) - 1; i >= 0; i-- {
		p := c.processes[i]
		_ = p.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(10*time.Second, func() { _ = p.Process.Kill() })
		_ = p.Wait() // how a daemon that is told to end ends is no news
		kill.Stop()
	}
	c.processes = nil
	return nil
}
