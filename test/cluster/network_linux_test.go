package cluster

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// mtu of the links.
const mtu = 1500

// address of the machine with a number; the head's is 0.
func address(machine int) netip.Addr { return netip.AddrFrom4([4]byte{10, 99, 0, byte(machine + 1)}) }

// fault is what is wrong with a machine's link.
type fault struct {
	// Nothing arrives that the machine sends, or that is sent to it.
	mute, deaf bool
	// loss is the share of packets that are lost, delay how long each takes longer, both in each direction.
	loss  float64
	delay time.Duration
}

// network is the switch between machines: it reads the packets that each sends, and hands them to the one they are for.
type network struct {
	mu     sync.Mutex
	rng    *rand.Rand
	ports  []*port
	faults []fault
}

// port is a machine's end of the network.
type port struct {
	tun *os.File
	// arriving packets, in order.
	arriving chan packet
}

type packet struct {
	at   time.Time
	data []byte
}

func newNetwork(machines int, seed uint64) *network {
	return &network{rng: rand.New(rand.NewPCG(seed, 2)), ports: make([]*port, machines), faults: make([]fault, machines)}
}

// plug connects a machine, which must be the caller's network namespace.
func (n *network) plug(machine int) error {
	tun, err := openTun(address(machine))
	if err != nil {
		return err
	}
	p := &port{tun: tun, arriving: make(chan packet, 4096)}
	n.mu.Lock()
	n.ports[machine] = p
	n.mu.Unlock()
	go n.carry(machine, p)
	go p.deliver()
	return nil
}

// fail sets what is wrong with a machine's link, and returns what heals it.
func (n *network) fail(machine int, f fault) (heal func()) {
	set := func(f fault) {
		n.mu.Lock()
		n.faults[machine] = f
		n.mu.Unlock()
	}
	set(f)
	return func() { set(fault{}) }
}

// carry hands on what a machine sends until its end is closed.
func (n *network) carry(from int, p *port) {
	for {
		buf := make([]byte, mtu)
		size, err := p.tun.Read(buf)
		if err != nil {
			return
		}
		to, wait, ok := n.route(from, buf[:size])
		if !ok {
			continue
		}
		select {
		case to.arriving <- packet{time.Now().Add(wait), buf[:size]}:
		default: // it takes nothing, and its queue is full
		}
	}
}

// route says where a packet goes, and how long it takes longer than it must. ok is false where it gets lost, or is for nobody.
func (n *network) route(from int, data []byte) (to *port, wait time.Duration, ok bool) {
	if len(data) < 20 || data[0]>>4 != 4 {
		return nil, 0, false
	}
	target, _ := netip.AddrFromSlice(data[16:20])
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, p := range n.ports {
		if p == nil || address(i) != target {
			continue
		}
		out, in := n.faults[from], n.faults[i]
		if out.mute || in.deaf || n.rng.Float64() < out.loss || n.rng.Float64() < in.loss {
			return nil, 0, false
		}
		return p, out.delay + in.delay, true
	}
	return nil, 0, false
}

// deliver hands a machine what arrives for it.
func (p *port) deliver() {
	for a := range p.arriving {
		time.Sleep(time.Until(a.at))
		if _, err := p.tun.Write(a.data); errors.Is(err, os.ErrClosed) {
			return
		}
	}
}

// close ends the network: nothing is carried any more.
func (n *network) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.ports {
		if p != nil {
			_ = p.tun.Close() // whoever reads it ends
		}
	}
}

// openTun makes the network device of the caller's namespace.
func openTun(ip netip.Addr) (*os.File, error) {
	const name = "sluice0"
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	made, err := unix.NewIfreq(name)
	if err == nil {
		made.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, made)
	}
	if err == nil {
		err = errors.Join(up("lo", netip.Addr{}), up(name, ip))
	}
	if err != nil {
		_ = unix.Close(fd) // it is of no use
		return nil, fmt.Errorf("a network device: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// up gives a device of the caller's namespace an address, if it is to have one, and switches it on.
func up(name string, ip netip.Addr) error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(s) }()
	r, err := unix.NewIfreq(name)
	if err != nil {
		return err
	}
	if ip.IsValid() {
		for _, set := range []struct {
			call uint
			ip   netip.Addr
		}{{unix.SIOCSIFADDR, ip}, {unix.SIOCSIFNETMASK, netip.MustParseAddr("255.255.255.0")}} {
			if err = r.SetInet4Addr(set.ip.AsSlice()); err == nil {
				err = unix.IoctlIfreq(s, set.call, r)
			}
			if err != nil {
				return fmt.Errorf("address %s of %s: %w", set.ip, name, err)
			}
		}
	}
	r.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, r); err != nil {
		return fmt.Errorf("switching on %s: %w", name, err)
	}
	return nil
}
