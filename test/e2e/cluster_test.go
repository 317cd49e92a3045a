package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// cluster is a head whose own slice is too small for any job of these tests.
type cluster struct {
	*daemon
	at string // where machines join
}

func newCluster(t *testing.T, flags ...string) *cluster {
	t.Helper()
	c := &cluster{daemon: newDaemon(t, "sim:custom,mem=4Mi"), at: freeAddress(t)}
	c.flags = append(append(c.flags, "--cluster", c.at), flags...)
	c.start()
	return c
}

// takeIn has a machine join.
func (c *cluster) takeIn(name string, flags ...string) *daemon {
	c.t.Helper()
	m := newDaemon(c.t, three, append(flags, "--name", name)...)
	m.verb = []string{"join", c.at, "--token", c.invitation()}
	m.start()
	return m
}

func (c *cluster) invitation() string {
	c.t.Helper()
	return strings.TrimSpace(c.must("token", "create", "-q"))
}

// node is how a node stands.
type node struct {
	Name, State, Why string
	Slices, Usable   int
}

func (c *cluster) node(name string) (n node) {
	c.t.Helper()
	var list []node
	if err := json.Unmarshal([]byte(c.must("nodes", "-o", "json")), &list); err != nil {
		c.t.Fatal(err)
	}
	for _, n = range list {
		if n.Name == name {
			return n
		}
	}
	return node{}
}

// TestMachinesThatJoinDoTheWork: the head can run nothing itself. It is killed while they work, and so are they; each unit counts once, and
// all output is at the head.
func TestMachinesThatJoinDoTheWork(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	machines := []*daemon{c.takeIn("m1"), c.takeIn("m2")}
	for _, name := range []string{"m1", "m2"} {
		c.until(name+" is ready", func() bool { n := c.node(name); return n.State == "ready" && n.Slices == 3 })
	}
	c.submit(spec("counts", "items: {total: 1000, perItem: 20ms, parallelism: 6}", each("sleep 0.02")))
	for i, d := range []*daemon{c.daemon, machines[0], c.daemon, machines[1]} {
		over := false // its units sleep, so where the processor is scarce they are soon done beside daemons that are not up yet
		c.until("it runs", func() bool {
			j := c.job("counts")
			over = j.State == "COMPLETED"
			return over || slices.ContainsFunc(j.History, func(s subjobView) bool { return s.Running && !s.Start.IsZero() })
		})
		if over && i > 1 {
			break
		}
		d.kill()
		d.start()
	}
	c.done("counts")
	c.once("counts", 1000)
	for _, m := range machines {
		m.until("the head alone has what was written", func() bool {
			return len(matching(t, m.data, "output/*/*", "logs/*/*")) == 0
		})
		m.fails(1, []string{"its head, which it calls at " + c.at, "answers for jobs"}, "jobs")
		says(t, m.must("slices"), "gpu0")
	}
}

// TestWhatIsWaitedForIsAtTheHead: once `sluice wait` says that a job is over, a plain listing shows all that it left, whoever ran it.
func TestWhatIsWaitedForIsAtTheHead(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.takeIn("m1")
	for i := range 3 {
		name := fmt.Sprintf("counts-%d", i)
		c.submit(spec(name, "items: {total: 40, perItem: 10ms, parallelism: 3}", each("sleep 0.01")))
		c.must("wait", name)
		units := int64(0)
		for _, folder := range matching(t, c.data, "output/"+name+"/[0-9]*") {
			var from, to int64
			if _, err := fmt.Sscanf(filepath.Base(folder), "%d-%d", &from, &to); err != nil {
				t.Fatalf("%s: %v", folder, err)
			}
			units += to - from
		}
		if units != 40 {
			t.Errorf("of %s the folders of %d units are there, want 40", name, units)
		}
	}
}

// TestAMachineBurnsDown: what it had committed is at the head; the rest is done by the machine that takes its place, under its name.
func TestAMachineBurnsDown(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.takeIn("m1")
	c.submit(spec("counts", "items: {total: 300, perItem: 20ms, grid: 10, parallelism: 3}", each("sleep 0.02")))
	c.until("some is committed", func() bool { return c.job("counts").Progress > 0 })
	m.kill()
	endBelow(m.data)
	openUp(m.data)
	if err := os.RemoveAll(m.data); err != nil {
		t.Fatal(err)
	}
	c.until("it is known to be away", func() bool { return c.node("m1").State == "away" })
	m.verb = []string{"join", c.at, "--token", c.invitation()}
	says(t, m.refused(), "m1", "nodes remove m1")
	c.must("nodes", "remove", "m1", "--yes")
	if n := c.node("m1"); n.Name != "" {
		t.Errorf("a machine that was removed is listed: %+v", n)
	}
	m.verb = []string{"join", c.at, "--token", c.invitation()}
	m.start()
	c.done("counts")
	c.once("counts", 300)
}

// TestARemovedMachineSaysSoAndEnds: once, with what to do, and so does every start until it has joined again. A slice of a machine that is
// away is listed by a head that was started meanwhile.
func TestARemovedMachineSaysSoAndEnds(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.takeIn("m1")
	c.until("it is ready", func() bool { return c.node("m1").State == "ready" })
	says(t, c.must("status"), "machines: 1 ready (`sluice nodes` lists them)")
	c.submit(spec("long", "items: {total: 300, perItem: 20ms, parallelism: 3}", each("sleep 0.02")))
	c.running("long", 1)
	m.kill()
	c.end(syscall.SIGTERM)
	c.start()
	says(t, c.must("slices"), "m1/gpu0", "unconfirmed")
	says(t, c.must("status"), "1 away")
	m.start()
	c.running("long", 1)
	c.must("nodes", "remove", "m1", "--yes")
	<-m.ended
	if m.cmd.ProcessState.Success() {
		t.Error("a machine that was removed ends well")
	}
	said := m.log.String()
	says(t, said, "was removed from the cluster", "sluice token create")
	// Once for its link, its node and its end, and once for each subjob that had something to store.
	if n := strings.Count(said, "it was removed from the cluster"); n > 3+3 {
		t.Errorf("it says %d times that it was removed", n)
	}
	says(t, m.refused(), "was removed from the cluster", "sluice token create")
	says(t, c.must("status"), "0 ready, 1 removed")
	m.verb = []string{"join", c.at, "--token", c.invitation()}
	m.start()
	c.done("long")
	c.once("long", 300)
}

// TestOneLostOutputLeavesTheRest: the store of the head loses what a subjob on a machine wrote, before and after it was brought.
func TestOneLostOutputLeavesTheRest(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.takeIn("m1")
	c.submit(spec("counts", "items: {total: 60, perItem: 20ms, parallelism: 3}", each("sleep 0.02")))
	c.done("counts")
	c.once("counts", 60)
	list := c.outputs("counts")
	if len(list) < 2 {
		t.Fatalf("%d outputs: too few", len(list))
	}
	lost := list[0]
	names := matching(t, c.data, "store/names/jobs/*/counts/"+lost.Subjob+"*")
	if len(names) != 1 {
		t.Fatalf("the store names %q", names)
	}
	for _, path := range []string{names[0], lost.Path} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	out, errs, code := c.sluice("output", "counts")
	if code != 1 {
		t.Errorf("with a lost output: exit %d", code)
	}
	says(t, errs, "1 of", "can't be had", lost.Subjob, "restore the store")
	says(t, out, "LOST", list[1].Path)
	says(t, c.must("output", "counts", "--subjob", list[1].Subjob), list[1].Path)
	c.fails(1, []string{lost.Subjob}, "output", "counts", "--cat")
	c.must("output", "counts", "--cat", "--subjob", list[1].Subjob)
}

// TestAnOlderCopyOfAMachineIsRefused: its node would give numbers to subjobs that others have.
func TestAnOlderCopyOfAMachineIsRefused(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	m := c.takeIn("m1")
	m.end(syscall.SIGTERM)
	old := filepath.Join(m.dir, "old")
	if out, err := exec.Command("cp", "-a", m.data, old).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	m.start()
	c.submit(spec("counts", "items: {total: 30, perItem: 20ms, parallelism: 3}", each("sleep 0.02")))
	c.done("counts")
	m.end(syscall.SIGTERM)
	now := m.data
	m.data = old
	for range 2 {
		says(t, m.refused(), "m1 starts with an older copy of its data", "nodes remove m1")
	}
	m.data = now
	m.start()
	c.until("it is back", func() bool { return c.node("m1").State == "ready" })
	c.once("counts", 30)
}

// TestWhoMayNotJoin is told why.
func TestWhoMayNotJoin(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	token := c.invitation()
	m := newDaemon(t, three, "--name", "m1")
	m.verb = []string{"join", c.at}
	says(t, m.refused(), "belongs to no cluster", "sluice token create")
	m.verb = []string{"join", c.at, "--token", "sluice-join-1-nonsense"}
	says(t, m.refused(), "this is no token")
	m.verb = []string{"join", c.addr, "--token", token}
	m.refused() // where people's calls are answered
	m.verb = []string{"join", c.at, "--token", token}
	m.start()
	m.kill()
	m.verb = []string{"join"} // it has joined, and needs neither again
	m.start()
	other := newDaemon(t, three, "--name", "m2")
	other.verb = []string{"join", c.at, "--token", token}
	says(t, other.refused(), "m1 has joined by this token", "good once")

	alone := up(t, three)
	alone.fails(1, []string{"no head", "--cluster"}, "token", "create")
	alone.fails(1, []string{"no head"}, "nodes", "remove", "m1", "--yes")
	says(t, alone.must("nodes"), "ready")
	c.fails(2, []string{"give --yes"}, "nodes", "remove", "m1")
	c.fails(1, []string{"no machine"}, "nodes", "remove", "m9", "--yes")
	c.fails(1, []string{"sluice nodes"}, "nodes", "drain", "m9")
	c.must("nodes", "drain", "m1")
	c.until("it is closed", func() bool { return c.node("m1").State == "closed" })
	c.must("nodes", "undrain", "m1")
	c.until("it is ready", func() bool { return c.node("m1").State == "ready" })
	for what, d := range map[string]*daemon{"the head": c.daemon, "the machine": m} {
		if d.end(syscall.SIGTERM); !d.cmd.ProcessState.Success() {
			t.Errorf("%s does not end well: %s", what, d.log)
		}
	}
}

// matching are the files of a data directory that match any of the patterns.
func matching(t *testing.T, data string, patterns ...string) (all []string) {
	t.Helper()
	for _, p := range patterns {
		found, err := filepath.Glob(filepath.Join(data, p))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, found...)
	}
	return all
}
