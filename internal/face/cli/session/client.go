package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api"
	"sluice.dev/sluice/internal/host/datadir"
)

// Client connects to the daemon that --server names, or to the cluster that --context does.
func (a *Session) Client() (pb.SluiceServiceClient, error) {
	if a.Clustered() {
		return a.clusterClient()
	}
	base, err := a.dial()
	if err != nil {
		return nil, err
	}
	return pb.NewSluiceServiceClient(a.http, base, a.calls()...), nil
}

// Nodes connects to the daemon that --server names, for what is asked of its machines.
func (a *Session) Nodes() (pb.NodeServiceClient, error) {
	if a.Clustered() {
		return nil, command.Usage("in a Kubernetes cluster kubectl is asked for nodes")
	}
	base, err := a.dial()
	if err != nil {
		return nil, err
	}
	return pb.NewNodeServiceClient(a.http, base, a.calls()...), nil
}

// People connects to the daemon that --server names, for what is asked of its users.
func (a *Session) People() (pb.UserServiceClient, error) {
	if a.Clustered() {
		return nil, command.Usage("in a Kubernetes cluster its own roles say who may what: kubectl auth whoami")
	}
	base, err := a.dial()
	if err != nil {
		return nil, err
	}
	return pb.NewUserServiceClient(a.http, base, a.calls()...), nil
}

// Providers connects to the daemon that --server names, for what is asked of those that lend it machines.
func (a *Session) Providers() (pb.ProviderServiceClient, error) {
	if a.Clustered() {
		return nil, command.Usage("in a Kubernetes cluster nobody lends machines to an operator")
	}
	base, err := a.dial()
	if err != nil {
		return nil, err
	}
	return pb.NewProviderServiceClient(a.http, base, a.calls()...), nil
}

// Server is the daemon's address, as --server names it.
func (a *Session) Server() string { return a.server }

// calls are how all calls are made.
func (a *Session) calls() []connect.ClientOption {
	return []connect.ClientOption{connect.WithInterceptors(&caller{Session: a}), connect.WithReadMaxBytes(256 << 20)}
}

// dial makes the client that reaches the daemon, and returns its URL.
func (a *Session) dial() (string, error) {
	base, err := a.base()
	if err != nil {
		return "", err
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
		TLSHandshakeTimeout: 10 * time.Second, ForceAttemptHTTP2: true,
	}
	if path, ok := a.socket(); ok {
		transport.Proxy = nil
		transport.DialContext = patiently(a.Options.Patience, dialSocket(path))
	} else if here(base.Hostname()) {
		transport.DialContext = patiently(a.Options.Patience, transport.DialContext)
	}
	if a.ca != "" {
		pem, err := os.ReadFile(a.ca)
		if err != nil {
			return "", command.Usage("--tls-ca: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return "", command.Usage("--tls-ca %s: holds no certificate in PEM form", a.ca)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	a.http = &http.Client{Transport: transport}
	return base.String(), nil
}

// base is the daemon's URL. Without a scheme, this machine is called plainly and any other with TLS. A token is never
// sent in the clear to another machine.
func (a *Session) base() (*url.URL, error) {
	a.Secret()
	if path, ok := a.socket(); ok {
		if path == "" {
			return nil, command.Usage("--server %q names no socket: want unix:PATH", a.server)
		}
		if a.token == "" {
			a.token = tokenBeside(path)
		}
		return &url.URL{Scheme: "http", Host: "localhost"}, nil
	}
	raw := a.server
	if !strings.Contains(raw, "://") {
		host, _, err := net.SplitHostPort(raw)
		if err != nil {
			return nil, command.Usage("--server %q is no address: want host:port such as %s", a.server, DefaultServer)
		}
		if raw = "https://" + a.server; here(host) {
			raw = "http://" + a.server
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, command.Usage("--server %q is no address: want host:port such as %s, or https://host:port", a.server, DefaultServer)
	}
	if u.Scheme == "http" && a.token != "" && !here(u.Hostname()) {
		return nil, command.Usage("--server %s: a token is not sent in the clear to another machine; use https://", a.server)
	}
	return u, nil
}

// here reports whether a host is this machine.
func here(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Client calls the daemon.
type Client = pb.SluiceServiceClient

// Calling is what a command does that calls the daemon.
func (a *Session) Calling(do func(ctx context.Context, c Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := a.Client()
		if err != nil {
			return err
		}
		return do(cmd.Context(), c, args)
	}
}

// socket is the path of the unix socket that --server names, if it names one.
func (a *Session) socket() (path string, ok bool) { return strings.CutPrefix(a.server, "unix:") }

func dialSocket(path string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		at, free, err := api.SocketAddress(path)
		if err != nil {
			return nil, &net.OpError{Op: "dial", Net: "unix", Err: err}
		}
		defer free()
		return (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", at)
	}
}

// tokenBeside is the token of the daemon whose socket lies at path, if it can be read: root, who is not the daemon's user,
// needs it. It must be a token, in a file of the socket's owner, or a link there could have us send any file. It is
// never looked for by itself for an address: any user can listen there, and would be told it.
func tokenBeside(path string) string {
	socket, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	f, err := os.OpenFile(filepath.Join(filepath.Dir(path), datadir.TokenFile), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || !ownedAlike(info, socket) {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(f, 65))
	if secret, bad := hex.DecodeString(string(text)); err != nil || bad != nil || len(secret) != 32 {
		return ""
	}
	return string(text)
}

func ownedAlike(a, b os.FileInfo) bool {
	x, ok := a.Sys().(*syscall.Stat_t)
	y, also := b.Sys().(*syscall.Stat_t)
	return ok && also && x.Uid == y.Uid
}
