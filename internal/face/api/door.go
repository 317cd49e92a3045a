package api

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/edge/peer"
)

// door counts connections from the moment they are accepted, before TLS and before authentication, so that no number of them takes the
// descriptors that journal and executor need, nor the places of authorized callers. Every connection belongs to a peer: a user of this
// machine, or a network address. The daemon's own user and callers that have shown a token may have all the places, everybody else half of
// them together and a quarter of them each. When there is no place, the connection that has been idle for the longest time makes room; if
// none is idle, the new one is closed.
type door struct {
	uid   uint32
	namer peer.Namer
	log   *slog.Logger
	// total, others and each bound the open connections: all, those of others, and those of one other peer.
	total, others, each int

	mu     sync.Mutex
	open   map[*visit]struct{}
	peers  map[string]int // of others
	second int            // how many others there are
	turned int            // how many were closed since it was last said
	said   time.Time
}

// visit is one open connection.
type visit struct {
	net.Conn
	door *door
	// uid of the user at the other end, if named; why not, if not.
	uid   uint32
	named bool
	key   string

	// Guarded by the door's lock. own: it counts as the owner's. calls are those that are being worked for; since is when
	// there were none for the first time after that.
	own    bool
	calls  int
	since  time.Time
	closed bool
}

// Connections get this share of the process's descriptors, and at most this many.
const (
	shareOfFiles = 2
	maxConns     = 4096
	minConns     = 8
)

// maxOpen is how many connections may be open.
func maxOpen() int {
	var limit syscall.Rlimit
	// Go raises the soft limit to the hard one at the start of a program.
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return minConns
	}
	return int(max(minConns, min(maxConns, limit.Cur/shareOfFiles)))
}

func newDoor(log *slog.Logger) *door {
	total := maxOpen()
	return &door{
		uid: uint32(os.Geteuid()), log: log, total: total, others: total / 2, each: max(2, total/4),
		open: map[*visit]struct{}{}, peers: map[string]int{},
	}
}

// entrance is a listener behind the door.
type entrance struct {
	net.Listener
	door *door
}

// Pauses after an accept that failed for want of descriptors or memory.
const (
	firstPause = 5 * time.Millisecond
	lastPause  = time.Second
)

// Accept waits for a connection that there is a place for. It survives a lack of descriptors.
func (e entrance) Accept() (net.Conn, error) {
	for pause := firstPause; ; {
		c, err := e.Listener.Accept()
		switch {
		case err == nil:
			if v := e.door.admit(c); v != nil {
				return v, nil
			}
			_ = c.Close() // there was no place for it
		case errors.Is(err, syscall.ECONNABORTED):
		case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOBUFS),
			errors.Is(err, syscall.ENOMEM):
			e.door.log.Warn("no connection can be accepted; one that is idle is closed", "error", err)
			e.door.relieve()
			time.Sleep(pause)
			pause = min(2*pause, lastPause)
			continue
		default:
			return nil, err
		}
		pause = firstPause
	}
}

// admit gives a connection a place; nil if there is none.
func (d *door) admit(c net.Conn) *visit {
	v := &visit{Conn: c, door: d, since: time.Now()}
	uid, err := d.namer.UID(c)
	v.uid, v.named = uid, err == nil
	v.own = v.named && uid == d.uid
	v.key = v.peer()
	d.mu.Lock()
	out, ok := d.place(v)
	if ok {
		d.open[v] = struct{}{}
		d.count(v, 1)
	}
	d.note(out, ok)
	d.mu.Unlock()
	if out != nil {
		_ = out.Conn.Close() // its reader sees the end
	}
	if !ok {
		return nil
	}
	return v
}

// peer is what connections are counted by. Of IPv6 a network counts as one: a single machine can have all of its addresses.
func (v *visit) peer() string {
	if v.named {
		return "user " + strconv.FormatUint(uint64(v.uid), 10)
	}
	t, ok := v.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return "unnamed"
	}
	a := t.AddrPort().Addr().Unmap()
	if a.Is6() {
		if p, err := a.Prefix(64); err == nil {
			return p.Masked().String()
		}
	}
	return netip.Addr.String(a)
}

// place finds out whether a connection may stay, and which other one has to go for it; nil for none. The caller holds d.mu.
func (d *door) place(v *visit) (out *visit, ok bool) {
	among := func(*visit) bool { return true }
	switch {
	case v.own && len(d.open) < d.total:
		return nil, true
	case v.own: // first those of others, of the peer with the most
		most := d.heaviest()
		if out = d.idlest(func(o *visit) bool { return !o.own && o.key == most }); out == nil {
			out = d.idlest(among)
		}
		return out, out != nil
	case d.peers[v.key] >= d.each:
		among = func(o *visit) bool { return !o.own && o.key == v.key }
	case d.second >= d.others:
		most := d.heaviest()
		among = func(o *visit) bool { return !o.own && o.key == most }
	case len(d.open) >= d.total: // the owner has more than half, and may be the next to come
	default:
		return nil, true
	}
	out = d.idlest(among)
	return out, out != nil
}

// heaviest is the peer, other than the owner, with the most connections.
func (d *door) heaviest() (key string) {
	most := 0
	for k, n := range d.peers {
		if n > most || n == most && k < key {
			most, key = n, k
		}
	}
	return key
}

// idlest is the connection for which nothing has been done for the longest time; nil if something is being done for all.
func (d *door) idlest(among func(*visit) bool) (idle *visit) {
	for v := range d.open {
		if v.calls == 0 && among(v) && (idle == nil || v.since.Before(idle.since)) {
			idle = v
		}
	}
	if idle != nil {
		d.forget(idle)
	}
	return idle
}

// relieve closes an idle connection, for its descriptor.
func (d *door) relieve() {
	d.mu.Lock()
	most := d.heaviest()
	out := d.idlest(func(v *visit) bool { return !v.own && v.key == most })
	if out == nil {
		out = d.idlest(func(*visit) bool { return true })
	}
	d.mu.Unlock()
	if out != nil {
		_ = out.Conn.Close() // its reader sees the end
	}
}

// note says now and then that connections were closed for want of room. The caller holds d.mu.
func (d *door) note(out *visit, ok bool) {
	if out != nil || !ok {
		d.turned++
	}
	if now := time.Now(); d.turned > 0 && now.Sub(d.said) > time.Minute {
		d.log.Warn("more connections than there is room for: idle ones are closed", "closed", d.turned, "open", len(d.open), "most",
			d.total)
		d.turned, d.said = 0, now
	}
}

func (d *door) forget(v *visit) {
	if v.closed {
		return
	}
	v.closed = true
	delete(d.open, v)
	d.count(v, -1)
}

// count changes how many connections of others there are by n for v. The caller holds d.mu.
func (d *door) count(v *visit, n int) {
	if v.own {
		return
	}
	d.second += n
	if d.peers[v.key] += n; d.peers[v.key] == 0 {
		delete(d.peers, v.key)
	}
}

// close gives back what the door holds; its connections are the server's.
func (d *door) close() error { return d.namer.Close() }

// Close ends the connection and frees its place.
func (v *visit) Close() error {
	v.door.mu.Lock()
	v.door.forget(v)
	v.door.mu.Unlock()
	return v.Conn.Close()
}

// prove makes a connection the owner's, once a token was shown.
func (v *visit) prove() {
	if v == nil {
		return
	}
	v.door.mu.Lock()
	defer v.door.mu.Unlock()
	if !v.own && !v.closed {
		v.door.count(v, -1)
		v.own = true
	}
}

// work keeps the connection from making room until the function it returns was called.
func (v *visit) work() (done func()) {
	if v == nil {
		return func() {}
	}
	v.door.mu.Lock()
	v.calls++
	v.door.mu.Unlock()
	return func() {
		v.door.mu.Lock()
		defer v.door.mu.Unlock()
		if v.calls--; v.calls == 0 {
			v.since = time.Now()
		}
	}
}

type visitKey struct{}

// visiting is http.Server.ConnContext: it lets handlers find their connection.
func visiting(ctx context.Context, c net.Conn) context.Context {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, visitKey{}, c)
}

// visitOf is the connection that a request came by; nil for one that came by no door, in tests.
func visitOf(ctx context.Context) *visit {
	v, _ := ctx.Value(visitKey{}).(*visit)
	return v
}
