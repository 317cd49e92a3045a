package membership

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"testing"

	"sluice.dev/sluice/internal/core/job"
)

// fakeConn is a connection from an address.
type fakeConn struct {
	net.Conn
	from   string
	closed bool
}

type fakeAddr string

func (fakeAddr) Network() string  { return "tcp" }
func (a fakeAddr) String() string { return string(a) }

func (c *fakeConn) RemoteAddr() net.Addr { return fakeAddr(c.from) }
func (c *fakeConn) Close() error         { c.closed = true; return nil }

// Whatever comes and goes, the bounds hold, no machine's connection is closed but by its own others, and whoever comes gets in as long as
// machines leave a place.
func TestADoorUnderRandomVisits(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		d := newDoor(40, slog.New(slog.DiscardHandler))
		var all []*guest
		for range 400 {
			switch k := r.IntN(10); {
			case k < 6:
				c := &fakeConn{from: fmt.Sprintf("10.0.0.%d:%d", r.IntN(6), r.IntN(60000)+1)}
				if g := d.admit(c); g != nil {
					all = append(all, g)
				} else if machines := count(all, func(g *guest) bool { return g.machine != "" }); machines < d.most {
					t.Fatalf("seed %d: refused with %d machines' connections", seed, machines)
				}
			case k < 9 && len(all) > 0:
				g := all[r.IntN(len(all))]
				g.prove(job.NodeID(fmt.Sprint("m", r.IntN(7))))
			case len(all) > 0:
				_ = all[r.IntN(len(all))].Close()
			}
			strangers := count(all, func(g *guest) bool { return g.machine == "" })
			if strangers > d.strangers || len(d.open) > d.most || len(d.open) != count(all, func(*guest) bool { return true }) {
				t.Fatalf("seed %d: %d strangers, %d open", seed, strangers, len(d.open))
			}
			for i := range 7 {
				from, machine := fmt.Sprint("10.0.0.", i), job.NodeID(fmt.Sprint("m", i))
				if n := count(all, func(g *guest) bool { return g.machine == "" && g.from == from }); n > d.each {
					t.Fatalf("seed %d: %d strangers from %s", seed, n, from)
				}
				if n := count(all, func(g *guest) bool { return g.machine == machine }); n > ofMachine {
					t.Fatalf("seed %d: %d connections of %s", seed, n, machine)
				}
			}
			for _, g := range all {
				if _, counted := d.open[g]; counted == closed(g) {
					t.Fatalf("seed %d: closed %v, and counted %v", seed, closed(g), counted)
				}
			}
		}
	}
}

// closed reports whether a connection was closed.
func closed(g *guest) bool {
	c, _ := g.Conn.(*fakeConn)
	return c.closed
}

func count(all []*guest, of func(*guest) bool) (n int) {
	for _, g := range all {
		if !closed(g) && of(g) {
			n++
		}
	}
	return n
}

// The oldest stranger of the address that has the most makes room; a machine's connection only for its own.
func TestWhoMakesRoom(t *testing.T) {
	d := newDoor(16, slog.New(slog.DiscardHandler)) // 4 strangers, 2 of each address
	come := func(from string) *guest {
		g := d.admit(&fakeConn{from: from + ":1"})
		if g == nil {
			t.Fatalf("no place for %s", from)
		}
		return g
	}
	machine := come("10.0.0.9")
	machine.prove("m")
	a, b := come("10.0.0.1"), come("10.0.0.1")
	if c := come("10.0.0.1"); !closed(a) || closed(b) || closed(c) {
		t.Error("not the oldest of the same address")
	}
	other := come("10.0.0.2")
	come("10.0.0.3")
	if last := come("10.0.0.4"); !closed(b) || closed(other) || closed(last) {
		t.Error("not the oldest of the address with the most")
	}
	var own []*guest
	for range ofMachine {
		g := come("10.0.0.9")
		g.prove("m")
		own = append(own, g)
	}
	if !closed(machine) || closed(own[0]) {
		t.Error("not the oldest of the machine's")
	}
	// A place that a machine gives back is free.
	for i := range 2 * ofMachine {
		g := come("10.0.1." + fmt.Sprint(i))
		g.prove(job.NodeID(fmt.Sprint("other", i)))
		_ = g.Close()
	}
	// Where machines have all places a stranger is turned away.
	for i := 0; len(d.open) < d.most || d.oldest(func(g *guest) bool { return g.machine == "" }) != nil; i++ {
		if g := d.admit(&fakeConn{from: "10.0.2.1:1"}); g != nil {
			g.prove(job.NodeID(fmt.Sprint("last", i)))
		}
	}
	late := &fakeConn{from: "10.0.3.1:1"}
	if d.admit(late) != nil || len(d.open) != d.most {
		t.Errorf("a stranger has the place of a machine: %d open", len(d.open))
	}
}

func TestWhatAConnectionIsCountedBy(t *testing.T) {
	for addr, want := range map[string]string{
		"10.1.2.3:99": "10.1.2.3", "[::ffff:10.1.2.3]:99": "10.1.2.3", "[2001:db8:1:2:3::4]:99": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:99": "fe80::/64", "@": "@",
	} {
		if got := source(fakeAddr(addr)); got != want {
			t.Errorf("%s: %s, want %s", addr, got, want)
		}
	}
}
