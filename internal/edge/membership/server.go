package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

const (
	// headerTime is how long a handshake, and the head of a call, may take.
	headerTime = 10 * time.Second
	// idleTime is how long a connection without a call stays open.
	idleTime  = time.Minute
	maxHeader = 16 << 10
	// maxStreams of one connection: a machine's link is alone on its own.
	maxStreams = 16
	// shutTime is how long open calls have to end when the server stops.
	shutTime = 5 * time.Second
)

// Server is a head's listener for the machines of its cluster, which does not answer yet.
type Server struct {
	listener net.Listener
	server   *http.Server
	options  HeadOptions
	stop     context.CancelFunc
}

// Listen takes an address, host:port. Errors: Conflict for one that is in use, Invalid for one that can't be had.
func Listen(addr string, o HeadOptions) (*Server, error) {
	o = o.filled()
	l, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, errkind.Errorf(errkind.Conflict, "%s is in use: another head may be running there; stop it, or choose another address "+
			"for the cluster's machines", addr)
	}
	if err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "listening for the cluster's machines on %s: %w", addr, err)
	}
	base, stop := context.WithCancel(context.Background())
	streams := http.HTTP2Config{}
	if o.HTTP2 != nil {
		streams = *o.HTTP2
	}
	streams.MaxConcurrentStreams = maxStreams
	protocols := new(http.Protocols)
	protocols.SetHTTP2(true)
	return &Server{
		listener: entrance{l, newDoor(o.Connections, o.Log)}, options: o, stop: stop,
		server: &http.Server{
			Handler: handler(o), Protocols: protocols, TLSConfig: o.Authority.Server(o.Now),
			ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
			BaseContext: func(net.Listener) context.Context { return base }, ConnContext: visiting,
			HTTP2:    &streams,
			ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug), // what strangers send
		},
	}, nil
}

// Addr is the address taken: with the port, where 0 was asked for.
func (s *Server) Addr() string { return s.listener.Addr().String() }

// Close gives the address back without serving. After Serve it does nothing.
func (s *Server) Close() error {
	s.stop()
	if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Serve answers until ctx is done, then lets open calls end for a few seconds. It returns nil after such an end. Links end only with their
// head: close that first.
func (s *Server) Serve(ctx context.Context) error {
	failed := make(chan error, 1)
	go func() { failed <- s.server.ServeTLS(s.listener, "", "") }()
	defer s.stop()
	select {
	case err := <-failed:
		return errors.Join(fmt.Errorf("serving the cluster's machines on %s: %w", s.Addr(), err), s.server.Close())
	case <-ctx.Done():
	}
	s.stop() // calls that wait with a refusal
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutTime)
	defer cancel()
	if err := s.server.Shutdown(last); err != nil {
		s.options.Log.Warn("machines' calls are cut off at the end", "error", err)
		_ = s.server.Close() // what is left is cut off
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the cluster's machines on %s: %w", s.Addr(), err)
	}
	return nil
}
