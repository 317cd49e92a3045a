package peer

import (
	"errors"
	"net/netip"
)

// ends of a connection, seen from here.
type ends struct{ here, there netip.AddrPort }

// tcpEstablished is TCP_ESTABLISHED of include/net/tcp_states.h.
const tcpEstablished = 1

var errUnnamed = errors.New("the kernel knows no open socket at the other end")
