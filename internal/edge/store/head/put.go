package head

import (
	"context"
	"crypto/rand"
	"errors"
	"io"

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
		before := u.best
		o, err = s.attempt(ctx, u)
		return u.best > before, err
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
	best   int64 // how far the head ever was, in bytes
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

// attempt sends an object from where the head wants it on.
func (s *Store) attempt(ctx context.Context, u *upload) (o store.Object, err error) {
	ctx, end := context.WithCancelCause(ctx)
	a := &attempt{upload: u, stream: s.client.Put(ctx), wanted: make(chan *pb.PutAnswer, 1), over: make(chan struct{}),
		silent: newWatch(s.timing.Silence, func() { end(errSilent) })}
	begun := a.stream.Send(&pb.PutFrame{Begin: &pb.PutBegin{Digest: string(u.digest), Size: u.src.Size(), Upload: u.id}})
	go a.hear()
	defer func() {
		_ = a.stream.CloseRequest() // an error of either says that the stream is over
		end(nil)
		<-a.over
		a.silent.stop()
		_ = a.stream.CloseResponse()
	}()
	if begun != nil {
		<-a.over
		return o, cause(ctx, a.err)
	}
	for {
		select {
		case w := <-a.wanted:
			err = store.Copy(ctx, &outgoing{attempt: a, request: w.GetRequest(), at: w.GetHas()}, u.src, w.GetHas(), u.src.Size())
			if err == nil || ctx.Err() != nil || errors.Is(err, errElsewhere) || errors.Is(err, errUnsent) {
				continue
			}
			// The source can't be read. What was sent of it is kept: the head has taken it by the time it ends the stream.
			_ = a.stream.CloseRequest()
			<-a.over
			return o, &localError{err}
		case <-a.over:
			if a.stored == nil {
				return o, cause(ctx, a.err)
			}
			if o, err = fromObject(a.stored); err == nil && (o.Digest != u.digest || o.Size != u.src.Size()) {
				err = errkind.Errorf(errkind.Unsupported, "the head has stored %s of %d bytes instead: upgrade the older side", o.Digest,
					o.Size)
			}
			if err != nil {
				err = &localError{err}
			}
			return o, err
		}
	}
}

// hear takes the head's answers.
func (a *attempt) hear() {
	defer close(a.over)
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
		a.best = max(a.best, f.GetHas())
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
