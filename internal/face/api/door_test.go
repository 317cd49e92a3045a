package api

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// fromAfar is a connection from an address.
type fromAfar struct {
	net.Conn
	ip     string
	closed bool
}

func (f *fromAfar) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.ip), Port: 1} }
func (f *fromAfar) Close() error         { f.closed = true; return nil }

func smallDoor(total, others, each int) *door {
	d := newDoor(slog.New(slog.DiscardHandler))
	d.total, d.others, d.each = total, others, each
	return d
}

func TestWhoMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := smallDoor(6, 4, 3)
		come := func(ip string) *visit { time.Sleep(time.Second); return d.admit(&fromAfar{ip: ip}) }
		gone := func(v *visit) bool { return v.Conn.(*fromAfar).closed }
		a1, a2, a3 := come("192.0.2.1"), come("192.0.2.1"), come("192.0.2.1")
		done := a1.work()
		if a4 := come("192.0.2.1"); a4 == nil || gone(a1) || !gone(a2) || gone(a3) {
			t.Error("the fourth of one peer does not take the place of its idlest")
		}
		b1 := come("2001:db8::1")
		if b2 := come("2001:db8::2"); b2 == nil || gone(b1) || !gone(a3) {
			t.Error("where others have all their places the peer with most does not make room")
		}
		done()
		come("192.0.2.7")
		if gone(a1) {
			t.Error("who has just been worked for makes room before who never was")
		}
		b1.prove()
		b1.work()
		for range 8 {
			if v := come("198.51.100.1"); v == nil {
				t.Error("nobody makes room")
			} else {
				v.prove()
			}
		}
		if !gone(a1) || gone(b1) {
			t.Errorf("idle connections of others stay (%v), or the owner's that is worked for goes (%v)", !gone(a1), gone(b1))
		}
	})
}

func TestWhoIsWorkedForStays(t *testing.T) {
	d := smallDoor(4, 2, 2)
	for range 2 {
		d.admit(&fromAfar{ip: "192.0.2.1"}).work()
	}
	if d.admit(&fromAfar{ip: "192.0.2.1"}) != nil || d.admit(&fromAfar{ip: "192.0.2.2"}) != nil {
		t.Error("others get in beyond their share")
	}
	d.relieve()
	if len(d.open) != 2 {
		t.Errorf("%d are open: a call was cut off", len(d.open))
	}
}

// TestTheDoorCounts: whatever comes, is proved, worked for and goes, bounds and counts hold, and whoever is let in or turned
// away is as a plain look at all connections says.
func TestTheDoorCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := smallDoor(rapid.IntRange(2, 8).Draw(t, "total"), 0, 0)
		d.others, d.each = max(1, d.total/2), max(1, d.total/4)
		var in []*visit
		work := map[*visit]func(){}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			pick := func() *visit { return in[rapid.IntRange(0, len(in)-1).Draw(t, "which")] }
			switch op := rapid.IntRange(0, 5).Draw(t, "op"); {
			case op <= 2:
				ip := rapid.SampledFrom([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3"}).Draw(t, "ip")
				idle, others := 0, 0
				for v := range d.open {
					if !v.own {
						others++
					}
				}
				for v := range d.open {
					may := true
					switch {
					case d.peers[ip] >= d.each:
						may = !v.own && v.key == ip
					case others >= d.others:
						may = !v.own && v.key == d.heaviest()
					}
					if may && v.calls == 0 {
						idle++
					}
				}
				room := others < d.others && len(d.open) < d.total && d.peers[ip] < d.each
				v := d.admit(&fromAfar{ip: ip})
				if (v != nil) != (room || idle > 0) {
					t.Fatalf("let in: %v, with room %v and %d who could make it", v != nil, room, idle)
				}
				if v != nil {
					in = append(in, v)
				}
			case len(in) == 0:
			case op == 3:
				pick().prove()
			case op == 4:
				if v := pick(); work[v] == nil {
					work[v] = v.work()
				} else {
					work[v]()
					delete(work, v)
				}
			default:
				_ = pick().Close()
			}
			second, peers := 0, map[string]int{}
			for v := range d.open {
				if v.closed || v.Conn.(*fromAfar).closed {
					t.Fatal("a closed connection has a place")
				}
				if !v.own {
					second++
					peers[v.key]++
				}
			}
			if len(d.open) > d.total || second > d.others || second != d.second || len(peers) != len(d.peers) {
				t.Fatalf("%d open, %d of others, counted as %d", len(d.open), second, d.second)
			}
			for k, n := range peers {
				if n > d.each || d.peers[k] != n {
					t.Fatalf("%s has %d, counted as %d", k, n, d.peers[k])
				}
			}
		}
		for _, v := range in {
			if v.closed == (func() bool { _, open := d.open[v]; return open })() {
				t.Fatal("a connection is neither open nor closed")
			}
		}
	})
}

// starved is a listener without descriptors for a while.
type starved struct {
	net.Listener
	errs []error
}

func (s *starved) Accept() (net.Conn, error) {
	if len(s.errs) == 0 {
		return &fromAfar{ip: "192.0.2.9"}, nil
	}
	err := s.errs[0]
	s.errs = s.errs[1:]
	return nil, err
}

func TestAcceptOutlivesALackOfDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := smallDoor(8, 4, 4)
		idle, busy := d.admit(&fromAfar{ip: "192.0.2.1"}), d.admit(&fromAfar{ip: "192.0.2.1"})
		busy.work()
		fail := func(errno syscall.Errno) error { return &net.OpError{Op: "accept", Err: errno} }
		in := entrance{&starved{errs: []error{fail(syscall.EMFILE), fail(syscall.ECONNABORTED), fail(syscall.ENFILE)}}, d}
		c, err := in.Accept()
		if err != nil || c.RemoteAddr().(*net.TCPAddr).IP.String() != "192.0.2.9" {
			t.Fatalf("%v, %v", c, err)
		}
		if !idle.Conn.(*fromAfar).closed || busy.Conn.(*fromAfar).closed {
			t.Error("the idle connection did not give its descriptor, or the busy one did")
		}
		in.Listener.(*starved).errs = []error{io.ErrUnexpectedEOF}
		if _, err := in.Accept(); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("another error: %v", err)
		}
	})
}
