package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/durationpb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
)

const (
	// waitFor is how long one call waits for an event; the daemon allows no more.
	waitFor = 30 * time.Second
	// answerTime is how much longer an answer may take.
	answerTime = 10 * time.Second
	// After a failure the next try comes after a pause that doubles from the first to the last, by chance a little less.
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// Options of an agent.
type Options struct {
	// Addr of the daemon: host:port of this machine, or a URL. Default: SLUICE_SERVER, else 127.0.0.1:7117.
	Addr string
	// Job and its Key. Needed.
	Job, Key string
	// Told hears what became of variants and of what was won, in order; nil: nobody does.
	Told func(Notice)
	// Log takes what goes wrong and is tried again, and what the daemon did not take; nil drops it.
	Log *slog.Logger
	// Client carries the calls; nil: one that keeps its connection and gives up on a daemon that is silent for 40 s. Give one
	// for a certificate authority of your own.
	Client *http.Client
}

// Serve answers the calls to a job's rounds with what propose returns until the job is over; then it returns nil. An empty
// answer says that the job is not interested, or declines. Propose is called for one round after another; one that takes longer than the
// round waits (200 ms unless the daemon is set otherwise) loses the round. When the daemon can not be reached, or was started
// again, Serve tries again without end. Errors: ErrKey, ErrSuperseded, ErrRefused, or that of ctx.
func Serve(ctx context.Context, o Options, propose func(Call) []Variant) error {
	s := &server{Options: o, propose: propose}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	if s.Client == nil {
		t := http.DefaultTransport.(*http.Transport).Clone() // the standard library's own is of this type
		t.ResponseHeaderTimeout = waitFor + answerTime
		defer t.CloseIdleConnections()
		s.Client = &http.Client{Transport: t}
	}
	addr := cmp.Or(o.Addr, os.Getenv("SLUICE_SERVER"), "127.0.0.1:7117")
	if !strings.Contains(addr, "://") {
		addr = "http://" + addr
	}
	s.api = sluicev1alpha1connect.NewSluiceServiceClient(s.Client, addr, connect.WithAcceptCompression("gzip", nil, nil)) // a round hurries
	pause := firstPause
	for {
		over, err := s.turn(ctx)
		switch {
		case over:
			return nil
		case err == nil:
			pause = firstPause
			continue
		case ctx.Err() != nil:
			return ctx.Err()
		}
		if final := finally(err); final != nil {
			return final
		}
		if connect.CodeOf(err) == connect.CodeNotFound { // the daemon knows this session no more
			s.session = 0
		}
		s.Log.Warn("the daemon could not be asked; trying again", "job", s.Job, "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause/2 + rand.N(pause/2)):
		}
		pause = min(2*pause, lastPause)
	}
}

// server is an agent at work.
type server struct {
	Options
	propose func(Call) []Variant
	api     sluicev1alpha1connect.SluiceServiceClient
	session uint64
	answers []*pb.AgentAnswer
}

// turn says the answers there are, and hears and works off what is new.
func (s *server) turn(ctx context.Context) (over bool, err error) {
	m := &pb.NegotiateRequest{Job: s.Job, Session: s.session, Answers: s.answers, Wait: durationpb.New(waitFor)}
	if s.session == 0 {
		m.Key, m.Answers = s.Key, nil
	}
	s.answers = nil // if they did not arrive it is too late for them
	r, err := s.api.Negotiate(ctx, connect.NewRequest(m))
	if err != nil {
		return false, err
	}
	s.session = r.Msg.Session
	for _, note := range r.Msg.Notes {
		s.Log.Info("not taken", "job", s.Job, "note", note)
	}
	if n := r.Msg.Dropped; n > 0 {
		s.Log.Warn("too slow: calls and notices were dropped", "job", s.Job, "dropped", n)
	}
	for _, e := range r.Msg.Events {
		if c := e.GetCall(); c != nil {
			call := callOf(c)
			s.answers = append(s.answers, answerOf(&call, s.propose(call)))
		}
		if s.Told == nil {
			continue
		}
		for _, n := range e.GetTold().GetNotices() {
			s.Told(noticeOf(e.GetTold().Round, n))
		}
	}
	return r.Msg.Over, nil
}

// finally is the error to end with, nil for one after which to try again.
func finally(err error) error {
	var why error
	switch connect.CodeOf(err) {
	case connect.CodePermissionDenied, connect.CodeUnauthenticated:
		why = ErrKey
	case connect.CodeAborted:
		why = ErrSuperseded
	case connect.CodeInvalidArgument, connect.CodeUnimplemented:
		why = ErrRefused
	default:
		return nil
	}
	var said *connect.Error
	if errors.As(err, &said) {
		return fmt.Errorf("%w: %s", why, said.Message())
	}
	return fmt.Errorf("%w: %w", why, err)
}
