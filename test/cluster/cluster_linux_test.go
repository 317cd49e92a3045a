package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/edge/executor/executortest"
	"sluice.dev/sluice/test/witness"
)

const (
	// variable asks for the strikes; require: where they can't be had that is a failure.
	variable, require = "SLUICE_CLUSTER", "require"
	// worldVariable makes the test program the first process of all machines' machine. It names the folder of the run.
	worldVariable = "CLUSTER_WORLD"
	// groupsVariable names the control group that all others are below.
	groupsVariable = "CLUSTER_GROUPS"
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(witness.WorkerVariable) != "":
		witness.Work(os.Getenv(witness.WorkerVariable))
		return
	case os.Getenv(insideVariable) != "":
		os.Exit(inside(os.Getenv(insideVariable)))
	case os.Getenv(worldVariable) != "":
		os.Exit(m.Run())
	}
	done := executortest.LeaveTmp()
	code := m.Run()
	done()
	os.Exit(code)
}

// TestCluster is the strikes. It runs when SLUICE_CLUSTER is set: to "require" it fails where it can't, else it is skipped with the reason.
// SLUICE_CLUSTER_STRIKES says how many there are, SLUICE_CLUSTER_SEED which, and SLUICE_CLUSTER_KINDS of which kinds.
func TestCluster(t *testing.T) {
	if os.Getenv(variable) == "" {
		t.Skipf("%s is not set: see make cluster", variable)
	}
	seed, n := uint64(time.Now().UnixNano()), uint64(30)
	for name, v := range map[string]*uint64{"SLUICE_CLUSTER_SEED": &seed, "SLUICE_CLUSTER_STRIKES": &n} {
		if text := os.Getenv(name); text != "" {
			var err error
			if *v, err = strconv.ParseUint(text, 10, 64); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	list, err := only(os.Getenv("SLUICE_CLUSTER_KINDS"))
	if err != nil {
		t.Fatalf("SLUICE_CLUSTER_KINDS: %v", err)
	}
	if dir := os.Getenv(worldVariable); dir != "" {
		strikes(t, dir, seed, draw(list, seed, int(n)))
		return
	}
	if err := able(); err != nil {
		if os.Getenv(variable) == require {
			t.Fatalf("there can be no machines here: %v", err)
		}
		t.Skipf("there can be no machines here: %v", err)
	}
	if err := within(t, seed); err != nil {
		t.Error(err)
	}
}

// able says why there can be no namespaces with a network here.
func able() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("it takes root, and this is user %d", os.Geteuid())
	}
	p, err := newPlace(0)
	if err != nil {
		return fmt.Errorf("namespaces for the network and the clocks: %w", err)
	}
	defer close(p.work)
	return p.do(func() error {
		f, err := openTun(address(0))
		if err != nil {
			return err
		}
		return f.Close()
	})
}

// within runs the strikes in a process with namespaces of its own, and removes what these do not hold: a folder and control groups.
func within(t *testing.T, seed uint64) (err error) {
	dir, err := os.MkdirTemp("", "sluice-cluster-") //nolint:usetesting // it is kept when something was wrong
	if err != nil {
		return err
	}
	groups, err := groupsAt()
	if err != nil {
		return err
	}
	if groups != "" {
		groups = filepath.Join(groups, filepath.Base(dir))
		if err = os.Mkdir(groups, 0o755); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, removeGroups(groups)) }()
	}
	if err = build(filepath.Join(dir, "bin")); err != nil {
		return err
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(asked)
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.Command(self, "-test.run", "^TestCluster$", "-test.v", "-test.timeout", "0")
	c.Env = append(os.Environ(), worldVariable+"="+dir, groupsVariable+"="+groups, fmt.Sprintf("SLUICE_CLUSTER_SEED=%d", seed))
	c.Stdout, c.Stderr = os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true, Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID}
	ended := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // its end is that of the world
		ended <- c.Run()
	}()
	select {
	case err = <-ended:
	case s := <-asked:
		_ = c.Process.Kill() // and so all that runs below it
		<-ended
		return errors.Join(fmt.Errorf("ended by %v", s), os.RemoveAll(dir))
	}
	if err == nil {
		return os.RemoveAll(dir)
	}
	t.Logf("the daemons' logs and what they knew are in %s", dir)
	return err
}

// build makes the two programs, with clocks that can be wrong.
func build(dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	overlay, err := skewed(dir)
	if err != nil {
		return err
	}
	out, err := exec.Command("go", "build", "-overlay", overlay, "-o", dir+"/", "sluice.dev/sluice/cmd/sluice",
		"sluice.dev/sluice/cmd/sluice-shim").CombinedOutput()
	if err != nil {
		return fmt.Errorf("go build: %w: %s", err, out)
	}
	return nil
}

// strikes strikes a cluster, waits until all jobs are over, and judges what is left.
func strikes(t *testing.T, dir string, seed uint64, list []strike) {
	began := time.Now()
	if err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")); err != nil {
		t.Fatal(err)
	}
	fmt.Printf("cluster: %d strikes of seed %d (SEED=%d draws them again)\n", len(list), seed, seed)
	c, err := newWorld(dir, filepath.Join(dir, "bin"), os.Getenv(groupsVariable), seed)
	defer func() {
		if t.Failed() {
			c.keep()
		}
		c.close()
	}()
	if err != nil {
		t.Fatal(err)
	}
	var least, most time.Duration
	if err := witness.Until("the machines' clocks are wrong", 20*time.Second, func() (err error) {
		if least, most, err = c.clocks(); err == nil && most-least < 9*time.Second {
			err = fmt.Errorf("the head measures %v to %v", least, most)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
	fmt.Printf("cluster: a head and %d machines after %v, whose clocks the head measures to be wrong by %v to %v\n", joined,
		time.Since(began).Round(time.Second), least, most)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	submitted := make(chan error, 1)
	go func() { submitted <- c.client.Submit(ctx) }()

	tallies := witness.Tallies{}
	for i, s := range list {
		c.strike(t, i+1, s, tallies, began)
	}
	stop()
	if err := <-submitted; err != nil {
		t.Error(err)
	}
	c.settle(t)
	c.tell(t, tallies, began)
}

// strike strikes once, when what it hits is well, and prints a line.
func (c *world) strike(t *testing.T, n int, s strike, tallies witness.Tallies, began time.Time) {
	m, leased := c.machines[s.target], false
	if err := witness.Until("it can be struck again", time.Minute, func() error { return c.ready(m) }); err != nil {
		t.Errorf("%s: %v", m.name, err)
	}
	_ = witness.Until("a lease runs on it", 10*time.Second, func() error { // if none does that is counted
		if leased = c.leased(m); !leased {
			return errors.New("none does")
		}
		return nil
	})
	struck := time.Now()
	said, err := s.kind.do(c, m, s)
	took := time.Since(struck)
	if err != nil {
		t.Errorf("%s at %s: %v", s.kind.name, m.name, err)
	}
	if err := witness.Until("the head answers", time.Minute, func() error { _, err := c.nodes(); return err }); err != nil {
		t.Error(err)
	}
	for _, at := range c.machines {
		list := at.ended()
		if len(list) == 0 {
			continue
		}
		how := fmt.Sprintf("the daemon of %s ended by itself: %s", at.name, strings.Join(list, ", "))
		if said += " (" + how + ")"; at != m || !s.kind.ends {
			t.Errorf("after %s at %s %s", s.kind.name, m.name, how)
		}
	}
	tallies.Note(s.kind.name, leased, took)
	fmt.Printf("%4d  %4.0f s  %-16s  %-4s  for %4.1f s  leased %-5v  %s\n", n, struck.Sub(began).Seconds(), s.kind.name, m.name,
		took.Seconds(), leased, said)
}

// leased says whether a lease runs on a machine, or on any for the head.
func (c *world) leased(m *machine) bool {
	if m.number > 0 {
		return m.supervisors() > 0
	}
	return slices.ContainsFunc(c.machines, func(m *machine) bool { return m.supervisors() > 0 })
}

// settle waits until all is well again and every job is over.
func (c *world) settle(t *testing.T) {
	if err := witness.Until("all machines are ready", time.Minute, c.allReady); err != nil {
		t.Error(err)
	}
	err := witness.Until("all jobs are over", 4*time.Minute, func() error {
		list, err := c.client.Unfinished()
		if err == nil && len(list) > 0 {
			err = errors.New(strings.Join(list, "; "))
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// tell judges the histories of all jobs and prints the table.
func (c *world) tell(t *testing.T, tallies witness.Tallies, began time.Time) {
	jobs := c.client.Jobs()
	var sum witness.History
	joined, units := int64(0), map[string]int64{}
	for _, job := range jobs {
		h := c.client.History(job)
		sum.Units += h.Units
		sum.Duplicates += h.Duplicates
		sum.Lost += h.Lost
		sum.Redone += h.Redone
		for where, n := range h.Machine {
			if units[where] += n; where != c.machines[0].name {
				joined += n
			}
		}
		for _, w := range h.Wrong {
			t.Error(w)
		}
	}
	all := tallies.Print()
	fmt.Printf("cluster: %d jobs with %d units, %d of them on joined machines, %d done again; duplicates %d, lost %d; %.0f s\n",
		len(jobs), sum.Units, joined, sum.Redone, sum.Duplicates, sum.Lost, time.Since(began).Seconds())
	fmt.Printf("cluster: units by machine: %v\n", units)
	if 2*joined < sum.Units || sum.Units == 0 {
		t.Errorf("%d of %d units were done on joined machines: the run has not shown what it is for", joined, sum.Units)
	}
	if 2*all.Leased < all.Strikes {
		t.Errorf("%d of %d strikes fell while a lease ran on what they struck: the run has not shown what it is for", all.Leased,
			all.Strikes)
	}
}

// keep copies what machines have on their disks to where it stays.
func (c *world) keep() {
	for _, m := range c.machines {
		m.off()
		_ = exec.Command("cp", "-a", m.data, filepath.Join(m.dir, "data-kept")).Run() // a disk that is gone is not worth more words
	}
}
