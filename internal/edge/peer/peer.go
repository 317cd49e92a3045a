// Package peer says which user of this machine is at the other end of a connection, by what the kernel knows and nothing that
// the other end says: of a unix socket its credentials, of a loopback TCP connection the owner of the socket there. It must
// not know what anybody may do.
package peer

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strings"
)

// Namer names peers. The zero value is ready; it may be used concurrently.
type Namer struct{ kernel kernel }

// ErrFar says that the other end is not known to be on this machine.
var ErrFar = errors.New("the other end is not on this machine")

// UID is the user at the other end of a connection that is open now. The process that made the other socket counts, also if another
// process has it by now. An error says why nobody can be named: ErrFar, the connection has ended, or the kernel does not
// tell. It never names the wrong user: a port that was used again by somebody else since the connection was made is
// noticed.
func (n *Namer) UID(c net.Conn) (uint32, error) {
	var uid uint32
	var err error
	switch c := c.(type) {
	case *net.UnixConn:
		uid, err = credentials(c)
	case *net.TCPConn:
		uid, err = n.tcp(c)
	default:
		return 0, ErrFar
	}
	if err != nil {
		return 0, err
	}
	if uid == overflow() && !allUsers() {
		return 0, fmt.Errorf("the other end's user has no number in this user namespace")
	}
	return uid, nil
}

// Close gives back what the namer holds.
func (n *Namer) Close() error { return n.kernel.close() }

func (n *Namer) tcp(c *net.TCPConn) (uint32, error) {
	e := ends{plain(c.LocalAddr()), plain(c.RemoteAddr())}
	if !e.here.Addr().IsLoopback() || !e.there.Addr().IsLoopback() {
		return 0, ErrFar
	}
	if err := established(c); err != nil {
		return 0, err
	}
	uid, err := n.kernel.owner(e)
	if errors.Is(err, errors.ErrUnsupported) {
		uid, err = fromTable(e)
	}
	if err != nil {
		return 0, err
	}
	// The other socket was asked for by its addresses, which a later one may have. But then this end is not open any more: the
	// kernel lets nobody have them while it is.
	if err := established(c); err != nil {
		return 0, err
	}
	return uid, nil
}

// plain is an address without the form that IPv6 has for one of IPv4.
func plain(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap().WithZone(""), ap.Port())
}

// overflow is what the kernel calls users that have no number in a namespace.
func overflow() uint32 {
	var n uint32
	text, err := os.ReadFile("/proc/sys/kernel/overflowuid")
	if err != nil {
		return 65534
	}
	if _, err := fmt.Sscan(string(text), &n); err != nil {
		return 65534
	}
	return n
}

// allUsers says whether every user of the machine has a number here, so that the overflow's is a user like any other.
func allUsers() bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	f := strings.Fields(string(text))
	return err == nil && len(f) == 3 && f[0] == "0" && f[1] == "0" && f[2] == "4294967295"
}
