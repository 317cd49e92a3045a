package session

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
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
	// CallTime is how long a call may take that has nothing to wait for.
	CallTime = 30 * time.Second
	// uploadTime is how long a submission with its files may take.
	uploadTime = 10 * time.Minute
)

// caller is what every call has in common: the token, a time limit for short calls, and errors as one clear message.
type caller struct{ Session *Session }

// WrapUnary is part of connect.Interceptor.
func (c *caller) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		limit := CallTime
		switch req.Spec().Procedure {
		case pb.SluiceServiceSubmitProcedure:
			limit = uploadTime
		case pb.SluiceServiceWaitJobProcedure:
			limit = api.MaxWait + CallTime
		}
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		c.sign(req.Header())
		resp, err := next(ctx, req)
		return resp, c.Session.Explain(err)
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
	if c.Session.token != "" {
		h.Set("Authorization", "Bearer "+c.Session.token)
	}
}

// Explain makes one clear message of a failed call, with the kind that the daemon gave it.
func (a *Session) Explain(err error) error {
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
		return errkind.Errorf(errkind.Denied, "the certificate of %s is not trusted: %w; give its authority with --tls-ca", a.server,
			certificate.Err)
	case errors.As(err, &answer), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return errkind.Errorf(errkind.Unavailable, "%s does not speak TLS: name it as http://%s", a.server,
			strings.TrimPrefix(a.server, "https://"))
	case errors.As(err, &dial) && dial.Op == "dial":
		return errkind.Errorf(errkind.Unavailable, "no daemon answers at %s: start one with `sluice up`, or name another with --server",
			a.server)
	case errors.Is(err, context.DeadlineExceeded):
		return errkind.Errorf(errkind.Unavailable, "the daemon at %s did not answer in time: try again, and look at its log", a.server)
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return errkind.Errorf(errkind.Unavailable, "the daemon at %s has gone away in the middle of its answer: %w", a.server,
			sent.Unwrap())
	}
	return &errkind.Error{Kind: api.Kind(err), Err: fmt.Errorf("talking to the daemon at %s: %w", a.server, sent.Unwrap())}
}

// Request makes a request id.
func Request() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // never fails (package crypto/rand)
	return "cli-" + hex.EncodeToString(b[:])
}
