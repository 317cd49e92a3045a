package head

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// Options of a machine's side.
type Options struct {
	// URL of the head, https://host:port.
	URL string
	// Client calls it by HTTP/2. Its transport says who the head must be and who this machine is; set it up with ClientHTTP2.
	Client *http.Client
	Timing Timing
}

// Store is a machine's side: the store that its head keeps. What it reads it holds against the digest itself. A call whose connection
// breaks is made again for a while; then its error is of kind Unavailable, and what a Put has sent is not sent again by the next one.
type Store struct {
	url    string
	http   *http.Client
	timing Timing
	client sluicev1alpha1connect.StoreServiceClient
}

var _ store.Store = (*Store)(nil)

// Open returns the store of a head, which is not called yet. Errors: Invalid.
func Open(o Options) (*Store, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return nil, errkind.Errorf(errkind.Invalid, "%q is no address of a head: want https://host:port", o.URL)
	}
	if o.Client == nil {
		return nil, errkind.Errorf(errkind.Invalid, "the store at %s: a client with this machine's certificate is needed", o.URL)
	}
	client := sluicev1alpha1connect.NewStoreServiceClient(o.Client, o.URL, connect.WithGRPC(), connect.WithReadMaxBytes(MaxFrame),
		connect.WithAcceptCompression("gzip", nil, nil))
	return &Store{url: o.URL, http: o.Client, timing: o.Timing.filled(), client: client}, nil
}

// String implements store.Store.
func (s *Store) String() string { return Name + ":" + s.url }

// Close implements store.Store.
func (s *Store) Close() error {
	s.http.CloseIdleConnections()
	return nil
}

// errSilent ends a call whose head says nothing.
var errSilent = errkind.Errorf(errkind.Unavailable, "nothing was heard for too long")

// repeat makes a call until it succeeds, its error is the store's, or its tries are used up. Those of a call that got further begin anew.
func (s *Store) repeat(ctx context.Context, what string, once func(ctx context.Context) (further bool, err error)) error {
	what = fmt.Sprintf("store %s: %s", s, what)
	pause := s.timing.PauseFirst
	for left := s.timing.Tries; ; {
		if ctx.Err() != nil {
			return errkind.Errorf(errkind.Unavailable, "%s: given up: %w", what, ctx.Err())
		}
		further, err := once(ctx)
		if err == nil {
			return nil
		}
		if own, ok := errors.AsType[*localError](err); ok {
			return own.error
		}
		if further {
			left, pause = s.timing.Tries, s.timing.PauseFirst
		}
		err, again := heard(ctx, what, err)
		if left--; !again || left <= 0 {
			return err
		}
		// One that is stuck is not idle, and ClientHTTP2 has it closed.
		s.http.CloseIdleConnections()
		rest := time.NewTimer(pause/2 + rand.N(pause/2+1)) // not all machines at once
		select {
		case <-rest.C:
		case <-ctx.Done():
			rest.Stop()
		}
		pause = min(2*pause, s.timing.PauseLast)
	}
}

// localError is an error of this side, which is not the head's and is not tried again.
type localError struct{ error }

// Unwrap says what it is.
func (l *localError) Unwrap() error { return l.error }

// ask makes a call that is no stream.
func ask[Q, A any](ctx context.Context, s *Store, what string, q *Q,
	do func(context.Context, *connect.Request[Q]) (*connect.Response[A], error)) (answer *A, err error) {
	err = s.repeat(ctx, what, func(ctx context.Context) (further bool, failed error) {
		ctx, cancel := context.WithTimeoutCause(ctx, s.timing.Answer, errSilent)
		defer cancel()
		answer, failed = within(ctx, func() (*A, error) {
			r, wrong := do(ctx, connect.NewRequest(q))
			if wrong != nil {
				return nil, wrong
			}
			return r.Msg, nil
		})
		return false, failed
	})
	return answer, err
}

// within is what f returns, or why ctx is done. Then f is left alone: while a connection takes no bytes, a call on it may not even end with
// its context, but when the connection is closed.
func within[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	over := make(chan outcome, 1)
	go func() {
		v, err := f()
		over <- outcome{v, err}
	}()
	select {
	case o := <-over:
		return o.v, o.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// listen makes a call that is answered by frames, and calls each with them. It is not made again once something was heard: each might be
// called twice with the same.
func listen[Q, A any](ctx context.Context, s *Store, what string, q *Q,
	do func(context.Context, *connect.Request[Q]) (*connect.ServerStreamForClient[A], error), each func(*A) (bool, error)) error {
	return s.repeat(ctx, what, func(ctx context.Context) (bool, error) {
		in := receiving(ctx, s.timing.Silence, q, do)
		defer in.close()
		for some := false; ; {
			f, err := in.next()
			if errors.Is(err, io.EOF) {
				return false, nil
			}
			if err != nil {
				if final, again := heard(ctx, fmt.Sprintf("store %s: %s", s, what), err); again && some {
					err = &localError{final}
				}
				return false, err
			}
			said, err := each(f)
			if err != nil {
				return false, &localError{err}
			}
			some = some || said
		}
	})
}

// frames are those of an answer.
type frames[A any] struct {
	ctx    context.Context //nolint:containedctx // of the call
	end    context.CancelCauseFunc
	silent *watch // counts while a frame is waited for
	ready  chan *A
	over   chan struct{} // closed after the last frame; then err is why there are no more, nil at the end of the answer
	err    error
}

// receiving makes a call that is answered by frames. The caller closes it.
func receiving[Q, A any](ctx context.Context, silence time.Duration, q *Q,
	do func(context.Context, *connect.Request[Q]) (*connect.ServerStreamForClient[A], error)) *frames[A] {
	f := &frames[A]{ready: make(chan *A), over: make(chan struct{})}
	f.ctx, f.end = context.WithCancelCause(ctx)
	f.silent = newWatch(silence, func() { f.end(errSilent) })
	f.silent.stop()
	go func() { // beside the caller, for the reason that within has
		defer close(f.over)
		stream, err := do(f.ctx, connect.NewRequest(q))
		if err != nil {
			f.err = err
			return
		}
		for stream.Receive() {
			select {
			case f.ready <- stream.Msg():
			case <-f.ctx.Done():
			}
		}
		f.err = stream.Err()
		_ = stream.Close() // an error: it is over
	}()
	return f
}

// next is the next frame; io.EOF: the answer is whole.
func (f *frames[A]) next() (*A, error) {
	f.silent.start()
	defer f.silent.stop()
	select {
	case a := <-f.ready:
		return a, nil
	case <-f.over:
		if f.err != nil {
			return nil, cause(f.ctx, f.err)
		}
		return nil, io.EOF
	case <-f.ctx.Done():
		return nil, context.Cause(f.ctx)
	}
}

// close ends the call.
func (f *frames[A]) close() { f.end(nil) }

// Stat implements store.Store.
func (s *Store) Stat(ctx context.Context, d store.Digest) (o store.Object, err error) {
	if err = d.Check(); err != nil {
		return o, err
	}
	p, err := ask(ctx, s, "look for object "+string(d), &pb.StatRequest{Digest: string(d)}, s.client.Stat)
	if err != nil {
		return o, err
	}
	return fromObject(p)
}

// Renew implements store.Store.
func (s *Store) Renew(ctx context.Context, d store.Digest) error {
	if err := d.Check(); err != nil {
		return err
	}
	_, err := ask(ctx, s, "renew object "+string(d), &pb.RenewObjectRequest{Digest: string(d)}, s.client.Renew)
	return err
}

// Remove implements store.Store. Of a call that was made again it may say that it did not remove what the first has removed.
func (s *Store) Remove(ctx context.Context, d store.Digest, before time.Time) (bool, error) {
	if err := d.Check(); err != nil {
		return false, err
	}
	q := &pb.RemoveRequest{Digest: string(d), Before: timestamppb.New(before)}
	a, err := ask(ctx, s, "remove object "+string(d), q, s.client.Remove)
	return a.GetRemoved(), err
}

// List implements store.Store.
func (s *Store) List(ctx context.Context, each func(store.Object) error) error {
	return listen(ctx, s, "list objects", &pb.ListRequest{}, s.client.List, func(f *pb.ListFrame) (bool, error) {
		for _, p := range f.GetObjects() {
			o, err := fromObject(p)
			if err == nil {
				err = each(o)
			}
			if err != nil {
				return true, err
			}
		}
		return len(f.GetObjects()) > 0, nil
	})
}

// SetName implements store.Store.
func (s *Store) SetName(ctx context.Context, name string, refs store.Refs) error {
	_, err := refs.Encode()
	if err == nil {
		err = store.CheckName(name)
	}
	if err == nil {
		_, err = ask(ctx, s, "set the name "+name, &pb.SetNameRequest{Name: name, Refs: toRefs(refs)}, s.client.SetName)
	}
	return err
}

// ReadName implements store.Store.
func (s *Store) ReadName(ctx context.Context, name string) (n store.Named, err error) {
	if err = store.CheckName(name); err != nil {
		return n, err
	}
	p, err := ask(ctx, s, "read the name "+name, &pb.ReadNameRequest{Name: name}, s.client.ReadName)
	if err != nil {
		return n, err
	}
	return fromNamed(p)
}

// Names implements store.Store.
func (s *Store) Names(ctx context.Context, folder string, each func(store.Named) error) error {
	if folder != "" {
		if err := store.CheckName(folder); err != nil {
			return err
		}
	}
	return listen(ctx, s, "list names", &pb.NamesRequest{Folder: folder}, s.client.Names, func(f *pb.NamesFrame) (bool, error) {
		for _, p := range f.GetNames() {
			n, err := fromNamed(p)
			if err == nil {
				err = each(n)
			}
			if err != nil {
				return true, err
			}
		}
		return len(f.GetNames()) > 0, nil
	})
}

// Unname implements store.Store.
func (s *Store) Unname(ctx context.Context, name string) error {
	if err := store.CheckName(name); err != nil {
		return err
	}
	_, err := ask(ctx, s, "remove the name "+name, &pb.UnnameRequest{Name: name}, s.client.Unname)
	return err
}

// Sweep implements store.Store.
func (s *Store) Sweep(ctx context.Context, before time.Time) (n int, err error) {
	done := false
	err = listen(ctx, s, "sweep uploads", &pb.SweepRequest{Before: timestamppb.New(before)}, s.client.Sweep,
		func(f *pb.SweepFrame) (bool, error) {
			n, done = int(f.GetSwept()), f.GetDone()
			return f.GetDone(), nil
		})
	if err == nil && !done {
		err = errkind.Errorf(errkind.Unsupported, "store %s: sweep uploads: no answer: upgrade the older side", s)
	}
	return n, err
}

// Now implements store.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	a, err := ask(ctx, s, "read the clock", &pb.NowRequest{}, s.client.Now)
	if err != nil {
		return time.Time{}, err
	}
	return a.GetNow().AsTime(), nil
}
