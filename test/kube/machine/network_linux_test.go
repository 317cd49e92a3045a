//go:build kubernetes && machine

package machine

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
)

// Listen listens where the machine's Pods can reach it: at the address that they go out by.
func (m *Machine) Listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := m.space.listen(nodeIP + ":0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// Reach has the machine's Pods reach an address of ours, and returns the one that they reach it by.
func (m *Machine) Reach(t testing.TB, to string) string {
	t.Helper()
	l := m.Listen(t)
	go hand(l, to)
	return l.Addr().String()
}

// forward has connections to an address in the machine's network end at one of ours.
func (m *Machine) forward(from, to string) error {
	l, err := m.space.listen(from)
	if err != nil {
		return fmt.Errorf("listening on %s for the machine: %w", from, err)
	}
	m.closers = append(m.closers, l)
	go serve(l, func(c net.Conn) { m.way(c, to) })
	return nil
}

// way hands a connection to the API server on, and cuts it when the machine is to be away.
func (m *Machine) way(c net.Conn, to string) {
	out, err := net.Dial("tcp", to)
	if err != nil {
		_ = c.Close()
		return
	}
	m.mu.Lock()
	away := m.away
	m.ways[c] = true
	m.mu.Unlock()
	if away {
		_ = c.Close()
	}
	copied(c, out)
	m.mu.Lock()
	delete(m.ways, c)
	m.mu.Unlock()
}

// Away has the machine lose its way to the API server, or find it again: what runs there goes on.
func (m *Machine) Away(away bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.away = away
	for c := range m.ways {
		if away {
			_ = c.Close()
		}
	}
}

// hand hands each connection on to an address of ours.
func hand(l net.Listener, to string) {
	serve(l, func(c net.Conn) {
		out, err := net.Dial("tcp", to)
		if err != nil {
			_ = c.Close()
			return
		}
		copied(c, out)
	})
}

// proxy is the API server's way to the kubelet: CONNECT on a socket, into the machine's network.
func (m *Machine) proxy(socket string) error {
	_ = os.Remove(socket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	m.closers = append(m.closers, l)
	go serve(l, func(c net.Conn) {
		r := bufio.NewReader(c)
		q, err := http.ReadRequest(r)
		if err != nil || q.Method != http.MethodConnect {
			_ = c.Close()
			return
		}
		to, err := m.space.dial(q.Host)
		if err != nil {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 502 Bad Gateway\r\n\r\n%v", err)
			_ = c.Close()
			return
		}
		if _, err := fmt.Fprint(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
			_, _ = c.Close(), to.Close()
			return
		}
		copied(c, to)
	})
	return nil
}

// serve gives each connection to with, until the listener is closed.
func serve(l net.Listener, with func(net.Conn)) {
	for {
		c, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			go with(c)
		}
	}
}
