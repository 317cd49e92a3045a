package e2e

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// memberEnv makes the test's own program a member of a gang: what of the environment the subjob gets from its job.
const memberEnv = "E2E_MEMBER"

// playMember is a member of a gang whose steps need all of them: member 0 listens at the rendezvous, and lets the others take a step once
// all are there. Each writes down the steps it took; member 0 leaves a checkpoint at every tenth. It returns the program's exit code: 85 at
// SIGTERM, 7 where a peer is gone, 9 where what it was told can't be.
func playMember() int {
	p := player{member: os.Getenv("SLUICE_MEMBER"), asked: make(chan os.Signal, 1)}
	signal.Notify(p.asked, syscall.SIGTERM)
	at, total := number("SLUICE_FROM"), number("SLUICE_TO")
	addresses := strings.Split(os.Getenv("SLUICE_MEMBER_ADDRESSES"), ",")
	rendezvous := os.Getenv("SLUICE_RENDEZVOUS")
	switch dir := os.Getenv("SLUICE_RESUME_DIR"); {
	case rendezvous != net.JoinHostPort(os.Getenv("MASTER_ADDR"), os.Getenv("MASTER_PORT")), len(addresses) != number("SLUICE_MEMBERS"),
		addresses[0] != os.Getenv("MASTER_ADDR"):
		fmt.Fprintln(os.Stderr, "it is told", rendezvous, addresses)
		return 9
	case (dir == "") != (at == 0):
		fmt.Fprintln(os.Stderr, "from", at, "the checkpoint is in", dir)
		return 9
	case dir != "":
		if text, err := os.ReadFile(filepath.Join(dir, "step-"+strconv.Itoa(at))); err != nil || string(text) != strconv.Itoa(at) {
			fmt.Fprintln(os.Stderr, "the checkpoint:", string(text), err)
			return 9
		}
	}
	err := p.meet(rendezvous, len(addresses))
	for ; err == nil && at < total; at++ {
		if err = p.together(); err == nil {
			err = p.step(at)
		}
	}
	switch {
	case errors.Is(err, errAsked):
		return 85
	case err != nil:
		fmt.Fprintln(os.Stderr, "at step", at, err)
		return 7
	}
	return 0
}

var errAsked = errors.New("SIGTERM")

func number(name string) int {
	n, _ := strconv.Atoi(os.Getenv(name))
	return n
}

// player is one member, with its connections to those that it waits for: of member 0 to all others, of these to member 0.
type player struct {
	member string
	peers  []net.Conn
	asked  chan os.Signal
}

// meet waits for the others, however late they are.
func (p *player) meet(at string, members int) error {
	if p.member != "0" {
		for {
			c, err := net.Dial("tcp", at)
			if err == nil {
				p.peers = []net.Conn{c}
				return nil
			}
			if !p.rest(50 * time.Millisecond) {
				return errAsked
			}
		}
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		return err
	}
	defer l.Close()
	came := make(chan net.Conn)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			came <- c
		}
	}()
	for len(p.peers) < members-1 {
		select {
		case c := <-came:
			p.peers = append(p.peers, c)
		case <-p.asked:
			return errAsked
		}
	}
	return nil
}

// rest waits a moment, and reports whether nobody has asked it to end.
func (p *player) rest(d time.Duration) bool {
	select {
	case <-p.asked:
		return false
	case <-time.After(d):
		return true
	}
}

// together is a barrier: everybody says that it is here, and hears that all are.
func (p *player) together() error {
	if !p.rest(20 * time.Millisecond) {
		return errAsked
	}
	one := []byte{1}
	say := func(c net.Conn) error { _, err := c.Write(one); return err }
	hear := func(c net.Conn) error { _, err := io.ReadFull(bufio.NewReaderSize(c, 1), one); return err }
	first, then := say, hear
	if p.member == "0" {
		first, then = hear, say
	}
	for _, do := range []func(net.Conn) error{first, then} {
		for _, c := range p.peers {
			if err := do(c); err != nil {
				return err
			}
		}
	}
	return nil
}

func (p *player) step(n int) error {
	f, err := os.OpenFile(filepath.Join(os.Getenv("SLUICE_OUTPUT_DIR"), "units"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if _, err = fmt.Fprintln(f, n); err != nil || f.Close() != nil {
		return errors.Join(err, errors.New("can't write"))
	}
	n++
	if p.member != "0" || n%10 != 0 {
		return nil
	}
	name, file := filepath.Join(os.Getenv("SLUICE_CHECKPOINT_DIR"), "step-"+strconv.Itoa(n)), os.Getenv("SLUICE_PROGRESS_FILE")
	if err = os.WriteFile(name, []byte(strconv.Itoa(n)), 0o644); err == nil {
		err = os.WriteFile(file+".new", fmt.Appendf(nil, `{"progress": %d, "checkpoint": true}`, n), 0o644)
	}
	if err == nil {
		err = os.Rename(file+".new", file)
	}
	return err
}

// gang is a job of two slices on each of two machines, whose members are the test's own program.
func (c *cluster) gang(name, work string, more ...string) string {
	c.t.Helper()
	program := filepath.Join(c.dir, "member") // the test's own is in /tmp, of which a subjob has its own
	self, err := os.Executable()
	var data []byte
	if err == nil {
		data, err = os.ReadFile(self)
	}
	if err == nil {
		err = os.WriteFile(program, data, 0o755)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return spec(name, work, "exec "+program, append(more, "env: {"+memberEnv+`: "1"}`, "memory: 100Mi", "grace: 2s")...)
}

// runs is on which slices of a machine a job's subjob runs.
func (d *daemon) runs(name string) (n int) {
	for _, s := range d.slices() {
		if s.Job == name {
			n++
		}
	}
	return n
}

// TestAGangOverMachines: its members meet, a machine loses its power in the middle, all of it ends, and goes on from the last checkpoint
// once that is back. Each step counts once.
func TestAGangOverMachines(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	machines := []*daemon{c.takeIn("m1", "--rack", "r1", "--block", "b1"), c.takeIn("m2", "--rack", "r1", "--block", "b1")}
	c.until("both are ready", func() bool { return c.node("m1").State == "ready" && c.node("m2").State == "ready" })
	says(t, c.must("nodes", "-o", "wide"), "ADDRESS", "r1", "b1")
	const total = 900 // so many that a busy machine sees it run on both once more before it is done
	c.submit(c.gang("pair", fmt.Sprintf("rigid: {walltime: 4m, slices: 4, topology: rack, steps: {total: %d, every: 10}}", total)))
	for i, lost := range []*daemon{machines[1], machines[0]} {
		before := c.job("pair").Progress
		c.until("it runs on both, and has come on", func() bool {
			j := c.job("pair")
			return machines[0].runs("pair") == 2 && machines[1].runs("pair") == 2 && j.Reported >= before+20
		})
		lost.kill()
		endBelow(lost.data)
		other := machines[i]
		c.until("the other member has ended", func() bool { return other.runs("pair") == 0 })
		if j := c.job("pair"); j.State == "COMPLETED" {
			t.Fatal("it was done before the machine was lost: the test shows nothing")
		}
		lost.start()
	}
	c.done("pair")
	j := c.job("pair")
	if j.Progress != total {
		t.Errorf("%d of %d steps are done", j.Progress, total)
	}
	c.twice("pair", total)
}

// TestAGangGoesOnWithoutAMachine: one never comes back. What it had is given up when the walltime is over, and another takes its place.
func TestAGangGoesOnWithoutAMachine(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	machines := []*daemon{c.takeIn("m1", "--rack", "r1"), c.takeIn("m2", "--rack", "r1")}
	c.until("both are ready", func() bool { return c.node("m1").State == "ready" && c.node("m2").State == "ready" })
	const total = 200
	c.submit(c.gang("pair", fmt.Sprintf("rigid: {walltime: 20s, slices: 4, topology: rack, steps: {total: %d, every: 10}}", total)))
	c.until("it has come on", func() bool { return machines[1].runs("pair") == 2 && c.job("pair").Reported >= 20 })
	machines[1].kill()
	endBelow(machines[1].data)
	c.until("the other member has ended", func() bool { return machines[0].runs("pair") == 0 })
	c.takeIn("m3", "--rack", "r1")
	c.done("pair")
	c.twice("pair", total)
}

// twice checks that each of two members took each step once.
func (c *cluster) twice(name string, total int) {
	c.t.Helper()
	var list []struct {
		Path             string
		From, To, Member int
	}
	text := c.must("output", name, "-o", "json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		c.t.Fatal(err)
	}
	took := [2][]int{make([]int, total), make([]int, total)}
	for _, o := range list {
		data, err := os.ReadFile(filepath.Join(o.Path, "units"))
		if err != nil {
			c.t.Fatal(err)
		}
		for _, line := range strings.Fields(string(data)) {
			n, err := strconv.Atoi(line)
			if err != nil || n < o.From {
				c.t.Errorf("%s: step %q", o.Path, line)
			} else if n < o.To { // beyond that it was done again
				took[o.Member][n]++
			}
		}
	}
	for member, steps := range took {
		if n := slices.IndexFunc(steps, func(times int) bool { return times != 1 }); n >= 0 {
			c.t.Errorf("member %d took step %d %d times: %s\n%s", member, n, steps[n], text, c.must("job", name, "-o", "wide"))
		}
	}
}
