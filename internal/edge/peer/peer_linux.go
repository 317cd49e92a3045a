package peer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// credentials of the process that connected to a unix socket, as they were then.
func credentials(c *net.UnixConn) (uint32, error) {
	var cred *unix.Ucred
	err := control(c, func(fd int) (err error) {
		cred, err = unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("asking for the credentials of a unix socket's peer: %w", err)
	}
	return cred.Uid, nil
}

// established says whether both ends of a connection are open, as far as this one knows.
func established(c *net.TCPConn) error {
	var info *unix.TCPInfo
	err := control(c, func(fd int) (err error) {
		info, err = unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		return err
	})
	if err != nil {
		return fmt.Errorf("asking for the state of a connection: %w", err)
	}
	if info.State != tcpEstablished {
		return errors.New("the other end has closed the connection")
	}
	return nil
}

func control(c interface {
	SyscallConn() (syscall.RawConn, error)
}, do func(fd int) error) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		return err
	}
	return failed
}

// kernel asks for the owner of a socket by its addresses (sock_diag(7)). It keeps its own socket, so that it can ask when no
// descriptor is left.
type kernel struct {
	mu   sync.Mutex
	open bool
	fd   int
	seq  uint32
	// knows TCP: it has named an owner before, so that where it finds none there is none.
	knows bool
}

const (
	diagByFamily = 20 // SOCK_DIAG_BY_FAMILY
	diagRequest  = 56 // struct inet_diag_req_v2
	diagAnswer   = 72 // struct inet_diag_msg
	header       = unix.SizeofNlMsghdr
	diagTimeout  = time.Second
)

// owner is the user whose socket is the other end of a connection. An error that is errors.ErrUnsupported: this kernel, or
// the sandbox that we are in, does not answer such questions.
func (k *kernel) owner(e ends) (uint32, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.open {
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_SOCK_DIAG)
		if err != nil {
			return 0, fmt.Errorf("%w: a netlink socket: %w", errors.ErrUnsupported, err)
		}
		limit := unix.NsecToTimeval(diagTimeout.Nanoseconds())
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &limit); err != nil {
			return 0, errors.Join(err, unix.Close(fd))
		}
		k.fd, k.open = fd, true
	}
	uid, err := k.ask(e)
	k.knows = k.knows || err == nil
	if k.knows && errors.Is(err, unix.ENOENT) {
		return 0, errUnnamed
	}
	if errors.Is(err, errBroken) { // an answer may come late, to the wrong question
		_ = unix.Close(k.fd)
		k.open = false
	}
	return uid, err
}

func (k *kernel) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.open {
		return nil
	}
	k.open = false
	return unix.Close(k.fd)
}

var errBroken = errors.New("the kernel's answer about a connection did not come, or is not what was asked for")

func (k *kernel) ask(e ends) (uint32, error) {
	k.seq++
	if err := unix.Sendto(k.fd, question(e, k.seq), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return 0, fmt.Errorf("%w: %w", errBroken, err)
	}
	buf := make([]byte, 4096)
	for {
		n, from, err := unix.Recvfrom(k.fd, buf, 0)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return 0, fmt.Errorf("%w: %w", errBroken, err)
		}
		if nl, ok := from.(*unix.SockaddrNetlink); !ok || nl.Pid != 0 {
			continue // not the kernel
		}
		return answer(buf[:n], e, k.seq)
	}
}

// question asks for the socket that the other end has: its own address is our peer's.
func question(e ends, seq uint32) []byte {
	b := make([]byte, header+diagRequest)
	native := binary.NativeEndian
	native.PutUint32(b[0:], uint32(len(b)))
	native.PutUint16(b[4:], diagByFamily)
	native.PutUint16(b[6:], unix.NLM_F_REQUEST)
	native.PutUint32(b[8:], seq)
	r := b[header:]
	r[0], r[1] = unix.AF_INET6, unix.IPPROTO_TCP
	if e.there.Addr().Is4() {
		r[0] = unix.AF_INET
	}
	native.PutUint32(r[4:], 1<<tcpEstablished)
	binary.BigEndian.PutUint16(r[8:], e.there.Port())
	binary.BigEndian.PutUint16(r[10:], e.here.Port())
	copy(r[12:28], e.there.Addr().AsSlice())
	copy(r[28:44], e.here.Addr().AsSlice())
	for i := range 8 { // INET_DIAG_NOCOOKIE
		r[48+i] = 0xff
	}
	return b
}

// answer reads the kernel's, and takes only that of an open socket with exactly these addresses: where there is none the
// kernel may answer with a listening one, or with what is left of one whose owner it has forgotten and calls root.
func answer(b []byte, e ends, seq uint32) (uint32, error) {
	native := binary.NativeEndian
	if len(b) < header+4 || native.Uint32(b[8:]) != seq {
		return 0, errBroken
	}
	m := b[header:]
	switch native.Uint16(b[4:]) {
	case unix.NLMSG_ERROR:
		switch errno := unix.Errno(-int32(native.Uint32(m))); errno {
		case unix.ENOENT:
			// No such socket; or no module that knows TCP. The table has the others.
			return 0, fmt.Errorf("%w: %w", errors.ErrUnsupported, errno)
		default:
			return 0, fmt.Errorf("%w: asking about a connection: %w", errors.ErrUnsupported, errno)
		}
	case diagByFamily:
	default:
		return 0, errBroken
	}
	if len(m) < diagAnswer {
		return 0, errBroken
	}
	at := func(port, ip int) netip.AddrPort {
		size := 16
		if m[0] == unix.AF_INET {
			size = 4
		}
		a, _ := netip.AddrFromSlice(m[ip : ip+size]) // has one of the two lengths
		return netip.AddrPortFrom(a.Unmap(), binary.BigEndian.Uint16(m[port:]))
	}
	uid, inode := native.Uint32(m[64:]), native.Uint32(m[68:])
	if m[1] != tcpEstablished || inode == 0 || at(4, 8) != e.there || at(6, 24) != e.here {
		return 0, errUnnamed
	}
	return uid, nil
}
