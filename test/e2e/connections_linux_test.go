package e2e

import (
	"errors"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// crowd are connections on each of which the same was sent, and then nothing more until the test ends.
type crowd struct {
	d     *daemon
	text  string
	conns []net.Conn
}

// crowd opens n connections.
func (d *daemon) crowd(n int, text string) *crowd {
	c := &crowd{d: d, text: text, conns: make([]net.Conn, n)}
	d.t.Cleanup(c.leave)
	c.again()
	return c
}

// again fills the places of connections that are closed by now. A connection that can't be opened is left out: the daemon has
// no room, which is its right.
func (c *crowd) again() {
	for i, conn := range c.conns {
		if conn != nil {
			var b [1]byte
			_ = conn.SetReadDeadline(time.Now().Add(time.Microsecond))
			if _, err := conn.Read(b[:]); err == nil || isTimeout(err) {
				continue
			}
			_ = conn.Close()
			c.conns[i] = nil
		}
		conn, err := net.DialTimeout("tcp", c.d.addr, time.Second)
		if err != nil {
			continue
		}
		_, _ = conn.Write([]byte(c.text)) // it may be closed already
		c.conns[i] = conn
	}
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

func (c *crowd) leave() {
	for _, conn := range c.conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
}

// TestIdleConnectionsTakeNoDescriptors: six hundred connections that say nothing, to a daemon that may have 256 files, take
// neither its journal's nor its subjobs' descriptors, and keep nobody out.
func TestIdleConnectionsTakeNoDescriptors(t *testing.T) {
	t.Parallel()
	d := newDaemon(t, three, "--snapshot-records", "50")
	d.files = 256
	d.start()
	idle := d.crowd(600, "")
	d.submit(spec("first", "items: {total: 100, perItem: 5ms, grid: 10, parallelism: 3}", each("sleep 0.005")))
	idle.again()
	for i := range 30 {
		idle.again()
		d.submit(spec(fmt.Sprintf("more%d", i), "items: {total: 10, perItem: 1ms}", "true"))
	}
	d.until("three snapshots of the journal", func() bool {
		idle.again()
		return strings.Count(d.log.String(), "wrote a snapshot") >= 3
	})
	d.submit(spec("last", "items: {total: 100, perItem: 5ms, grid: 10, parallelism: 3}", each("sleep 0.005"), "priority: 5"))
	d.done("first")
	d.done("last")
	d.once("last", 100)
	if log := d.log.String(); strings.Contains(log, "too many open files") || strings.Contains(log, "level=ERROR") {
		t.Errorf("the daemon was short of descriptors:\n%s", log)
	}
	select {
	case <-d.ended:
		t.Error("the daemon has ended")
	default:
	}
}

// TestSlowBodiesKeepNobodyOut: more calls than may be open send their bodies a byte a minute. Whoever sends a whole one is
// answered.
func TestSlowBodiesKeepNobodyOut(t *testing.T) {
	t.Parallel()
	d := up(t, three)
	const head = "POST /sluice.v1alpha1.SluiceService/%s HTTP/1.1\r\nHost: localhost\r\nContent-Type: " +
		"application/json\r\nContent-Length: %d\r\n\r\n%s"
	small := d.crowd(1100, fmt.Sprintf(head, "ListJobs", 1000, "{"))
	large := d.crowd(100, fmt.Sprintf(head, "Submit", 20<<20, `{"job": "`+strings.Repeat("x", 70<<10)))
	agents := d.crowd(300, fmt.Sprintf(head, "Negotiate", 1000, "{"))
	for i := range 10 {
		for _, c := range []*crowd{small, large, agents} {
			c.again()
		}
		d.must("jobs")
		d.submit(spec(fmt.Sprintf("job%d", i), "items: {total: 10, perItem: 1ms}", "true"))
	}
	// With a work directory that is not small: it has to wait for those who are slow to be cut off.
	dir := filepath.Join(d.dir, "work")
	if out, err := exec.Command("sh", "-c", "mkdir "+dir+" && head -c 6000000 /dev/urandom > "+dir+"/data").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	d.write("work/job.yaml", spec("large", "items: {total: 10, perItem: 1ms}", "test -s data", "workdir: ."))
	d.must("submit", filepath.Join(dir, "job.yaml"))
	d.done("large")
}

// TestStrangersLeaveRoomForTheOwner: another user opens as many connections as it can.
func TestStrangersLeaveRoomForTheOwner(t *testing.T) {
	t.Parallel()
	if syscall.Geteuid() != 0 {
		t.Skip("skipped: only root can call as somebody else")
	}
	d := newDaemon(t, three)
	d.files = 256
	d.start()
	// bash opens connections by itself; it stays until its input ends.
	c := exec.Command("bash", "-c",
		`host=${0%:*} port=${0#*:}; ulimit -n 1000; for i in $(seq 20 420); do eval "exec $i<>/dev/tcp/$host/$port" || exit 1; done 2>/dev/null; echo open; read line`, d.addr)
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	c.Dir = "/"
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said := new(logged)
	c.Stdout = said
	if err := c.Start(); err != nil {
		t.Skipf("skipped: there is no bash: %v", err)
	}
	defer func() { in.Close(); _ = c.Wait() }()
	until(t, "the connections", func() bool { return strings.Contains(said.String(), "open") })
	for range 20 {
		d.must("jobs")
	}
	d.submit(spec("mine", "items: {total: 10, perItem: 1ms}", "true"))
	d.done("mine")
}
