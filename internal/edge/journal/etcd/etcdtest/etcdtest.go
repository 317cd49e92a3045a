//go:build etcd && linux

// Package etcdtest starts real etcd members for tests: the program etcd of $SLUICE_KUBE_ASSETS (tools/kube/assets.sh), or of $PATH.
package etcdtest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Member is one etcd process, and where it keeps its data.
type Member struct {
	t    testing.TB
	args []string
	cmd  *exec.Cmd
	said bytes.Buffer
	// Endpoint is where clients reach it.
	Endpoint string
}

// Start starts a cluster of n members, which end with the test. fast ones don't sync: they lose what they have with the machine, but not
// when they are killed.
// Without the program the test is skipped, or fails where SLUICE_ETCD=require.
func Start(t testing.TB, n int, fast bool) []*Member {
	t.Helper()
	program := find(t)
	members, peers := make([]*Member, n), make([]string, n)
	dir := t.TempDir()
	ports := free(t, 2*n)
	for i := range peers {
		peers[i] = fmt.Sprintf("m%d=http://127.0.0.1:%d", i, ports[n+i])
	}
	for i := range members {
		client, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[i]), fmt.Sprintf("http://127.0.0.1:%d", ports[n+i])
		m := &Member{t: t, Endpoint: client, args: []string{
			program, "--name", fmt.Sprintf("m%d", i), "--data-dir", filepath.Join(dir, fmt.Sprint(i)), "--log-level", "error",
			"--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
			"--initial-advertise-peer-urls", peer, "--initial-cluster", strings.Join(peers, ","),
		}}
		if fast {
			m.args = append(m.args, "--unsafe-no-fsync")
		}
		members[i] = m
		m.begin()
		t.Cleanup(m.Kill)
	}
	for _, m := range members {
		m.Wait()
	}
	return members
}

func find(t testing.TB) string {
	if dir := os.Getenv("SLUICE_KUBE_ASSETS"); dir != "" {
		if path := filepath.Join(dir, "etcd"); isFile(path) {
			return path
		}
	}
	path, err := exec.LookPath("etcd")
	if err != nil {
		if os.Getenv("SLUICE_ETCD") == "require" {
			t.Fatal("there is no etcd in $SLUICE_KUBE_ASSETS or $PATH: `make etcd` builds it")
		}
		t.Skip("there is no etcd in $SLUICE_KUBE_ASSETS or $PATH; `make etcd` builds it and runs this test")
	}
	return path
}

func isFile(path string) bool {
	s, err := os.Stat(path)
	return err == nil && s.Mode().IsRegular()
}

// free ports of this machine. Others may take one until it is listened to, which the member would say.
func free(t testing.TB, n int) []int {
	ports := make([]int, n)
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports
}

func (m *Member) begin() {
	m.cmd = exec.Command(m.args[0], m.args[1:]...)
	m.cmd.Stdout, m.cmd.Stderr = &m.said, &m.said
	m.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := m.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
}

// Wait waits until the member answers.
func (m *Member) Wait() {
	m.t.Helper()
	c := Client(m.t, m.Endpoint)
	for until := time.Now().Add(time.Minute); ; {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_, err := c.Get(ctx, "health")
		cancel()
		if err == nil {
			return
		}
		if time.Now().After(until) {
			m.t.Fatalf("etcd does not answer: %v\n%s", err, m.said.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Kill ends it at once, and waits until it is gone.
func (m *Member) Kill() {
	_ = m.cmd.Process.Signal(syscall.SIGCONT) // a stopped one is killed all the same; its parent waits for it
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
}

// Restart starts it again with what it has.
func (m *Member) Restart() { m.begin() }

// Pause stops it in its tracks.
func (m *Member) Pause() { m.signal(syscall.SIGSTOP) }

// Resume has it go on.
func (m *Member) Resume() { m.signal(syscall.SIGCONT) }

func (m *Member) signal(s syscall.Signal) {
	if err := m.cmd.Process.Signal(s); err != nil {
		m.t.Fatal(err)
	}
}

// Client is a plain client of members, which ends with the test.
func Client(t testing.TB, endpoints ...string) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}
