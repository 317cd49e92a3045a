package api

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
)

// intake receives calls: a call gets one of the places to be served in only once its body has arrived.
type intake struct {
	// most is how long a body may be.
	most func(*http.Request) int64
	// large says whether one that is not small is passed on while it arrives, because it is not to be held twice.
	large func(*http.Request) bool
	// small is where the first smallBody bytes of every body arrive, long where the rest does, huge where that is large.
	small, long, huge *room
}

func newIntake(most func(*http.Request) int64, long int) *intake {
	return &intake{
		most: most, large: func(*http.Request) bool { return false },
		small: &room{most: maxSmallBodies, grace: 500 * time.Millisecond, rate: math.MaxInt64, patient: maxPatient},
		long:  &room{most: long, grace: 500 * time.Millisecond, rate: minRate, patient: 512},
		huge:  &room{most: maxSubmits, grace: 500 * time.Millisecond, rate: minRate, patient: 512},
	}
}

// withBody reads a call's body and passes the call on with it.
func (r refusal) withBody(in *intake, next http.Handler) http.Handler {
	streams := streaming()
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		v := visitOf(req.Context())
		w, answered := paceAnswer(w, req, streams)
		defer answered()
		if req.Body == nil || req.Body == http.NoBody {
			defer v.work()()
			next.ServeHTTP(w, req)
			return
		}
		b := &arriving{from: http.MaxBytesReader(w, req.Body, in.most(req)), conn: http.NewResponseController(w)}
		defer b.end()
		body, whole, err := b.read(req, in.small, smallBody)
		if err == nil && !whole {
			defer v.work()() // it is being worked for: its room sees to it
			if in.large(req) {
				err = b.pass(w, req, in.huge, body, next)
			} else {
				var rest []byte
				rest, _, err = b.read(req, in.long, math.MaxInt64)
				body, whole = append(body, rest...), err == nil
			}
		}
		if err == nil && whole && !b.settle() {
			err = errSlow
		}
		if err != nil {
			w.Header().Set("Connection", "close")
			kind, status := errkind.Of(err), http.StatusServiceUnavailable
			if kind == errkind.Exhausted {
				status = http.StatusTooManyRequests
			}
			if errors.Is(err, errLarge) {
				status, w = http.StatusRequestEntityTooLarge, &largeWriter{ResponseWriter: w}
			}
			r.refuse(w, req, Code(kind), status, err.Error())
			return
		}
		if !whole {
			return // passed on
		}
		defer v.work()()
		req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, req)
	})
}

// arriving is a body that is being sent. Every bodyStep bytes have to come within bodyTime.
type arriving struct {
	*guest
	from io.ReadCloser
	conn *http.ResponseController
	room *room

	mu   sync.Mutex
	step int64
	// over: no deadline is set any more, because it was cut off or, settled, is all there.
	over, settled bool
}

var errSlow = errkind.Errorf(errkind.Unavailable, "the call did not arrive in time: at least %d bytes are wanted every %v, and those "+
	"that come faster come first; try again", bodyStep, bodyTime)

// read reads up to most bytes in a room; whole: there are no more.
func (b *arriving) read(req *http.Request, in *room, most int64) (body []byte, whole bool, err error) {
	if err = b.begin(req, in); err != nil {
		return nil, false, err
	}
	defer in.leave(b.guest)
	body, err = io.ReadAll(io.LimitReader(b, most))
	if err != nil {
		return nil, false, explainBody(err)
	}
	if int64(len(body)) < most {
		return body, true, nil
	}
	return body, false, nil
}

// pass serves a call whose body is read while it arrives.
func (b *arriving) pass(w http.ResponseWriter, req *http.Request, in *room, first []byte, next http.Handler) error {
	if err := b.begin(req, in); err != nil {
		return err
	}
	defer in.leave(b.guest)
	req.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(first), b), b.from}
	next.ServeHTTP(w, req)
	return nil
}

// begin takes a place in a room.
func (b *arriving) begin(req *http.Request, in *room) error {
	b.room, b.guest = in, &guest{cut: b.cutOff}
	b.deadline(time.Time{}) // a guest that waits for a place is not slow
	if err := in.enter(req.Context(), b.guest); err != nil {
		return err
	}
	b.deadline(time.Now().Add(bodyTime))
	return nil
}

// Read is io.Reader: a sender that is fast enough gets more time.
func (b *arriving) Read(p []byte) (int, error) {
	b.awaits()
	n, err := b.from.Read(p)
	b.room.arrived(b.guest, n, err != nil)
	b.mu.Lock()
	b.step += int64(n)
	more := b.step >= bodyStep
	if more {
		b.step = 0
	}
	b.mu.Unlock()
	switch {
	case errors.Is(err, io.EOF):
		if !b.settle() {
			err = errSlow
		}
	case err != nil:
		err = explainBody(err)
	case more:
		b.deadline(time.Now().Add(bodyTime))
	}
	return n, err
}

// deadline sets when reading ends, unless it has been ended. That it may be unsupported does no harm: then, in tests, there
// is no connection, and nobody who could be slow.
func (b *arriving) deadline(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		_ = b.conn.SetReadDeadline(at)
	}
}

// cutOff ends the reading: a faster guest wants the place.
func (b *arriving) cutOff() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.over = true
		_ = b.conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// settle takes the deadline away: from here on the caller waits, and may hang up. It is false if the reading was cut off in
// the last moment: the connection can't be read any more.
func (b *arriving) settle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.over, b.settled = true, true
		_ = b.conn.SetReadDeadline(time.Time{})
	}
	return b.settled
}

// end lets nobody touch the connection any more: it goes on to another call.
func (b *arriving) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

var errLarge = errkind.Errorf(errkind.Exhausted, "the call is too large")

func explainBody(err error) error {
	var large *http.MaxBytesError
	switch {
	case errkind.Of(err) != errkind.Unknown:
		return err
	case errors.As(err, &large):
		return errkind.Errorf(errkind.Exhausted, "%w: it has more than %d bytes", errLarge, large.Limit)
	}
	return errkind.Errorf(errkind.Unavailable, "%w (%w)", errSlow, err)
}

// paceAnswer bounds how long the caller may take to read the answer, but for streams: those may be read as they are looked
// at, and their number is bounded.
func paceAnswer(w http.ResponseWriter, req *http.Request, streams []string) (http.ResponseWriter, func()) {
	conn := http.NewResponseController(w)
	if slices.Contains(streams, req.URL.Path) {
		return w, func() {}
	}
	return &pacedWriter{w, conn}, func() { _ = conn.SetWriteDeadline(time.Now().Add(answerTime)) } // for what is still buffered
}

// pacedWriter gives every part of an answer the time that a slow network needs, and no more.
type pacedWriter struct {
	http.ResponseWriter
	conn *http.ResponseController
}

// Write is part of http.ResponseWriter.
func (p *pacedWriter) Write(data []byte) (int, error) {
	// Unsupported only where there is no connection.
	_ = p.conn.SetWriteDeadline(time.Now().Add(answerTime + time.Duration(len(data))*time.Second/minRate))
	return p.ResponseWriter.Write(data)
}

// Unwrap is for http.ResponseController.
func (p *pacedWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Flush is part of http.Flusher.
func (p *pacedWriter) Flush() { _ = p.conn.Flush() } // as http.Flusher has no error

// streaming are the procedures that answer with a stream.
func streaming() (paths []string) {
	services := pb.File_sluice_v1alpha1_service_proto.Services()
	for i := range services.Len() {
		methods := services.Get(i).Methods()
		for k := range methods.Len() {
			if m := methods.Get(k); m.IsStreamingServer() {
				paths = append(paths, "/"+string(services.Get(i).FullName())+"/"+string(m.Name()))
			}
		}
	}
	return paths
}

// A call that is too large is answered 413, which says that trying again is of no use. Connect has one code, and one status, 429,
// for this and for too many calls. Its code stays: resource_exhausted.

// sized serves unary calls of Connect, whose handlers refuse a body before an interceptor sees the call: then 429 can only mean
// that the message, perhaps when it was unpacked, is too large.
func sized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		l := &largeWriter{ResponseWriter: w}
		next.ServeHTTP(l, req.WithContext(context.WithValue(req.Context(), readKey{}, &l.read)))
	})
}

// readKey is the context key of the note that a call's body was read.
type readKey struct{}

// reading notes that a call's body was read.
func reading(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if read, ok := ctx.Value(readKey{}).(*bool); ok {
			*read = true
		}
		return next(ctx, req)
	}
}

// largeWriter answers 413 in place of 429 until the body was read.
type largeWriter struct {
	http.ResponseWriter
	read bool
}

// WriteHeader is part of http.ResponseWriter.
func (l *largeWriter) WriteHeader(status int) {
	if status == http.StatusTooManyRequests && !l.read {
		status = http.StatusRequestEntityTooLarge
	}
	l.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (l *largeWriter) Unwrap() http.ResponseWriter { return l.ResponseWriter }
