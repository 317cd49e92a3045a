package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// leaving is a machine that is gone for good at an instant; 0: once its daemon ends.
func (c *cluster) leaving(name string, in time.Duration, flags ...string) *daemon {
	c.t.Helper()
	flags = append(flags, "--ephemeral")
	if in != 0 {
		flags = append(flags, "--until", time.Now().Add(in).UTC().Format(time.RFC3339Nano))
	}
	return c.takeIn(name, flags...)
}

// well waits until a machine's daemon has ended by itself, and well.
func well(t *testing.T, m *daemon) {
	t.Helper()
	select {
	case <-m.ended:
	case <-time.After(patience):
		t.Fatalf("the machine has not left: %s", m.log)
	}
	if !m.cmd.ProcessState.Success() {
		t.Errorf("it does not end well: %s", m.log)
	}
	says(t, m.log.String(), "this machine has left its cluster for good")
}

// whole is how the subjobs of a job ended on a machine: none was lost, or is said to have failed.
func (c *cluster) whole(name, machine string) {
	c.t.Helper()
	n := 0
	for _, s := range c.job(name).History {
		if strings.HasPrefix(s.Slice, machine+"/") {
			n++
			if s.Outcome == "lost" || s.Outcome == "node-failed" || s.Outcome == "failed" {
				c.t.Errorf("subjob %s on %s ended %s: %s", s.Subjob, machine, s.Outcome, s.Detail)
			}
		}
	}
	if n == 0 {
		c.t.Errorf("nothing of %s was done on %s", name, machine)
	}
}

// TestAMachineLeavesAtItsTime: what it was given has ended by then, and is handed over, though the head was killed meanwhile and its own
// daemon too; then it has left, and the rest is done elsewhere. By a new token it joins again by its name.
func TestAMachineLeavesAtItsTime(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.takeIn("m1")
	m := c.leaving("p1", 20*time.Second, "--hand-over", "6s")
	c.until("it is ready", func() bool { return c.node("p1").State == "ready" })
	says(t, c.must("nodes", "-o", "wide"), "UNTIL")
	says(t, c.must("slices", "-o", "wide"), "reclaim")
	c.submit(spec("counts", "items: {total: 1500, perItem: 50ms, parallelism: 6}", each("sleep 0.05")))
	c.running("counts", 4)
	for _, d := range []*daemon{c.daemon, m} {
		d.kill()
		d.start()
	}
	well(t, m)
	if n := c.node("p1"); n.Name != "" {
		t.Errorf("a machine that has left is listed: %+v", n)
	}
	says(t, c.must("status"), "1 removed")
	says(t, m.refused(), "was removed from the cluster")
	c.whole("counts", "p1")
	m = c.leaving("p1", 0)
	c.until("it is ready again", func() bool { return c.node("p1").State == "ready" })
	c.done("counts")
	c.once("counts", 1500)
	m.end(syscall.SIGTERM)
	well(t, m)
}

// TestAMachineIsToldToEnd: one that is gone with its daemon leaves as soon as what runs has ended, and what that left is at the head.
func TestAMachineIsToldToEnd(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.leaving("p1", 0, "--grace", "40s", "--hand-over", "20s")
	c.submit(spec("counts", "items: {total: 600, perItem: 50ms, parallelism: 3}", each("sleep 0.05")))
	c.running("counts", 3)
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second) // a second signal ends other daemons at once from here on, and hosts send this one twice
	m.end(syscall.SIGTERM)
	well(t, m)
	if n := c.node("p1"); n.Name != "" {
		t.Errorf("a machine that has left is listed: %+v", n)
	}
	c.whole("counts", "p1")
	c.takeIn("m1")
	c.done("counts")
	c.once("counts", 600)
}

// TestAMachineWithoutItsHead goes on while that is back in time. Else what runs yields, and it leaves within its grace; what is committed
// is at the head when that is back, and what the machine kept is handed over if it starts again while its claims are current.
func TestAMachineWithoutItsHead(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	const ownerless, grace = 15 * time.Second, 8 * time.Second
	m := c.leaving("p1", 0, "--ownerless", ownerless.String(), "--grace", grace.String(), "--hand-over", "4s")
	c.submit(spec("counts", "items: {total: 3000, perItem: 50ms, parallelism: 3}", each("sleep 0.05")))
	c.running("counts", 3)
	c.kill()
	c.start()
	c.until("it is linked again", func() bool { return c.node("p1").State == "ready" })
	c.until("something is committed", func() bool { return c.job("counts").Progress > 0 })
	c.running("counts", 3)
	if strings.Contains(m.log.String(), "nothing was heard of its head") {
		t.Fatalf("it leaves though its head was back in time: %s", m.log)
	}
	before := c.job("counts").Progress
	died := time.Now()
	c.kill()
	select {
	case <-m.ended:
	case <-time.After(patience):
		t.Fatalf("it stays without its head: %s", m.log)
	}
	if took := time.Since(died); took < ownerless-time.Second {
		t.Errorf("it left %v after its head had died, and may wait for %v", took, ownerless)
	}
	if !m.cmd.ProcessState.Success() {
		t.Errorf("it does not end well: %s", m.log)
	}
	says(t, m.log.String(), "nothing was heard of its head for 1", "this machine leaves its cluster")
	c.start()
	if after := c.job("counts").Progress; after < before {
		t.Errorf("%d were committed, and %d are", before, after)
	}
	m.start()
	c.until("it is linked again", func() bool { return c.node("p1").State == "ready" })
	c.takeIn("m1")
	c.done("counts")
	c.once("counts", 3000)
	c.whole("counts", "p1")
	m.end(syscall.SIGTERM)
	well(t, m)
}

// TestAMachineIsTakenAway: its daemon and all that it runs are killed. The head removes it by itself, once its time is over, or, where that
// is not known, it was silent for long enough, though the head itself was killed meanwhile; what it had not handed over is done elsewhere.
func TestAMachineIsTakenAway(t *testing.T) {
	t.Parallel()
	c := newCluster(t, "--silence", "3s")
	until := time.Now().Add(25 * time.Second)
	machines := []*daemon{c.leaving("p1", time.Until(until)), c.leaving("p2", 0)}
	c.submit(spec("counts", "items: {total: 900, perItem: 50ms, grid: 10, parallelism: 6}", each("sleep 0.05")))
	c.running("counts", 4)
	for _, m := range machines {
		m.kill()
		endBelow(m.data)
	}
	c.kill()
	c.start()
	if n := c.node("p1"); time.Now().Before(until) && n.State != "away" {
		t.Errorf("before its time is over it is %+v", n)
	}
	c.takeIn("m1")
	for _, name := range []string{"p1", "p2"} {
		c.until(name+" is removed", func() bool { return c.node(name).Name == "" })
	}
	if time.Now().Before(until) {
		t.Error("they were removed before their time was over")
	}
	says(t, c.log.String(), "a machine is removed that was to be gone for good")
	c.done("counts")
	c.once("counts", 900)
	says(t, machines[1].refused(), "was removed from the cluster")
}

// TestAnEndThatIsNone is refused with all that is wrong, and the token is good still.
func TestAnEndThatIsNone(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := newDaemon(t, three, "--name", "p1", "--ephemeral", "--until", "2020-01-01T00:00:00Z", "--grace", "5s")
	m.verb = []string{"join", c.at, "--token", c.invitation()}
	says(t, m.refused(), "is over", "--grace 5s")
	m.flags = []string{"--gpus", three, "--name", "p1", "--until", "1h"}
	says(t, m.refused(), "give --ephemeral too")
	m.flags = append(m.flags, "--ephemeral")
	m.start()
	says(t, m.log.String(), "it leaves for good at ")
}
