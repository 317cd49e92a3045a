package slurm

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sluice.dev/sluice/test/slurm/cluster"
	"sluice.dev/sluice/test/witness"
)

// TestHostsJobsDoNotWaitForStarts: a host's job that wants all nodes comes while pilots start on one to all of them. It begins long before
// their grace is over, also where a pilot was preempted before its machine had joined: that has its end from the start, and is told all the
// same that somebody waits.
func TestHostsJobsDoNotWaitForStarts(t *testing.T) {
	const preemptGrace = 2 * time.Minute
	bin := programs(t)
	partitions := []string{"PartitionName=normal Nodes=ALL Default=YES PriorityTier=10 PreemptMode=OFF State=UP",
		fmt.Sprintf("PartitionName=preempt Nodes=ALL PriorityTier=1 PreemptMode=CANCEL GraceTime=%.0f State=UP", preemptGrace.Seconds())}
	w := emptyWorld(t, begin(t, cluster.Config{Dir: filepath.Join(shortDir(t), "slurm"), Nodes: nodes, CPUs: cpus, Preempt: true,
		Partitions: partitions}))
	w.run(bin, strings.Replace(preemptPool(w, bin), "[1m, 2m, 4m]", "[1m, 30m]", 1),
		&witness.Client{Units: 20_000, AtOnce: 3, Many: 8, Few: 8})
	w.submits()
	s := &site{T: t, cluster: w.slurm}
	for running := 1; running <= nodes; running++ {
		if err := witness.Until("pilots run", 2*time.Minute, func() error {
			if n := len(strings.Fields(s.slurm("squeue", "-h", "-p", "preempt", "-t", "R", "-o", "%i"))); n < running {
				return fmt.Errorf("%d do", n)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		host := s.slurm("sbatch", "--parsable", "-p", "normal", "-N", strconv.Itoa(nodes), "--exclusive", "-t", "5", "-o", "/dev/null",
			"--wrap", "sleep 1")
		w.until("the host's job is done, before the grace of pilots is over", preemptGrace/2, func() error {
			if state := s.slurm("squeue", "-h", "-t", "all", "-j", host, "-o", "%T"); state != "COMPLETED" {
				return fmt.Errorf("it is %s", state)
			}
			return nil
		})
		t.Logf("with %d pilots that had begun: done after %v", running, time.Since(began).Round(100*time.Millisecond))
	}
	if _, err := w.client.Insist("providers", "pause", pool); err != nil {
		t.Error(err)
	}
	s.slurm("scancel", "-p", "preempt")
	w.until("no pilot is left", time.Minute, func() error {
		if left := s.slurm("squeue", "-h", "-o", "%i %T"); left != "" {
			return fmt.Errorf("there are %s", left)
		}
		return nil
	})
}
