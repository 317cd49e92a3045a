// Package slurm runs a Slurm for benchmarks: that of test/slurm/cluster, which touches nothing of a Slurm that may be installed here. It
// measures nothing but how long its batches take.
package slurm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"sluice.dev/sluice/test/slurm/cluster"
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
	o Options
	*cluster.Cluster
}

// plain is what Slurm does by default but for scheduling at once.
var plain = []string{ //nolint:gochecknoglobals // read-only by use
	"SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,default_queue_depth=1000",
	"SelectTypeParameters=CR_CPU",
}

// tuned is what Tuned sets besides: no state is kept of jobs that are over, nothing waits between jobs, one pass plans deeper, and there is
// no second scheduler.
var tuned = []string{ //nolint:gochecknoglobals // read-only by use
	"SchedulerType=sched/builtin",
	"SchedulerParameters=sched_min_interval=0,batch_sched_delay=0,default_queue_depth=10000,sched_max_job_start=0,max_rpc_cnt=0",
	"EpilogMsgTime=0", "CompleteWait=0", "MinJobAge=2", "JobRequeue=0", "SlurmctldDebug=error", "SlurmdDebug=error",
	"MaxJobCount=100000", "MaxArraySize=100000",
}

// Start starts munged, slurmctld and each slurmd, and waits until all nodes are idle. The error says what is missing.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	extra := plain
	if o.Tuned {
		extra = append(extra[:len(extra):len(extra)], tuned...)
	}
	c, err := cluster.Start(ctx, cluster.Config{Dir: o.Dir, Nodes: o.Nodes, CPUs: o.CPUs, Memory: 64, Extra: extra})
	if err != nil {
		return nil, err
	}
	return &Cluster{o, c}, nil
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
	out, err := c.Command(ctx, "sbatch", append([]string{"-Q", "--mem", "1", "-o", filepath.Join(c.o.Dir, "batch.out")},
		args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("sbatch: %w: %s", err, out)
	}
	return nil
}

// empty waits until the queue is empty. (sbatch --wait looks every few seconds only.)
func (c *Cluster) empty(ctx context.Context, begin time.Time) (time.Duration, error) {
	for until := begin.Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, err := c.Command(ctx, "squeue", "-h").CombinedOutput()
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
			return 0, fmt.Errorf("after 5 minutes there still are: %s; slurmctld: %s", out, c.Tail("slurmctld"))
		}
	}
}
