package head

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync/atomic"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// Put implements store.Store. Without a digest the source is read twice.
func (s *Store) Put(ctx context.Context, want store.Digest, src store.Source) (o store.Object, err error) {
	if want == "" {
		want, err = store.Sum(ctx, src)
	} else {
		err = want.Check()
	}
	if err != nil {
		return o, err
	}
	u := &upload{digest: want, src: src, id: rand.Text()}
	err = s.repeat(ctx, "put object "+string(want), func(ctx context.Context) (further bool, err error) {
		before := u.best.Load()
		o, err = s.attempt(ctx, u)
		return u.best.Load() > before, err
	})
	if err != nil {
		return store.Object{}, err
	}
	return o, nil
}

// upload is one Put, over all its attempts.
type upload struct {
	digest store.Digest
	src    store.Source
	id     string
	best   atomic.Int64 // how far the head ever was, in bytes
}

// attempt is one call of an upload.
type attempt struct {
	*upload
	stream *connect.BidiStreamForClient[pb.PutFrame, pb.PutAnswer]
	silent *watch
	// wanted has the head's last request, if it was not taken up yet.
	wanted chan *pb.PutAnswer
	// over is closed when nothing more is heard; then stored or err is set.
	over   chan struct{}
	stored *pb.StoredObject
	err    error
}

// errElsewhere stops what is being sent: the head wants other bytes. errUnsent stops it because the stream is over.
var (
	errElsewhere = errors.New("the head wants other bytes")
	errUnsent    = errors.New("the head takes nothing more")
)

// attempt sends an object from where the head wants it on. What it has begun ends when ctx is done or the connection is closed; it waits
// for none of that (see within).
func (s *Store) attempt(ctx context.Context, u *upload) (o store.Object, err error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	a := &attempt{upload: u, stream: s.client.Put(ctx), wanted: make(chan *pb.PutAnswer, 1), over: make(chan struct{}),
		silent: newWatch(s.timing.Silence, func() { end(errSilent) })}
	defer a.silent.stop()
	context.AfterFunc(ctx, func() { _ = a.stream.CloseRequest() }) // so that a Send returns; an error: it is over
	begun := a.stream.Send(&pb.PutFrame{Begin: &pb.PutBegin{Digest: string(u.digest), Size: u.src.Size(), Upload: u.id}})
	go a.hear()
	for begun == nil {
		select {
		case w := <-a.wanted:
			err = store.Copy(ctx, &outgoing{attempt: a, request: w.GetRequest(), at: w.GetHas()}, u.src, w.GetHas(), u.src.Size())
			if err != nil && ctx.Err() == nil && !errors.Is(err, errElsewhere) && !errors.Is(err, errUnsent) {
				return o, a.unread(ctx, err)
			}
			continue
		case <-a.over:
		case <-ctx.Done():
		}
		break
	}
	select {
	case <-a.over:
	case <-ctx.Done():
		return o, context.Cause(ctx)
	}
	if a.stored == nil {
		return o, cause(ctx, a.err)
	}
	if o, err = fromObject(a.stored); err == nil && (o.Digest != u.digest || o.Size != u.src.Size()) {
		err = errkind.Errorf(errkind.Unsupported, "the head has stored %s of %d bytes instead: upgrade the older side", o.Digest, o.Size)
	}
	if err != nil {
		err = &localError{err}
	}
	return o, err
}

// unread ends an upload whose source can't be read. What was sent is kept: the head has taken it by the time it ends the stream.
func (a *attempt) unread(ctx context.Context, err error) error {
	_ = a.stream.CloseRequest() // an error: it is over
	select {
	case <-a.over:
	case <-ctx.Done():
	}
	return &localError{err}
}

// hear takes the head's answers.
func (a *attempt) hear() {
	defer func() {
		close(a.over)
		_ = a.stream.CloseResponse() // an error: it is over
	}()
	for {
		f, err := a.stream.Receive()
		if errors.Is(err, io.EOF) {
			err = errkind.Errorf(errkind.Unavailable, "the head has ended the upload without a word")
		}
		if err != nil {
			a.err = err
			return
		}
		a.silent.start()
		a.best.Store(max(a.best.Load(), f.GetHas()))
		if f.GetStored() != nil {
			a.stored = f.GetStored()
			return
		}
		if f.GetRequest() != 0 {
			select {
			case <-a.wanted: // it was not taken up, and is out of date
			default:
			}
			a.wanted <- f
		}
	}
}

// outgoing sends what is written to it, until the head wants something else.
type outgoing struct {
	*attempt
	request uint32
	at      int64
}

// Write implements io.Writer.
func (g *outgoing) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if len(g.wanted) > 0 {
			return n, errElsewhere
		}
		part := p[n:min(len(p), n+piece)]
		if err = g.stream.Send(&pb.PutFrame{Request: g.request, Offset: g.at, Data: part}); err != nil {
			return n, errUnsent
		}
		n, g.at = n+len(part), g.at+int64(len(part))
	}
	return n, nil
}
