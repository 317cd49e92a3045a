package head

import (
	"context"
	"errors"
	"io"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// Open implements store.Store. The context is that of reading, too.
func (s *Store) Open(ctx context.Context, d store.Digest) (io.ReadCloser, error) {
	if err := d.Check(); err != nil {
		return nil, err
	}
	r := &reader{store: s, ctx: ctx, digest: d}
	if err := r.fill(); err != nil && !errors.Is(err, io.EOF) {
		_ = r.Close() // it never fails
		return nil, err
	}
	return store.Verified(r, d, s.String()), nil
}

// reader reads an object, and goes on where it was when a connection breaks.
type reader struct {
	store  *Store
	ctx    context.Context //nolint:containedctx // of reading
	digest store.Digest

	in     *frames[pb.OpenFrame] // nil: no call is under way
	opened bool                  // the object was there
	rest   []byte                // received and not read yet
	at     int64                 // how much was received
	over   error                 // after rest; io.EOF: all was received
}

// Read implements io.Reader.
func (r *reader) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for len(r.rest) == 0 {
		if r.over == nil {
			r.over = r.fill()
		}
		if r.over != nil && len(r.rest) == 0 {
			return 0, r.over
		}
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// fill receives the next bytes, or learns that the object is there, which is what Open asks for.
func (r *reader) fill() error {
	return r.eof(r.store.repeat(r.ctx, "read object "+string(r.digest), func(ctx context.Context) (bool, error) {
		err := r.receive(ctx)
		if err != nil {
			r.end()
		}
		return false, err
	}))
}

// errWhole marks the end of an object on its way through repeat, which would take io.EOF for a broken connection.
var errWhole = errors.New("all was received")

func (r *reader) eof(err error) error {
	if errors.Is(err, errWhole) {
		return io.EOF
	}
	return err
}

// receive receives one frame that says something.
func (r *reader) receive(ctx context.Context) error {
	if r.in == nil {
		q := &pb.OpenRequest{Digest: string(r.digest), Offset: r.at}
		r.in = receiving(ctx, r.store.timing.Silence, q, r.store.client.Open)
	}
	for {
		f, err := r.in.next()
		switch {
		case errors.Is(err, io.EOF):
			return &localError{errWhole}
		case err != nil:
			return err
		case len(f.GetData()) > 0:
			r.rest = f.GetData()
			r.at += int64(len(r.rest))
			return nil
		case f.GetOpened() && !r.opened:
			r.opened = true
			return nil
		}
	}
}

// end ends the call that is under way.
func (r *reader) end() {
	if r.in != nil {
		r.in.close()
		r.in = nil
	}
}

// errClosed is the error of reading what was closed.
var errClosed = errkind.Errorf(errkind.Invalid, "the object was closed by its reader")

// Close implements io.Closer.
func (r *reader) Close() error {
	r.end()
	r.rest, r.over = nil, errClosed
	return nil
}
