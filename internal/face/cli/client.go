package cli

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/command"
	"sluice.dev/sluice/internal/face/api"
)

const (
	// defaultServer is where `sluice up` listens.
	defaultServer = "127.0.0.1:7117"
	// callTime is how long a call may take that has nothing to wait for.
	callTime = 30 * time.Second
	// uploadTime is how long a submission with its files may take.
	uploadTime = 10 * time.Minute
)

// client connects to the daemon that --server names, or to the cluster that --context does.
func (a *app) client() (pb.SluiceServiceClient, error) {
	if a.clustered() {
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
		transport.DialContext = patiently(a.deps.Patience, dialSocket(path))
	} else if here(base.Hostname()) {
		transport.DialContext = patiently(a.deps.Patience, transport.DialContext)
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
	return pb.NewSluiceServiceClient(a.http, base.String(), connect.WithInterceptors(&caller{app: a}), connect.WithReadMaxBytes(256<<20)), nil
}

// base is the daemon's URL. Without a scheme, this machine is called plainly and any other with TLS. A token is never
// sent in the clear to another machine.
func (a *app) base() (*url.URL, error) {
	if a.token == "" {
		a.token = a.Getenv("SLUICE_TOKEN")
	}
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
			return nil, command.Usage("--server %q is no address: want host:port such as %s", a.server, defaultServer)
		}
		if raw = "https://" + a.server; here(host) {
			raw = "http://" + a.server
		}
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, command.Usage("--server %q is no address: want host:port such as %s, or https://host:port", a.server, defaultServer)
	}
	if u.Scheme == "http" && a.token != "" && !here(u.Hostname()) {
		return nil, command.Usage("--server %s: a token is not sent in the clear to another machine; use https://", a.server)
	}
	return u, nil
}

// here says whether a host is this machine.
func here(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// caller is what every call has in common: the token, a time limit for short calls, and errors as one clear message.
type caller struct{ app *app }

// WrapUnary is part of connect.Interceptor.
func (c *caller) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		limit := callTime
		switch req.Spec().Procedure {
		case pb.SluiceServiceSubmitProcedure:
			limit = uploadTime
		case pb.SluiceServiceWaitJobProcedure:
			limit = api.MaxWait + callTime
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		c.sign(req.Header())
		resp, err := next(ctx, req)
		return resp, c.app.explain(err)
	}
}

// WrapStreamingClient is part of connect.Interceptor.
func (c *caller) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		c.sign(conn.RequestHeader())
		return conn
	}
}

// WrapStreamingHandler is part of connect.Interceptor; a client has none.
func (c *caller) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

func (c *caller) sign(h http.Header) {
	if c.app.token != "" {
		h.Set("Authorization", "Bearer "+c.app.token)
	}
}

// explain makes one clear message of a failed call, with the kind that the daemon gave it.
func (a *app) explain(err error) error {
	var sent *connect.Error
	if err == nil || !errors.As(err, &sent) {
		return err
	}
	if errors.Is(err, context.Canceled) {
		return &command.Failure{Code: command.ExitFailed, Err: errors.New("interrupted")}
	}
	if connect.IsWireError(err) {
		return &errkind.Error{Kind: api.Kind(err), Err: errors.New(sent.Message())}
	}
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	var answer tls.RecordHeaderError
	switch {
	case errors.As(err, &certificate):
		return errkind.Errorf(errkind.Denied, "the certificate of %s is not trusted: %w; give its authority with --tls-ca", a.server, certificate.Err)
	case errors.As(err, &answer), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return errkind.Errorf(errkind.Unavailable, "%s does not speak TLS: name it as http://%s", a.server, strings.TrimPrefix(a.server, "https://"))
	case errors.As(err, &dial) && dial.Op == "dial":
		return errkind.Errorf(errkind.Unavailable, "no daemon answers at %s: start one with `sluice up`, or name another with --server", a.server)
	case errors.Is(err, context.DeadlineExceeded):
		return errkind.Errorf(errkind.Unavailable, "the daemon at %s did not answer in time: try again, and look at its log", a.server)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errkind.Errorf(errkind.Unavailable, "the daemon at %s has gone away in the middle of its answer: %w", a.server, sent.Unwrap())
	}
	return &errkind.Error{Kind: api.Kind(err), Err: fmt.Errorf("talking to the daemon at %s: %w", a.server, sent.Unwrap())}
}

// request makes a request id.
func request() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails (package crypto/rand)
	return "cli-" + hex.EncodeToString(b[:])
}
