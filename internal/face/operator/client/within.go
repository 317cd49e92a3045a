//go:build kubernetes

package client

import (
	"context"
	"net"
	"net/http"
	"sync"
)

// within is a transport to a handler in the same process, with real HTTP over pipes, so that streaming and cancellation work as elsewhere.
// Both ends live as long as the process.
func within(h http.Handler) http.RoundTripper {
	l := &pipes{come: make(chan net.Conn), closed: make(chan struct{})}
	s := &http.Server{Handler: h} //nolint:gosec // called by this process alone
	var once sync.Once
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		once.Do(func() { go func() { _ = s.Serve(l) }() }) // ends with the process
		here, there := net.Pipe()
		select {
		case l.come <- there:
			return here, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
}

// pipes is a listener for in-process connections.
type pipes struct {
	come   chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept is part of net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.come:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close is part of net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr is part of net.Listener.
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "within", Net: "unix"} }
