package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/users"
)

const (
	// MinToken is the shortest token that is taken where the daemon can be reached from elsewhere, in bytes.
	MinToken = 16
	// How long open calls have to end when the server stops.
	shutdownTime = 5 * time.Second
)

// Options of a server.
type Options struct {
	// Service answers. Needed.
	Service Service
	// Machines of the cluster whose head the service is; nil: it is none.
	Machines Machines
	// Providers lend it machines; nil: none do.
	Providers Providers
	// Containers: the service starts subjobs from images, so that a job's counts.
	Containers bool
	// Listen is host:port. Any host that is not this machine alone needs TLS and a token.
	Listen string
	// Socket is the path of a unix socket to listen on as well, in a directory of the caller's own; empty for none.
	Socket string
	// CertFile and KeyFile are PEM files for TLS; both or none.
	CertFile, KeyFile string
	// Token, if set, is what every call but /healthz and /readyz must carry, unless it carries a user's. Without it this process's own user
	// is served, and callers that show OwnerToken; OwnerTokenFile is where that can be read, for people. All these are admins.
	Token, OwnerToken, OwnerTokenFile string
	// Users may call by their tokens; nil: nobody else may. Self is the name of this process's own user.
	Users *users.Users
	Self  string
	// Metrics serves /metrics, Health /healthz, Ready /readyz, Page everything that is nothing else. Each may be nil.
	Metrics, Health, Ready, Page http.Handler
	// Log takes what goes wrong inside a call; nil drops it.
	Log *slog.Logger
	// Now is the clock that reservations are looked at by; nil: the machine's.
	Now func() time.Time
}

// check refuses what would be an open door.
func (o *Options) check() error {
	var errs []error
	add := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if o.Service == nil {
		add("api: Options.Service is not set")
	}
	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		add("--listen %q is no address: want host:port such as 127.0.0.1:7117", o.Listen)
	}
	secure := o.CertFile != "" && o.KeyFile != ""
	if (o.CertFile == "") != (o.KeyFile == "") {
		add("TLS needs both a certificate and its key: give --tls-cert and --tls-key")
	}
	if err == nil && !loopback(host) {
		if !secure {
			add("--listen %s can be reached from other machines, and Sluice runs what it is sent: give --tls-cert and --tls-key, or "+
				"listen on 127.0.0.1", o.Listen)
		}
		if several := o.Users != nil && !o.Users.Single(); len(o.Token) < MinToken && !(several && o.Token == "") {
			add("--listen %s can be reached from other machines: give a --token of at least %d characters, or listen on 127.0.0.1",
				o.Listen, MinToken)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return errkind.Errorf(errkind.Invalid, "%w", err)
	}
	return nil
}

// Server is a listening server that does not answer yet.
type Server struct {
	// listeners: the address, and the socket if there is one.
	listeners []net.Listener
	door      *door
	server    *http.Server
	options   Options
	stop      context.CancelCauseFunc
}

// Listen checks the options and takes the address. Errors: Invalid for options that would be an open door, Conflict for
// an address in use, and what reading the TLS files gives.
func Listen(o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	var config *tls.Config
	if o.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile)
		if err != nil {
			return nil, errkind.Errorf(errkind.Invalid, "TLS certificate %s with key %s: %w", o.CertFile, o.KeyFile, err)
		}
		config = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	}
	l, err := net.Listen("tcp", o.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, errkind.Errorf(errkind.Conflict, "%s is in use: another daemon may be running there; stop it, or choose another "+
			"address with --listen", o.Listen)
	}
	if err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "listening on %s: %w", o.Listen, err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	listeners := []net.Listener{l}
	if o.Socket != "" {
		socket, err := listenSocket(o.Socket)
		if err != nil {
			return nil, errors.Join(err, l.Close())
		}
		listeners = append(listeners, socket)
	}
	base, stop := context.WithCancelCause(context.Background())
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true) // gRPC without TLS, on this machine
	s := &Server{listeners: listeners, door: newDoor(o.Log), options: o, stop: stop}
	s.server = &http.Server{
		Handler: Handler(o), Protocols: protocols, TLSConfig: config,
		ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return base }, ConnContext: visiting,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog: slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
	}
	return s, nil
}

// Addr is the address taken: with the port, where 0 was asked for.
func (s *Server) Addr() string { return s.listeners[0].Addr().String() }

// Close gives the address back without serving.
func (s *Server) Close() error {
	s.stop(errStopping)
	errs := []error{s.door.close()}
	for _, l := range s.listeners {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// Serve answers calls until ctx is done, then lets open ones end for a few seconds; long ones are told that the daemon
// stops. It returns nil after such an end.
func (s *Server) Serve(ctx context.Context) error {
	failed := make(chan error, len(s.listeners))
	for _, l := range s.listeners {
		go func() {
			in := entrance{l, s.door}
			if s.options.CertFile != "" && l.Addr().Network() != "unix" {
				failed <- s.server.ServeTLS(in, "", "")
			} else {
				failed <- s.server.Serve(in)
			}
		}()
	}
	defer func() { _ = s.door.close() }() // only asked, never written to
	select {
	case err := <-failed:
		s.stop(errStopping)
		return errors.Join(fmt.Errorf("serving %s: %w", s.options.Listen, err), s.server.Close())
	case <-ctx.Done():
	}
	s.stop(errStopping)
	last, cancel := context.WithTimeout(context.Background(), shutdownTime)
	defer cancel()
	if err := s.server.Shutdown(last); err != nil {
		s.options.Log.Warn("calls cut off at the end", "error", err)
		_ = s.server.Close() // what is left is cut off
	}
	var errs []error
	for range s.listeners {
		if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
			errs = append(errs, fmt.Errorf("serving %s: %w", s.options.Listen, err))
		}
	}
	return errors.Join(errs...)
}

// large says whether a call is a submission with a work directory that is not small. Only a body that says its length and is
// not compressed is known to be.
func large(req *http.Request) bool {
	plain := req.Header.Get("Content-Encoding") == "" && req.Header.Get("Grpc-Encoding") == ""
	small := plain && 0 <= req.ContentLength && req.ContentLength <= maxCallBytes
	return req.URL.Path == pb.SluiceServiceSubmitProcedure && !small
}

// longest is how long a call's body may be.
func longest(req *http.Request) int64 {
	if req.URL.Path == pb.SluiceServiceSubmitProcedure {
		return maxSubmitBytes
	}
	return maxCallBytes
}

// Handler is the API without a listener: what Serve serves. It does not know the user at the other end, and without a token takes
// everybody for the daemon's own: its caller sees to that.
func Handler(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	r := refusal{connect.NewErrorWriter()}
	if o.Now == nil {
		o.Now = time.Now
	}
	h := &handler{service: o.Service, machines: o.Machines, containers: o.Containers, now: o.Now}
	shared := append(codecs(), connect.WithInterceptors(connect.UnaryInterceptorFunc(reading), logging{o.Log}, rights{}),
		connect.WithRecover(recovered(o.Log)))
	all := connect.WithHandlerOptions(shared...)
	path, small := pb.NewSluiceServiceHandler(h, all, connect.WithReadMaxBytes(maxCallBytes))
	_, huge := pb.NewSluiceServiceHandler(h, all, connect.WithReadMaxBytes(maxSubmitBytes))
	// A round hurries, and what it says is short: compressing it takes longer than all the rest.
	_, quick := pb.NewSluiceServiceHandler(h, all, connect.WithReadMaxBytes(maxCallBytes), connect.WithCompressMinBytes(smallBody))

	mux := http.NewServeMux()
	mux.Handle(path, sized(small))
	mux.Handle(pb.SluiceServiceSubmitProcedure, sized(huge))
	for _, path := range streaming() { // each holds files open
		mux.Handle(path, r.places(max(minStreams, maxOpen()/streamShare), "logs and outputs", small))
	}
	nodes, machines := pb.NewNodeServiceHandler(&nodeHandler{o.Service, o.Machines}, all, connect.WithReadMaxBytes(maxCallBytes))
	mux.Handle(nodes, sized(machines))
	people, who := pb.NewUserServiceHandler(&userHandler{o.Service, o.Users, o.Log, o.Now}, all, connect.WithReadMaxBytes(maxCallBytes))
	mux.Handle(people, sized(who))
	lent, lenders := pb.NewProviderServiceHandler(&providerHandler{o.Providers}, all, connect.WithReadMaxBytes(maxCallBytes))
	mux.Handle(lent, sized(lenders))
	if o.Metrics != nil {
		mux.Handle("GET /metrics", o.Metrics)
	}
	if o.Page != nil {
		mux.Handle("/", o.Page)
	}
	calls := newIntake(longest, maxLongBodies)
	calls.large = large
	guarded := r.withBody(calls, r.shared(r.bounded(r.sameSite(mux))))
	agents := r.forAgents(r.sameSite(sized(quick)))
	if host, _, err := net.SplitHostPort(o.Listen); o.Token == "" && (err != nil || loopback(host)) {
		agents = r.onlyHere(agents)
	}
	outer := http.NewServeMux()
	outer.Handle("/", r.identified(&o, guarded))
	outer.Handle(pb.SluiceServiceNegotiateProcedure, agents) // with a job's key instead of the token
	if o.Health != nil {
		outer.Handle("GET /healthz", o.Health) // probes have no token, and it reveals nothing of anybody's jobs
	}
	if o.Ready != nil {
		outer.Handle("GET /readyz", o.Ready) // likewise
	}
	return outer
}

// forAgents bounds the calls of agents apart from those of people, so that no number of agents, and nothing that one of them
// does, keeps people from being answered. An agent has a job's key and need not know the daemon's token, nor be its user. How
// often it may call is counted where its session is known; here it is how many at once, how long, and how slowly.
func (r refusal) forAgents(next http.Handler) http.Handler {
	in := newIntake(func(*http.Request) int64 { return MaxAgentBytes }, maxAgentBodies)
	return r.withBody(in, r.places(MaxAgentCalls, "calls of agents", next))
}

// maxSocketPath is how long a path a unix socket's address holds, in bytes.
const maxSocketPath = 103

// listenSocket listens on a unix socket that only its owner may connect to. The caller owns the directory, so that one that
// is there was left by an earlier daemon.
func listenSocket(path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the socket of an earlier daemon: %w", err)
	}
	at, free, err := SocketAddress(path)
	if err != nil {
		return nil, err
	}
	defer free()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: at, Net: "unix"})
	if err != nil {
		return nil, errkind.Errorf(errkind.Invalid, "listening on %s: %w", path, err)
	}
	l.SetUnlinkOnClose(false) // it may have another name here
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, l.Close(), os.Remove(path))
	}
	return socketListener{l, path}, nil
}

// socketListener removes its socket when it is closed.
type socketListener struct {
	net.Listener
	path string
}

func (l socketListener) Close() error {
	err := os.Remove(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.Listener.Close())
}

// SocketAddress is a name for a unix socket's path that is short enough for its address: through a descriptor of its
// directory, where the path itself is too long. It holds until free is called.
func SocketAddress(path string) (at string, free func(), err error) {
	if len(path) <= maxSocketPath {
		return path, func() {}, nil
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	at = fmt.Sprintf("/proc/self/fd/%d/%s", dir.Fd(), filepath.Base(path))
	return at, func() { _ = dir.Close() }, nil // only opened to be named
}
