package head

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/edge/store"
)

// ServiceOptions of a head's side.
type ServiceOptions struct {
	// Store that is served. The service does not close it.
	Store store.Store
	// Caller is the machine that the transport has authenticated as the caller, or an error that says why there is none.
	Caller func(context.Context) (job.NodeID, error)
	// May decides whether a call is allowed (see Machines), by an error of kind Denied if not. It is asked for every call.
	May func(context.Context, Call) error
	// Limits of one machine.
	Limits Limits
	Timing Timing
}

// Service is the head's side. Safe for concurrent use.
type Service struct {
	o     ServiceOptions
	usage *usage
	ctx   context.Context //nolint:containedctx // it says that the head is stopping
	stop  context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	open   sync.WaitGroup // calls
}

// NewService serves a store. Errors: Invalid, where an option is missing.
func NewService(o ServiceOptions) (*Service, error) {
	if o.Store == nil || o.Caller == nil || o.May == nil {
		return nil, errkind.Errorf(errkind.Invalid, "serve a store: Store, Caller and May are all needed: without May everybody could "+
			"remove everything")
	}
	o.Timing = o.Timing.filled()
	s := &Service{o: o, usage: newUsage(o.Limits)}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	return s, nil
}

// Close ends the calls under way, and waits for them. Machines call again. It comes before the server's own Close.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop(errStopping)
	s.open.Wait()
}

type controlKey struct{} // of the way to end what a call waits for

// Handler serves machines, at the path returned first. It needs HTTP/2; set the server up with ServerHTTP2.
func (s *Service) Handler(options ...connect.HandlerOption) (path string, handler http.Handler) {
	path, inner := sluicev1alpha1connect.NewStoreServiceHandler(s, append(slices.Clone(options), connect.WithReadMaxBytes(MaxFrame),
		connect.WithCompression("gzip", nil, nil))...) // a machine could have 1 KiB become 1 MiB, and every answer would be compressed
	return path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor < 2 {
			http.Error(w, "the store needs HTTP/2", http.StatusHTTPVersionNotSupported)
			return
		}
		inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), controlKey{}, http.NewResponseController(w))))
	})
}

// call is one call of a machine.
type call struct {
	service *Service
	ctx     context.Context //nolint:containedctx // of the call
	end     context.CancelCauseFunc
	machine job.NodeID
	leave   func()

	mu      sync.Mutex
	control *http.ResponseController // nil: the call is over, and the server's again
}

// enter begins a call: it knows who calls, and counts. The caller leaves it.
func (s *Service) enter(ctx context.Context) (*call, error) {
	machine, err := s.o.Caller(ctx)
	if err != nil {
		return nil, verdict(err)
	}
	control, ok := ctx.Value(controlKey{}).(*http.ResponseController)
	if !ok {
		return nil, verdict(errors.New("the store is served without its Handler"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, passing(errStopping)
	}
	if err = s.usage.enter(machine); err != nil {
		return nil, passing(err)
	}
	s.open.Add(1)
	c := &call{service: s, machine: machine, control: control}
	c.ctx, c.end = context.WithCancelCause(ctx)
	stopping := context.AfterFunc(s.ctx, func() { c.end(errStopping) })
	c.leave = func() {
		stopping()
		c.mu.Lock()
		c.control = nil
		c.mu.Unlock()
		c.end(nil)
		s.usage.leave(machine)
		s.open.Done()
	}
	return c, nil
}

// may asks whether the machine may do something. What it names is a name and a digest by then.
func (c *call) may(about Call) error {
	about.Machine = c.machine
	if about.Digest != "" || about.objects() {
		if err := about.Digest.Check(); err != nil {
			return err
		}
	}
	if about.Name != "" || about.named() {
		if err := store.CheckName(about.Name); err != nil {
			return err
		}
	}
	if about.Operation == SetName {
		if _, err := about.Refs.Encode(); err != nil {
			return err
		}
	}
	return c.service.o.May(c.ctx, about)
}

// objects reports whether a call is about one object.
func (c Call) objects() bool {
	return slices.Contains([]Operation{PutObject, OpenObject, StatObject, RenewObject, RemoveObject}, c.Operation)
}

// named reports whether a call is about one name.
func (c Call) named() bool {
	return slices.Contains([]Operation{SetName, ReadName, RemoveName}, c.Operation)
}

// unary answers a call that is no stream.
func unary[T any](ctx context.Context, s *Service, about Call, do func(ctx context.Context) (*T, error)) (*connect.Response[T], error) {
	c, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer c.leave()
	if err = c.may(about); err != nil {
		return nil, verdict(err)
	}
	answer, err := do(c.ctx)
	if err != nil {
		return nil, c.answer(err)
	}
	return connect.NewResponse(answer), nil
}

// answer is an error of a call as the machine gets it: the store's word, unless the call was ended for another reason.
func (c *call) answer(err error) error {
	if c.ctx.Err() != nil {
		return passing(context.Cause(c.ctx))
	}
	return verdict(err)
}

// Stat is part of the API's service, as the others are.
func (s *Service) Stat(ctx context.Context, r *connect.Request[pb.StatRequest]) (*connect.Response[pb.StoredObject], error) {
	d := store.Digest(r.Msg.GetDigest())
	return unary(ctx, s, Call{Operation: StatObject, Digest: d}, func(ctx context.Context) (*pb.StoredObject, error) {
		o, err := s.o.Store.Stat(ctx, d)
		return toObject(o), err
	})
}

// Renew see Stat.
func (s *Service) Renew(ctx context.Context, r *connect.Request[pb.RenewObjectRequest]) (*connect.Response[pb.RenewObjectResponse], error) {
	d := store.Digest(r.Msg.GetDigest())
	return unary(ctx, s, Call{Operation: RenewObject, Digest: d}, func(ctx context.Context) (*pb.RenewObjectResponse, error) {
		return &pb.RenewObjectResponse{}, s.o.Store.Renew(ctx, d)
	})
}

// Remove see Stat.
func (s *Service) Remove(ctx context.Context, r *connect.Request[pb.RemoveRequest]) (*connect.Response[pb.RemoveResponse], error) {
	d := store.Digest(r.Msg.GetDigest())
	return unary(ctx, s, Call{Operation: RemoveObject, Digest: d}, func(ctx context.Context) (*pb.RemoveResponse, error) {
		before, err := instant(r.Msg.GetBefore())
		if err != nil {
			return nil, err
		}
		removed, err := s.o.Store.Remove(ctx, d, before)
		return &pb.RemoveResponse{Removed: removed}, err
	})
}

// SetName see Stat.
func (s *Service) SetName(ctx context.Context, r *connect.Request[pb.SetNameRequest]) (*connect.Response[pb.SetNameResponse], error) {
	about := Call{Operation: SetName, Name: r.Msg.GetName(), Refs: fromRefs(r.Msg.GetRefs())}
	return unary(ctx, s, about, func(ctx context.Context) (*pb.SetNameResponse, error) {
		return &pb.SetNameResponse{}, s.o.Store.SetName(ctx, about.Name, about.Refs)
	})
}

// ReadName see Stat.
func (s *Service) ReadName(ctx context.Context, r *connect.Request[pb.ReadNameRequest]) (*connect.Response[pb.StoredName], error) {
	name := r.Msg.GetName()
	return unary(ctx, s, Call{Operation: ReadName, Name: name}, func(ctx context.Context) (*pb.StoredName, error) {
		n, err := s.o.Store.ReadName(ctx, name)
		return toNamed(n), err
	})
}

// Unname see Stat.
func (s *Service) Unname(ctx context.Context, r *connect.Request[pb.UnnameRequest]) (*connect.Response[pb.UnnameResponse], error) {
	name := r.Msg.GetName()
	return unary(ctx, s, Call{Operation: RemoveName, Name: name}, func(ctx context.Context) (*pb.UnnameResponse, error) {
		return &pb.UnnameResponse{}, s.o.Store.Unname(ctx, name)
	})
}

// Now see Stat.
func (s *Service) Now(ctx context.Context, _ *connect.Request[pb.NowRequest]) (*connect.Response[pb.NowResponse], error) {
	return unary(ctx, s, Call{Operation: ReadClock}, func(ctx context.Context) (*pb.NowResponse, error) {
		now, err := s.o.Store.Now(ctx)
		return &pb.NowResponse{Now: timestamppb.New(now)}, err
	})
}

// streamed answers a call by frames. do puts them; idle makes one that says nothing.
func streamed[F any](ctx context.Context, s *Service, about Call, send func(*F) error, idle func() *F,
	do func(ctx context.Context, out *outlet[F]) error) error {
	c, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer c.leave()
	if err = c.may(about); err != nil {
		return verdict(err)
	}
	defer context.AfterFunc(c.ctx, func() { c.cut() })()
	out := newOutlet(c.service.o.Timing.Beat, newWatch(c.service.o.Timing.Stall, func() { c.end(errStalled) }), send, idle)
	err = do(c.ctx, out)
	out.close()
	if err != nil {
		return c.answer(err)
	}
	return nil
}

// graceBeats is how long an answer may take whose call has been ended, in beats.
const graceBeats = 5

// cut has the call's receives return now, and its sends once its answer had time to be sent.
func (c *call) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.control == nil {
		return
	}
	// An error says that the stream is over already.
	_ = c.control.SetReadDeadline(time.Unix(1, 0))
	_ = c.control.SetWriteDeadline(time.Now().Add(graceBeats * c.service.o.Timing.Beat))
}

// Open see Stat.
func (s *Service) Open(ctx context.Context, r *connect.Request[pb.OpenRequest], stream *connect.ServerStream[pb.OpenFrame]) error {
	d, from := store.Digest(r.Msg.GetDigest()), r.Msg.GetOffset()
	return streamed(ctx, s, Call{Operation: OpenObject, Digest: d}, stream.Send, func() *pb.OpenFrame { return &pb.OpenFrame{} },
		func(ctx context.Context, out *outlet[pb.OpenFrame]) error {
			in, err := s.o.Store.Open(ctx, d)
			if err != nil {
				return err
			}
			defer func() { _ = in.Close() }()
			if err = out.put(&pb.OpenFrame{Opened: true}); err != nil {
				return err
			}
			return give(ctx, in, from, out)
		})
}

// give sends an object from an offset on. What lies before that is read too, since the reader holds all bytes against the digest.
func give(ctx context.Context, in io.Reader, from int64, out *outlet[pb.OpenFrame]) error {
	buf := make([]byte, piece)
	for at := int64(0); ; {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := io.ReadFull(in, buf)
		if skip := min(int64(n), max(0, from-at)); skip < int64(n) {
			if failed := out.put(&pb.OpenFrame{Data: buf[skip:n]}); failed != nil {
				return failed
			}
		}
		at += int64(n)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			if from < 0 || from > at {
				return errkind.Errorf(errkind.Invalid, "read from byte %d of an object of %d bytes", from, at)
			}
			return nil
		case err != nil:
			return err
		}
	}
}

// atOnce is how many objects or names a frame lists.
const atOnce = 256

// List see Stat.
func (s *Service) List(ctx context.Context, _ *connect.Request[pb.ListRequest], stream *connect.ServerStream[pb.ListFrame]) error {
	return streamed(ctx, s, Call{Operation: ListObjects}, stream.Send, func() *pb.ListFrame { return &pb.ListFrame{} },
		func(ctx context.Context, out *outlet[pb.ListFrame]) error {
			f := &pb.ListFrame{}
			err := s.o.Store.List(ctx, func(o store.Object) error {
				if f.Objects = append(f.Objects, toObject(o)); len(f.Objects) < atOnce {
					return nil
				}
				full := f
				f = &pb.ListFrame{}
				return out.put(full)
			})
			if err != nil {
				return err
			}
			return out.put(f)
		})
}

// Names see Stat.
func (s *Service) Names(ctx context.Context, r *connect.Request[pb.NamesRequest], stream *connect.ServerStream[pb.NamesFrame]) error {
	folder := r.Msg.GetFolder()
	return streamed(ctx, s, Call{Operation: ListNames, Name: folder}, stream.Send, func() *pb.NamesFrame { return &pb.NamesFrame{} },
		func(ctx context.Context, out *outlet[pb.NamesFrame]) error {
			f, refs := &pb.NamesFrame{}, 0
			err := s.o.Store.Names(ctx, folder, func(n store.Named) error {
				f.Names = append(f.Names, toNamed(n))
				if refs += 1 + len(n.Refs); refs < atOnce {
					return nil
				}
				full := f
				f, refs = &pb.NamesFrame{}, 0
				return out.put(full)
			})
			if err != nil {
				return err
			}
			return out.put(f)
		})
}

// Sweep see Stat.
func (s *Service) Sweep(ctx context.Context, r *connect.Request[pb.SweepRequest], stream *connect.ServerStream[pb.SweepFrame]) error {
	return streamed(ctx, s, Call{Operation: SweepUploads}, stream.Send, func() *pb.SweepFrame { return &pb.SweepFrame{} },
		func(ctx context.Context, out *outlet[pb.SweepFrame]) error {
			before, err := instant(r.Msg.GetBefore())
			if err != nil {
				return err
			}
			n, err := s.o.Store.Sweep(ctx, before)
			if err != nil {
				return err
			}
			return out.put(&pb.SweepFrame{Done: true, Swept: int64(n)})
		})
}

// Put see Stat.
func (s *Service) Put(ctx context.Context, stream *connect.BidiStream[pb.PutFrame, pb.PutAnswer]) error {
	c, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer c.leave()
	defer context.AfterFunc(c.ctx, func() { c.cut() })()
	stall := func() *watch { return newWatch(c.service.o.Timing.Stall, func() { c.end(errStalled) }) }
	first := stall()
	f, err := stream.Receive()
	first.stop()
	if err != nil {
		return passing(fmt.Errorf("an upload without a beginning: %w", cause(c.ctx, err)))
	}
	begin := f.GetBegin()
	d, size := store.Digest(begin.GetDigest()), begin.GetSize()
	err = c.may(Call{Operation: PutObject, Digest: d, Size: size})
	if err == nil && size < 0 {
		err = errkind.Errorf(errkind.Invalid, "an object of %d bytes", size)
	}
	if err != nil {
		return verdict(err)
	}
	in := &incoming{size: size, receive: stream.Receive, stall: stall()}
	in.stall.stop()
	out := newOutlet(c.service.o.Timing.Beat, stall(), stream.Send, func() *pb.PutAnswer { return &pb.PutAnswer{Has: in.has.Load()} })
	in.ask = func(request uint32, from int64) error { return out.put(&pb.PutAnswer{Request: request, Has: from}) }
	o, err := c.upload(d, begin.GetUpload(), in)
	if err == nil {
		err = out.put(&pb.PutAnswer{Has: size, Stored: toObject(o)})
	}
	out.close()
	if err != nil {
		return c.ended(in, err)
	}
	return nil
}

// upload has the store take an object, once it is its turn.
func (c *call) upload(d store.Digest, upload string, in *incoming) (o store.Object, err error) {
	over, err := c.service.usage.queue(c.ctx, c.machine, d, upload, c.end)
	if err != nil {
		return o, err
	}
	defer over()
	if _, err = c.service.o.Store.Stat(c.ctx, d); err != nil { // what is there takes no more room
		if err = c.service.usage.reserve(c.machine, d, in.size, time.Now()); err != nil {
			return o, err
		}
		// The store keeps what is left of an upload that broke off, and nothing of one that it has refused.
		defer func() {
			gone := err == nil || in.failed() == nil && (errkind.Of(err) == errkind.Invalid || errkind.Of(err) == errkind.Exhausted)
			c.service.usage.release(c.machine, d, gone, time.Now())
		}()
	}
	return c.service.o.Store.Put(c.ctx, d, in)
}

// ended is the error of an upload as the machine gets it. What kept its bytes from coming is no word of the store.
func (c *call) ended(in *incoming, err error) error {
	failed := in.failed()
	switch {
	case c.ctx.Err() != nil:
		return passing(context.Cause(c.ctx))
	case failed == nil:
		return verdict(err)
	case errkind.Of(failed) == errkind.Invalid:
		return verdict(failed)
	default:
		return passing(failed)
	}
}

// cause is what has ended a call's context, or the error itself.
func cause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
