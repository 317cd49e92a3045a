package membership

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/node"
	"sluice.dev/sluice/internal/edge/authority"
	"sluice.dev/sluice/internal/edge/fabric/stream"
)

const (
	// maxCall bounds what a caller sends, links excepted, in bytes. A request for a certificate has some 300.
	maxCall = 64 << 10
	// Defaults of HeadOptions. A caller that may not join waits so that it can't ask often.
	callTime, refusedFor = 20 * time.Second, time.Second
	// sayEvery is the time between two lines in the log of what strangers can cause as often as they like.
	sayEvery = 10 * time.Second
)

// HeadOptions of a head's listener.
type HeadOptions struct {
	Authority *authority.Authority
	// Head has the links. Its options Caller and Owns are those of this package.
	Head *stream.Head
	// Settings are those of a machine's node.
	Settings func(machine job.NodeID) Settings
	// Left takes a machine that leaves by itself out of the cluster; nil: only its certificate is revoked.
	Left func(machine job.NodeID) error
	// Beside has other services for machines by their paths; their calls may be long. nil: there are none.
	Beside map[string]http.Handler
	// HTTP2 of the server, whose number of streams is set here; nil: the default.
	HTTP2 *http.HTTP2Config
	// Now is the clock by which tokens and certificates lapse, and which machines go by; nil: the machine's.
	Now func() time.Time
	// Connections is how many may be open, default 2048. A quarter of them is for callers that have not shown a machine's certificate, of
	// which one address may have a quarter.
	Connections int
	// RefusedFor is how long a call to join that is refused waits for its answer, default 1 s. CallTime bounds every call that is no link,
	// from its head to the end of its answer, default 20 s.
	RefusedFor, CallTime time.Duration
	Log                  *slog.Logger
}

func (o HeadOptions) filled() HeadOptions {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Left == nil {
		o.Left = func(machine job.NodeID) error { return o.Authority.Remove(machine, o.Now()) }
	}
	if o.Connections <= 0 {
		o.Connections = connections
	}
	if o.RefusedFor <= 0 {
		o.RefusedFor = refusedFor
	}
	if o.CallTime <= 0 {
		o.CallTime = callTime
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

type certificateKey struct{} // of the certificate that a call's connection has shown

// Caller is for stream.HeadOptions: the machine whose certificate the call's connection has shown. now is the clock by which it lapses;
// nil: the machine's.
func Caller(a *authority.Authority, now func() time.Time) func(context.Context) (job.NodeID, error) {
	if now == nil {
		now = time.Now
	}
	return func(ctx context.Context) (job.NodeID, error) {
		cert, ok := ctx.Value(certificateKey{}).(*x509.Certificate)
		if !ok {
			return "", errkind.Errorf(errkind.Denied, "this call needs the certificate of a machine of the cluster: join by a token first")
		}
		if now().After(cert.NotAfter) { // a connection may outlast the certificate that it was opened with
			return "", errkind.Errorf(errkind.Denied, "the certificate of machine %s has lapsed at %v: call by another connection, with "+
				"the next one", cert.Subject.CommonName, cert.NotAfter)
		}
		return a.Caller(cert)
	}
}

// Owns is for stream.HeadOptions: whether a token of a subjob was made by the node of that machine.
func Owns(a *authority.Authority) func(job.NodeID, job.Token) bool {
	return func(machine job.NodeID, t job.Token) bool {
		return machine != "" && a.Named(node.NumberOf(t)) == machine
	}
}

// calls are those of the service that are no links.
type calls struct {
	HeadOptions
	caller  func(context.Context) (job.NodeID, error)
	refused seldom
}

// handler serves the whole service to callers whose connections came through a door.
func handler(o HeadOptions) http.Handler {
	c := &calls{HeadOptions: o, caller: Caller(o.Authority, o.Now)}
	path, inner := o.Head.Handler(c, connect.WithReadMaxBytes(maxCall), connect.WithRecover(c.recovered))
	mux := http.NewServeMux()
	mux.Handle(path, inner)
	for path, other := range o.Beside {
		mux.Handle(path, other)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := r.Context()
		if shown := r.TLS.PeerCertificates; len(shown) > 0 { // the transport has verified it
			ctx = context.WithValue(ctx, certificateKey{}, shown[0])
			if name, err := c.caller(ctx); err == nil {
				guestOf(ctx).prove(name)
			}
		}
		if strings.HasPrefix(r.URL.Path, path) && r.URL.Path != sluicev1alpha1connect.ClusterServiceLinkProcedure {
			control, end := http.NewResponseController(w), time.Now().Add(o.CallTime)
			_, _ = control.SetReadDeadline(end), control.SetWriteDeadline(end) // an error: the call is over
		}
		mux.ServeHTTP(w, r.WithContext(ctx))
	})
}

// recovered keeps the head alive when a call panics: what it serves is owned elsewhere.
func (c *calls) recovered(_ context.Context, spec connect.Spec, _ http.Header, what any) error {
	c.Log.Error("a machine's call panicked", "procedure", spec.Procedure, "panic", what)
	return answer(fmt.Errorf("panic: %v", what))
}

// Join is part of stream.Calls. A connection may wait for one such call at a time, so that there are as many as strangers' connections.
func (c *calls) Join(ctx context.Context, r *connect.Request[pb.JoinRequest]) (*connect.Response[pb.JoinResponse], error) {
	g := guestOf(ctx)
	if !g.joining.CompareAndSwap(false, true) {
		return nil, answer(errkind.Errorf(errkind.Exhausted, "another call to join by this connection is not answered yet"))
	}
	defer g.joining.Store(false)
	name := job.NodeID(r.Msg.GetName())
	if err := c.Head.Together(r.Msg.GetSpeaks()); err != nil { // before its token is used up
		return nil, answer(err)
	}
	stay, err := stayOf(r.Msg.GetStay(), false, c.Now())
	if err != nil {
		return nil, answer(err)
	}
	joined, err := c.Authority.Join(r.Msg.GetSecret(), name, r.Msg.GetRequest(), c.Now())
	if err == nil {
		err = c.Authority.SetStay(name, stay) // if the head dies before, the machine asks once more
	}
	if err != nil {
		if n, ok := c.refused.note(time.Now()); ok {
			c.Log.Warn("a machine may not join", "machine", fmt.Sprintf("%.63s", name), "from", r.Peer().Addr, "why", err, "others", n)
		}
		wait(ctx, c.RefusedFor)
		return nil, answer(err)
	}
	c.Log.Info("a machine has joined", "machine", string(name), "from", r.Peer().Addr, "number", joined.Number)
	return granted(joined), nil
}

// Renew is part of stream.Calls.
func (c *calls) Renew(ctx context.Context, r *connect.Request[pb.RenewRequest]) (*connect.Response[pb.JoinResponse], error) {
	name, err := c.caller(ctx)
	if err != nil {
		return nil, answer(err)
	}
	joined, err := c.Authority.Renew(name, r.Msg.GetRequest(), c.Now())
	if err != nil {
		c.Log.Warn("a machine's certificate is not renewed", "machine", string(name), "why", err)
		return nil, answer(err)
	}
	return granted(joined), nil
}

func granted(j authority.Joined) *connect.Response[pb.JoinResponse] {
	return connect.NewResponse(&pb.JoinResponse{Certificate: j.Certificate, Root: j.Root, Number: uint32(j.Number)})
}

// Settings is part of stream.Calls.
func (c *calls) Settings(ctx context.Context, r *connect.Request[pb.SettingsRequest]) (*connect.Response[pb.SettingsResponse], error) {
	name, err := c.caller(ctx)
	if err != nil {
		return nil, answer(err)
	}
	if err = c.Head.Together(r.Msg.GetSpeaks()); err != nil {
		return nil, answer(err)
	}
	settings := c.HeadOptions.Settings(name)
	if settings.SeveralUsers && !r.Msg.GetMapsUsers() { // an earlier build does not say whether it does
		c.Log.Warn("a machine may not start", "machine", string(name), "why", stream.ErrOneUser)
		return nil, answer(stream.ErrOneUser)
	}
	if err = c.Authority.Started(name, r.Msg.GetStart(), r.Msg.GetBefore()); err != nil {
		c.Log.Warn("a machine may not start", "machine", string(name), "why", err)
		return nil, answer(err)
	}
	if said := r.Msg.GetStay(); said != nil {
		stay, err := stayOf(said, true, c.Now())
		if err == nil {
			err = c.Authority.SetStay(name, stay)
		}
		if err != nil {
			return nil, answer(err)
		}
	}
	settings.Stay = c.Authority.Stay(name)
	is := settings.toWire()
	is.Now, is.Speaks = timestamppb.New(c.Now()), c.Head.Speaks()
	return connect.NewResponse(is), nil
}

// Leave is part of stream.Calls. A machine that calls again since the answer was lost is refused as one that was removed.
func (c *calls) Leave(ctx context.Context, _ *connect.Request[pb.LeaveRequest]) (*connect.Response[pb.LeaveResponse], error) {
	name, err := c.caller(ctx)
	if err == nil {
		err = c.Left(name)
	}
	if err != nil {
		return nil, answer(err)
	}
	c.Log.Info("a machine has left for good", "machine", string(name))
	return connect.NewResponse(&pb.LeaveResponse{}), nil
}

// wait returns after a time, or false if ctx was done first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// seldom lets a line into the log now and then.
type seldom struct {
	mu   sync.Mutex
	said time.Time
	n    int // since then
}

// note reports whether the line is to be written, and how many were not since the last that was.
func (s *seldom) note(now time.Time) (others int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.said) < sayEvery {
		s.n++
		return 0, false
	}
	others, s.n, s.said = s.n, 0, now
	return others, true
}
