package stream

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/fabric"
)

// MemberOptions of a machine's side.
type MemberOptions struct {
	// Machine is this one's name, as its certificate has it.
	Machine job.NodeID
	// Head is its address, host:port. It is looked up anew each time it is dialed.
	Head string
	// TLS says who the head must be, and who this machine is. It is asked each time the head is dialed, since certificates are renewed.
	TLS func() (*tls.Config, error)
	// Start is called before each dial: it says which start of the daemon this is, once the head has answered that; nil: none is said.
	Start func(context.Context) (string, error)
	// MapsUsers: subjobs run as the user that this machine has for their queue, not as the daemon's own.
	MapsUsers bool
	// Now is this machine's wall clock; nil: the system's. Measured gets each measurement of the head's: what it says now, and how long the
	// way there and back took; nil: nobody.
	Now      func() time.Time
	Measured func(head time.Time, round time.Duration)
	// Removed is told once that the machine was removed from its cluster (authority.ErrRemoved): the head is not called again. nil: nobody.
	Removed func(error)
	// Build of this side, for people.
	Build  string
	Timing Timing
	Log    *slog.Logger
}

// Member is a machine's side, which calls its head, and calls again whenever the link is gone. Safe for concurrent use.
type Member struct {
	options MemberOptions
	own     fabric.Receivers
	stop    context.CancelCauseFunc
	done    chan struct{}
	up      atomic.Pointer[session] // nil: the link is down
	dropped atomic.Uint64           // while it was down or had no receiver, and of links that are down
	frames  atomic.Uint64           // heard of the head, over all links

	mu  sync.Mutex
	why error // the link is down for this
}

var _ fabric.Fabric = (*Member)(nil)

// refusedWaits is how many times the last wait a machine that is refused waits: a person must do something first.
const refusedWaits = 15

// errRefused marks an answer of the head that will be the same the next time.
var errRefused = errors.New("the head refuses this machine")

// errClosed ends the link of a machine that stops.
var errClosed = errkind.Errorf(errkind.Unavailable, "this side was closed")

// Join begins to call the head. Messages are dropped until it has answered.
func Join(o MemberOptions) *Member {
	o.Timing = o.Timing.filled()
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	ctx, stop := context.WithCancelCause(context.Background())
	m := &Member{options: o, stop: stop, done: make(chan struct{})}
	m.why = errors.New("the head was not called yet")
	go m.call(ctx)
	return m
}

// Attach implements fabric.Fabric.
func (m *Member) Attach(addr protocol.Address, deliver fabric.Deliver) error {
	return m.own.Attach(addr, deliver)
}

// Send implements fabric.Fabric.
func (m *Member) Send(said protocol.Message) {
	switch s := m.up.Load(); {
	case owns(m.options.Machine, said.To):
		m.hand(said)
	case s == nil:
		m.dropped.Add(1)
	default:
		s.queue.put(said)
	}
}

// hand delivers a message to this machine's node, or counts it as dropped.
func (m *Member) hand(said protocol.Message) {
	if !m.own.Hand(said) {
		m.dropped.Add(1)
	}
}

// Dropped implements fabric.Fabric.
func (m *Member) Dropped() uint64 {
	n := m.dropped.Load()
	if s := m.up.Load(); s != nil {
		n += s.queue.lost()
	}
	return n
}

// Heard grows with whatever the head says, if only a beat each second, once it has accepted this machine.
func (m *Member) Heard() uint64 { return m.frames.Load() }

// State is the link to the head, or why there is none.
func (m *Member) State() (Link, error) {
	if s := m.up.Load(); s != nil {
		return s.link(), nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return Link{}, m.why
}

// Close implements fabric.Fabric.
func (m *Member) Close() error {
	m.stop(errClosed)
	<-m.done
	m.own.Close()
	return nil
}

// call keeps a link to the head until ctx is done.
func (m *Member) call(ctx context.Context) {
	defer close(m.done)
	w := waits{timing: m.options.Timing}
	for {
		lasted, err := m.once(ctx)
		m.note(cmp.Or(context.Cause(ctx), err))
		if ctx.Err() != nil {
			return
		}
		if errors.Is(err, authority.ErrRemoved) {
			if m.options.Removed != nil {
				m.options.Removed(err)
			}
			return
		}
		// Not all machines of a head that was away may call it at once.
		if d := w.next(lasted, err); !rest(ctx, d/2+rand.N(d/2+1)) {
			m.note(context.Cause(ctx))
			return
		}
	}
}

// waits are how long a machine waits before it calls again.
type waits struct {
	timing Timing
	last   time.Duration // 0: none yet
}

// next is the wait after a call that failed, or a link that lasted so long. One that is gone at once, again and again, is as good as none:
// two processes with one name would end each other's many times a second.
func (w *waits) next(lasted time.Duration, err error) time.Duration {
	w.last = min(2*w.last, w.timing.RetryLast)
	if w.last == 0 || lasted >= w.timing.Silence {
		w.last = w.timing.RetryFirst
	}
	if refused(err) {
		return refusedWaits * w.timing.RetryLast
	}
	return w.last
}

// note keeps why there is no link, and logs it where it is another reason than before.
func (m *Member) note(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if errors.Is(err, errClosed) {
		m.why = err
		return
	}
	if m.why == nil || m.why.Error() != err.Error() {
		m.options.Log.Warn("no link to the head; what runs goes on, and it is called again", "head", m.options.Head, "why", err)
	}
	m.why = err
}

func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// once calls the head, and returns when the link is gone: how long there was one, and what ended it.
func (m *Member) once(ctx context.Context) (lasted time.Duration, err error) {
	config, err := m.options.TLS()
	if err != nil {
		return 0, fmt.Errorf("this machine's certificate: %w", err)
	}
	start := ""
	if m.options.Start != nil {
		if start, err = m.options.Start(ctx); err != nil {
			if errkind.Of(err) == errkind.Denied {
				err = fmt.Errorf("%w: %w", errRefused, err)
			}
			return 0, err
		}
	}
	// A transport for each call: one that waits for a peer that is gone would give the next call the same connection. It writes to its
	// configuration, which a dial of the call before may still read.
	dialed := &connections{dialer: net.Dialer{Timeout: m.options.Timing.Silence}}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: m.options.Timing.Silence, DialContext: dialed.dial,
	}
	defer dialed.close()
	defer transport.CloseIdleConnections()
	call, end := context.WithCancel(ctx)
	defer end()
	client := sluicev1alpha1connect.NewClusterServiceClient(&http.Client{Transport: transport}, "https://"+m.options.Head,
		connect.WithGRPC(), connect.WithReadMaxBytes(MaxFrame), connect.WithAcceptCompression("gzip", nil, nil))
	stream := client.Link(call)
	s := newSession(m.options.Timing, m.options.Build, m.options.Now, m.take)
	s.start, s.maps, s.pulse.measured, s.frames = start, m.options.MapsUsers, m.options.Measured, &m.frames
	var linked time.Time
	err = s.run(call, calling{stream, end, dialed}, func() error {
		linked = time.Now()
		m.up.Store(s)
		m.mu.Lock()
		m.why = nil
		m.mu.Unlock()
		other := s.other.Load()
		m.options.Log.Info("linked to the head", "head", m.options.Head, "build", other.GetBuild())
		if why := Ahead(&pb.Speaks{Newest: other.GetNewest()}, Speaks(m.options.Build)); why != "" {
			m.options.Log.Warn(why)
		}
		return nil
	})
	m.note(cmp.Or(context.Cause(ctx), err)) // first, since whoever finds no link asks why
	m.up.Store(nil)
	m.dropped.Add(s.queue.lost() + uint64(len(s.queue.take(nil))))
	_ = errors.Join(stream.CloseRequest(), stream.CloseResponse()) // the stream is over
	if !linked.IsZero() {
		lasted = time.Since(linked)
	}
	return lasted, err
}

// take delivers what the head says to this machine's node.
func (m *Member) take(said protocol.Message) bool {
	if !owns(m.options.Machine, said.To) {
		return false
	}
	m.hand(said)
	return true
}

// calling is a stream as the caller has it, whose errors say what the head has answered.
type calling struct {
	*connect.BidiStreamForClient[pb.Frame, pb.Frame]
	end    context.CancelFunc
	dialed *connections
}

// Receive implements pipe.
func (c calling) Receive() (*pb.Frame, error) {
	f, err := c.BidiStreamForClient.Receive()
	if err == nil {
		return f, nil
	}
	final := []connect.Code{connect.CodePermissionDenied, connect.CodeUnauthenticated, connect.CodeFailedPrecondition,
		connect.CodeInvalidArgument, connect.CodeUnimplemented}
	if slices.Contains(final, connect.CodeOf(err)) {
		err = fmt.Errorf("%w: %w", errRefused, err)
	}
	if SaysRemoved(err) {
		err = authority.RemovedAs(err)
	}
	return nil, err
}

// Interrupt implements pipe.
func (c calling) Interrupt() { c.end() }

// Break implements pipe.
func (c calling) Break() { c.dialed.close() }

// connections are those of one call: a proxy's, or the head's.
type connections struct {
	dialer net.Dialer

	mu     sync.Mutex
	list   []net.Conn
	closed bool // those that are dialed from now on are closed at once
}

func (c *connections) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := c.dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.Join(net.ErrClosed, conn.Close())
	}
	c.list = append(c.list, conn)
	return conn, nil
}

func (c *connections) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, conn := range c.list {
		_ = conn.Close() // an error: it is closed
	}
	c.list = nil
}
