package membership

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/fabric/stream"
)

// patience bounds every wait of the tests.
const patience = 20 * time.Second

// brisk is a timing of links under which a test need not wait long. It is wide enough for a busy machine.
var brisk = stream.Timing{Beat: 50 * time.Millisecond, Silence: 5 * time.Second, RetryFirst: 5 * time.Millisecond,
	RetryLast: 20 * time.Millisecond}

// clock is one that a test sets.
type clock struct{ ahead atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.ahead.Load())) }
func (c *clock) advance(d time.Duration) { c.ahead.Add(int64(d)) }

// lines is a log, and what a test does when a message is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	on   map[string]func()
}

func (l *lines) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	var then func()
	for message, f := range l.on {
		if strings.Contains(string(p), message) {
			then = f
		}
	}
	n, err := l.text.Write(p)
	l.mu.Unlock()
	if then != nil {
		then()
	}
	return n, err
}

func (l *lines) when(message string, then func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.on = map[string]func(){message: then}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// cluster is a head that listens.
type cluster struct {
	*authority.Authority
	t     testing.TB
	clock clock
	log   lines
	links *stream.Head
	addr  string
	shut  func()
}

var settings = Settings{Zone: "z", Horizon: 90 * time.Minute, Mechanism: "sja", MechanismSettings: []byte(`{"close":"1s"}`),
	Store: StoreSettings{Kind: "s3", Spec: []byte(`{"bucket":"b"}`), Owner: "o", TakesNothing: true}}

// newCluster opens a head; change may be nil.
func newCluster(t testing.TB, change func(*HeadOptions)) *cluster {
	t.Helper()
	c := &cluster{t: t}
	var err error
	if c.Authority, err = authority.Open(t.TempDir(), time.Now()); err != nil {
		t.Fatal(err)
	}
	c.serve(change)
	return c
}

// serve listens, at the address of before if there was one.
func (c *cluster) serve(change func(*HeadOptions)) {
	c.t.Helper()
	c.links = stream.NewHead(stream.HeadOptions{Caller: Caller(c.Authority, c.clock.now), Owns: Owns(c.Authority), Timing: brisk})
	o := HeadOptions{Authority: c.Authority, Head: c.links, Now: c.clock.now, RefusedFor: time.Millisecond, Log: c.log.logger(),
		Settings: func(machine job.NodeID) Settings {
			s := settings
			s.Zone += "-" + string(machine)
			return s
		}}
	if change != nil {
		change(&o)
	}
	at := c.addr
	if at == "" {
		at = "127.0.0.1:0"
	}
	s, err := Listen(at, o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.addr = s.Addr()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	c.shut = sync.OnceFunc(func() {
		_ = c.links.Close()
		stop()
		if err := <-done; err != nil {
			c.t.Errorf("served: %v", err)
		}
	})
	c.t.Cleanup(c.shut)
}

// token makes one that is good for an hour.
func (c *cluster) token() string {
	c.t.Helper()
	text, err := c.NewToken("", time.Hour, c.clock.now())
	if err != nil {
		c.t.Fatal(err)
	}
	return text
}

// invite is for a machine of a name.
func (c *cluster) invite(name job.NodeID) Invited {
	return Invited{Head: c.addr, Token: c.token(), Name: name}
}

// within is a context that ends if the test hangs.
func within(t testing.TB) context.Context {
	ctx, end := context.WithTimeout(context.Background(), patience)
	t.Cleanup(end)
	return ctx
}

// join makes a machine a member.
func (c *cluster) join(dir string, by Invited) *Membership {
	c.t.Helper()
	m, err := Join(within(c.t), Options{Dir: dir, Now: c.clock.now}, by)
	if err != nil {
		c.t.Fatal(err)
	}
	return m
}

func refuses(t testing.TB, err error, kind errkind.Kind, says string) {
	t.Helper()
	if err == nil || errkind.Of(err) != kind || !strings.Contains(err.Error(), says) {
		t.Errorf("got %v (%v), want %v with %q", err, errkind.Of(err), kind, says)
	}
}

// link opens a machine's link, and waits until it is up.
func (c *cluster) link(m *Membership) *stream.Member {
	c.t.Helper()
	member := stream.Join(stream.MemberOptions{Machine: m.Name(), Head: m.Head(), TLS: m.TLS, Timing: brisk})
	c.t.Cleanup(func() { _ = member.Close() })
	until(c.t, "the link is up", func() bool { _, err := member.State(); return err == nil })
	return member
}

// until waits for a condition.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// wire passes connections on to an address until it is cut.
type wire struct {
	listen net.Listener

	mu    sync.Mutex
	conns []net.Conn
}

func between(t testing.TB, to string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listen: l}
	t.Cleanup(func() { _ = l.Close(); w.cut() })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to)
			if err != nil {
				_ = a.Close()
				continue
			}
			w.mu.Lock()
			w.conns = append(w.conns, a, b)
			w.mu.Unlock()
			for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
				go func() { _, _ = io.Copy(pair[0], pair[1]); _ = errors.Join(a.Close(), b.Close()) }()
			}
		}
	}()
	return w
}

func (w *wire) addr() string { return w.listen.Addr().String() }

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		_ = c.Close()
	}
	w.conns = nil
}

// blocked keeps a file from being replaced, until the function it returns is called.
func blocked(t testing.TB, path string) (free func()) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(path+".tmp", "x"), 0o700); err != nil {
		t.Error(err)
	}
	return func() {
		if err := os.RemoveAll(path + ".tmp"); err != nil {
			t.Error(err)
		}
	}
}

// shown is the certificate that a machine shows when it calls next.
func shown(t testing.TB, m *Membership) []byte {
	t.Helper()
	config, err := m.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return config.Certificates[0].Certificate[0]
}

// stranger is a configuration without a certificate, which takes whoever answers for the head.
func stranger() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true, NextProtos: []string{"h2"}} //nolint:gosec // it is hostile
}
