package membership

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/fabric/stream"
)

const (
	// connections is how many may be open by default.
	connections = 2048
	// share of connections is for strangers, and share of that for each address. Behind one address may be many machines, each of
	// which is a stranger until its handshake is over.
	share = 4
	// ofMachine is how many connections one machine may have: its link, and a call or two beside it.
	ofMachine = 8
)

// door bounds the connections from the moment they are accepted, so that strangers, however many, leave room for machines, and no machine
// takes that of another. Who comes last gets in, and the oldest of those that have too many goes: an honest stranger needs its place only
// for a moment.
type door struct {
	most, strangers, each int
	log                   *slog.Logger
	said                  seldom

	mu   sync.Mutex
	open map[*guest]struct{}
	came uint64 // how many so far
}

// guest is an open connection.
type guest struct {
	net.Conn
	door *door
	from string // address
	nth  uint64 // to come
	// joining: it waits for a call to join.
	joining atomic.Bool

	// Guarded by the door's lock. machine is whose certificate was shown; empty: a stranger.
	machine job.NodeID
}

func newDoor(most int, log *slog.Logger) *door {
	strangers := max(2, most/share)
	return &door{most: most, strangers: strangers, each: max(2, strangers/share), log: log, open: map[*guest]struct{}{}}
}

// admit gives a connection a place; nil if there is none.
func (d *door) admit(c net.Conn) *guest {
	g := &guest{Conn: c, door: d, from: source(c.RemoteAddr())}
	d.mu.Lock()
	defer d.mu.Unlock()
	out := d.crowd(g.from)
	d.end(out)
	full := len(d.open) >= d.most
	if out != nil || full {
		if n, ok := d.said.note(time.Now()); ok {
			d.log.Warn("more connections than there is room for: the oldest of strangers are closed", "open", len(d.open), "from", g.from,
				"others", n)
		}
	}
	if full {
		return nil
	}
	d.came++
	g.nth = d.came
	d.open[g] = struct{}{}
	return g
}

// crowd is the stranger that has to go if another comes from an address; nil: none.
func (d *door) crowd(from string) *guest {
	n, of := 0, map[string]int{}
	for g := range d.open {
		if g.machine == "" {
			n++
			of[g.from]++
		}
	}
	switch {
	case of[from] >= d.each:
	case n >= d.strangers, len(d.open) >= d.most:
		for address, k := range of { // the one with the most
			if k > of[from] || k == of[from] && address < from {
				from = address
			}
		}
	default:
		return nil
	}
	return d.oldest(func(g *guest) bool { return g.machine == "" && g.from == from })
}

func (d *door) oldest(among func(*guest) bool) (first *guest) {
	for g := range d.open {
		if among(g) && (first == nil || g.nth < first.nth) {
			first = g
		}
	}
	return first
}

// end closes a connection, if it is one. Its reader sees the end.
func (d *door) end(g *guest) {
	if g == nil {
		return
	}
	delete(d.open, g)
	_ = g.Conn.Close() // only its end matters
}

// Close ends the connection and frees its place.
func (g *guest) Close() error {
	g.door.mu.Lock()
	delete(g.door.open, g)
	g.door.mu.Unlock()
	return g.Conn.Close()
}

// prove makes a connection a machine's.
func (g *guest) prove(machine job.NodeID) {
	d := g.door
	d.mu.Lock()
	defer d.mu.Unlock()
	if g.machine == machine {
		return
	}
	g.machine = machine
	n := 0
	for o := range d.open {
		if o.machine == machine {
			n++
		}
	}
	if n > ofMachine {
		d.end(d.oldest(func(o *guest) bool { return o.machine == machine }))
	}
}

// source is what a connection is counted by: its address, or its network where each has very many.
func source(a net.Addr) string {
	at, err := netip.ParseAddrPort(a.String())
	if err != nil {
		return a.String()
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is6() {
		if net, err := ip.Prefix(64); err == nil {
			return net.String()
		}
	}
	return ip.String()
}

// entrance is a listener behind the door.
type entrance struct {
	net.Listener
	door *door
}

// Accept waits for a connection that there is a place for.
func (e entrance) Accept() (net.Conn, error) {
	for {
		c, err := e.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if g := e.door.admit(c); g != nil {
			return g, nil
		}
		_ = c.Close() // there was no place for it
	}
}

type guestKey struct{}

// visiting is http.Server.ConnContext: it lets calls find their connection, as a link has to.
func visiting(ctx context.Context, c net.Conn) context.Context {
	ctx = stream.WithConn(ctx, c)
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return context.WithValue(ctx, guestKey{}, c)
}

// guestOf is the connection that a call came by.
func guestOf(ctx context.Context) *guest {
	g, _ := ctx.Value(guestKey{}).(*guest)
	return g
}
