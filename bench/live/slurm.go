package main

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
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cluster is a Slurm of one node with a configuration, a key and directories of its own; it touches nothing of a Slurm
// that may be installed here.
type cluster struct {
	dir       string
	processes []*exec.Cmd
	env       []string
}

// slurm starts munged, slurmctld and slurmd and waits until the node is idle. The error says what is missing.
func (s *settings) slurm(ctx context.Context) (c *cluster, err error) {
	for _, p := range []string{"munged", "slurmctld", "slurmd", "sbatch", "sinfo", "squeue", "srun"} {
		if _, err = lookUp(p); err != nil {
			return nil, err
		}
	}
	c = &cluster{dir: filepath.Join(s.temp, "slurm")}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.stop())
			c = nil
		}
	}()
	if err := c.configure(s.slots); err != nil {
		return c, err
	}
	for _, args := range [][]string{
		{"munged", "-F", "-f", "-S", c.dir + "/munge.sock", "--key-file", c.dir + "/munge.key", "--pid-file", c.dir + "/munge.pid",
			"--log-file", c.dir + "/munge.log", "--seed-file", c.dir + "/munge.seed"},
		{"slurmctld", "-D"},
		{"slurmd", "-D", "-N", "bench"},
	} {
		if err := c.start(args); err != nil {
			return c, err
		}
	}
	for until := time.Now().Add(15 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		out, err := c.command(ctx, "sinfo", "-h", "-o", "%T").CombinedOutput()
		if err == nil && strings.TrimSpace(string(out)) == "idle" {
			return c, nil
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return c, fmt.Errorf("its node did not become idle in 15 s (%s); slurmctld: %s; slurmd: %s", strings.TrimSpace(string(out)),
				c.tail("slurmctld"), c.tail("slurmd"))
		}
	}
}

// lookUp finds a program, in the directories of root's too.
func lookUp(name string) (string, error) {
	for _, dir := range []string{"", "/usr/sbin", "/sbin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed", name)
}

// slurmConf is the configuration, a format of host, both ports, user, directory and processors.
//
//go:embed slurm.conf.fmt
var slurmConf string

// configure writes the key and slurm.conf: free ports of loopback, as many processors as slots whatever the machine has,
// and what Slurm does by default but for scheduling at once.
func (c *cluster) configure(slots int) error {
	var ports [2]int
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
	conf := fmt.Sprintf(slurmConf, host, ports[0], ports[1], me.Username, c.dir, slots)
	for _, d := range []string{c.dir, c.dir + "/state", c.dir + "/spool"} {
		if err := os.Mkdir(d, 0o755); err != nil {
			return err
		}
	}
	c.env = append(os.Environ(), "SLURM_CONF="+c.dir+"/slurm.conf")
	return errors.Join(os.WriteFile(c.dir+"/munge.key", key, 0o400), os.WriteFile(c.dir+"/slurm.conf", []byte(conf), 0o644))
}

// start starts one daemon of the cluster with a log of its own.
func (c *cluster) start(args []string) error {
	path, err := lookUp(args[0])
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(c.dir, args[0]+".out"))
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
		if _, err := os.Stat(c.dir + "/munge.sock"); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("munged made no socket: %s", c.tail("munged"))
}

func (c *cluster) tail(name string) string {
	text, err := os.ReadFile(filepath.Join(c.dir, name+".out"))
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-3):], " | ")
}

func (c *cluster) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir = c.env, c.dir
	return cmd
}

// array submits an array of n tasks, one processor each, and waits for them.
func (c *cluster) array(ctx context.Context, n int) (time.Duration, []figure, error) {
	return c.batch(ctx, "-n", "1", "--array", fmt.Sprintf("0-%d", n-1), "--wrap", "exec /bin/true")
}

// steps submits one job of all processors that starts n steps, as many at once as there are slots.
func (c *cluster) steps(slots int) func(context.Context, int) (time.Duration, []figure, error) {
	return func(ctx context.Context, n int) (time.Duration, []figure, error) {
		return c.batch(ctx, "-n", strconv.Itoa(slots), "--wrap",
			fmt.Sprintf("seq %d | xargs -n 1 -P %d srun -Q -n 1 --exact --overlap /bin/true", n, slots))
	}
}

// batch runs sbatch and waits until the queue is empty. (sbatch --wait looks every few seconds only.)
func (c *cluster) batch(ctx context.Context, args ...string) (time.Duration, []figure, error) {
	begin := time.Now()
	out, err := c.command(ctx, "sbatch", append([]string{"-Q", "--mem", "1", "-o", filepath.Join(c.dir, "batch.out")},
		args...)...).CombinedOutput()
	if err != nil {
		return 0, nil, fmt.Errorf("sbatch: %w: %s", err, out)
	}
	for until := begin.Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, err := c.command(ctx, "squeue", "-h").CombinedOutput()
		if err != nil {
			return 0, nil, fmt.Errorf("squeue: %w: %s", err, out)
		}
		if len(out) == 0 {
			said, err := os.ReadFile(filepath.Join(c.dir, "batch.out"))
			if err == nil && len(said) > 0 {
				err = fmt.Errorf("a batch script said: %s", said)
			}
			return time.Since(begin), nil, err
		}
		if time.Now().After(until) {
			return 0, nil, fmt.Errorf("after 5 minutes there still are: %s; slurmctld: %s", out, c.tail("slurmctld"))
		}
	}
}

// stop ends the daemons, the last started first.
func (c *cluster) stop() error {
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
