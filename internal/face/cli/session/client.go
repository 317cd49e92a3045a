package session

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/spf13/cobra"

	pb "sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/edge/command"
)

// Client connects to the daemon that --server names, or to the cluster that --context does.
func (a *Session) Client() (pb.SluiceServiceClient, error) {
	if a.Clustered() {
		return a.clusterClient()
	}
	base, err := a.base()
	if err != nil {
		return nil, err
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
			return nil, command.Usage("--tls-ca: %w", err)
		}
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(pem) {
			return nil, command.Usage("--tls-ca %s: holds no certificate in PEM form", a.ca)
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	a.http = &http.Client{Transport: transport}
	return pb.NewSluiceServiceClient(a.http, base.String(), connect.WithInterceptors(&caller{Session: a}),
		connect.WithReadMaxBytes(256<<20)), nil
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
