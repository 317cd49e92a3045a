package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire"
)

// pipe is one stream as either side has it. Send and Receive are called by one goroutine each.
type pipe interface {
	Send(*pb.Frame) error
	Receive() (*pb.Frame, error)
	// Interrupt makes Receive return, Break makes both return whatever the network does: HTTP/2 can not end a stream while its connection
	// takes no bytes, and that is when it must be ended.
	Interrupt()
	Break()
}

// A frame carries messages of about so many bytes: enough to share what a frame costs, and little enough that a beat is not held up.
const fullFrame = 256 << 10

// mostMessage bounds an encoded message, in bytes: it fits into a frame behind others. A larger one is dropped and counted.
const mostMessage = MaxFrame - 2*fullFrame

// session is one link while it is up.
type session struct {
	timing Timing
	build  string
	start  string // of this side, if it is a machine, and whether it maps users
	maps   bool
	head   bool // this side is one
	// now is the clock that beats carry.
	now   func() time.Time
	queue *queue
	// take delivers a message of the other side; it says false if the other side may not say it.
	take func(protocol.Message) bool

	since time.Time
	pulse pulse
	other atomic.Pointer[pb.Hello] // nil before it was heard
	heard chan struct{}            // closed then
	// frames counts what was heard since then; nil: nobody asks.
	frames *atomic.Uint64

	sent, received, forged, out, in atomic.Uint64
	sending                         atomic.Int64 // when the frame that is being sent was begun, in ns since the session began; 0: none is
}

func newSession(t Timing, build string, now func() time.Time, take func(protocol.Message) bool) *session {
	s := &session{timing: t, build: build, now: now, queue: newQueue(), take: take, since: time.Now(), heard: make(chan struct{})}
	s.pulse.frame(s.since)
	return s
}

// errSilent ends a link whose other side says nothing, errStuck one whose other side takes nothing: it can't hear the beats.
var (
	errSilent = errkind.Errorf(errkind.Unavailable, "nothing was heard for too long")
	errStuck  = errkind.Errorf(errkind.Unavailable, "the other side takes nothing for too long")
)

// run carries messages until ctx is done, the pipe fails, or the other side is silent; it returns why. opened is called once the other
// side's hello is accepted; its error ends the link.
func (s *session) run(ctx context.Context, p pipe, opened func() error) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	var both sync.WaitGroup
	both.Go(func() {
		if err := s.write(ctx, p); !errors.Is(err, io.EOF) { // the other side has ended the stream: what it reads says why
			end(err)
		}
	})
	both.Go(func() { end(s.read(ctx, p, opened)) })
	look := time.NewTicker(max(s.timing.Silence/8, time.Millisecond))
	defer look.Stop()
	for ctx.Err() == nil {
		select {
		case now := <-look.C:
			if s.pulse.silent(now) > s.timing.Silence {
				end(errSilent)
			}
			if at := s.sending.Load(); at != 0 && time.Since(s.since)-time.Duration(at) > s.timing.Silence {
				end(errStuck)
			}
		case <-ctx.Done():
		}
	}
	p.Interrupt()
	defer time.AfterFunc(s.timing.Silence/4, p.Break).Stop()
	both.Wait()
	return context.Cause(ctx)
}

// send sends a frame.
func (s *session) send(p pipe, f *pb.Frame) error {
	s.sending.Store(int64(max(1, time.Since(s.since))))
	defer s.sending.Store(0)
	if err := p.Send(f); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// write sends the hello, once it has that of the other side messages as they come, and beats between them.
func (s *session) write(ctx context.Context, p pipe) error {
	speaks := Speaks(s.build)
	hello := &pb.Hello{Oldest: speaks.Oldest, Newest: speaks.Newest, Build: s.build, Start: s.start, MapsUsers: s.maps}
	if err := s.send(p, &pb.Frame{Hello: hello, Beat: s.pulse.next(s.now())}); err != nil {
		return err
	}
	beat := time.NewTicker(s.timing.Beat)
	defer beat.Stop()
	var waiting []protocol.Message
	var ready chan struct{} // nil until it is known which version the other side reads
	heard := s.heard
	for {
		f := &pb.Frame{}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-beat.C:
			f.Beat = s.pulse.next(s.now())
		case <-heard:
			heard, ready = nil, s.queue.ready
		case <-ready:
			waiting = s.queue.take(waiting)
		}
		for f.Beat != nil || len(waiting) > 0 {
			n := s.fill(f, waiting)
			if err := s.send(p, f); err != nil {
				return err
			}
			s.sent.Add(uint64(len(f.Messages)))
			clear(waiting[:n])
			waiting = waiting[n:]
			f = &pb.Frame{}
			select {
			case <-beat.C: // also while there is always a message
				f.Beat = s.pulse.next(s.now())
			default:
			}
		}
		waiting = waiting[:0]
	}
}

// fill takes messages into a frame until it is full, and returns how many it took.
func (s *session) fill(f *pb.Frame, waiting []protocol.Message) (n int) {
	size := 0
	for n < len(waiting) && size < fullFrame {
		m := waiting[n]
		if s.other.Load().GetNewest() < Newest {
			m = before(m)
		}
		encoded := wire.AppendMessage(nil, &m)
		n++
		if len(encoded) > mostMessage {
			s.queue.drop()
			continue
		}
		f.Messages = append(f.Messages, encoded)
		size += len(encoded)
	}
	s.out.Add(uint64(size))
	return n
}

// read takes what the other side says, the hello first, until ctx is done: a machine that was expelled is not heard any more.
func (s *session) read(ctx context.Context, p pipe, opened func() error) error {
	for {
		f, err := p.Receive()
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		now := time.Now()
		s.pulse.frame(now)
		if s.other.Load() == nil {
			if err := s.greet(f.GetHello()); err != nil {
				return err
			}
			if err := opened(); err != nil {
				return err
			}
		}
		if s.frames != nil {
			s.frames.Add(1)
		}
		if b := f.GetBeat(); b != nil {
			s.pulse.hear(s.now(), b)
		}
		for _, encoded := range f.GetMessages() {
			m, err := wire.DecodeMessage(encoded)
			if err != nil {
				return fmt.Errorf("a message of the other side: %w", err)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			s.in.Add(uint64(len(encoded)))
			if !s.take(m) {
				s.forged.Add(1)
				continue
			}
			s.received.Add(1)
		}
	}
}

// greet takes the other side's hello.
func (s *session) greet(h *pb.Hello) error {
	if h == nil {
		return errkind.Errorf(errkind.Invalid, "the link begins without a hello: the other side is no Sluice")
	}
	if err := s.speaks(h); err != nil {
		return err
	}
	s.other.Store(&pb.Hello{Oldest: h.GetOldest(), Newest: h.GetNewest(), Build: plain(h.GetBuild()), Start: h.GetStart(),
		MapsUsers: h.GetMapsUsers()})
	close(s.heard)
	return nil
}

// speaks says whether both sides have a version of links in common.
func (s *session) speaks(h *pb.Hello) error {
	mine, other := Speaks(s.build), &pb.Speaks{Oldest: h.GetOldest(), Newest: h.GetNewest(), Build: h.GetBuild()}
	if s.head {
		return Together(mine, other)
	}
	return Together(other, mine)
}

// link is the session for people.
func (s *session) link() Link {
	best, heard := s.pulse.best()
	return Link{
		Since: s.since, Heard: heard, Build: s.other.Load().GetBuild(), RoundTrip: best.round, Offset: best.offset,
		Sent: s.sent.Load(), Received: s.received.Load(), Dropped: s.queue.lost(), Forged: s.forged.Load(),
		BytesSent: s.out.Load(), BytesReceived: s.in.Load(),
	}
}

// refused reports whether the other side will not have this one, so that asking again soon is no use.
func refused(err error) bool {
	return errors.Is(err, errRefused) || errkind.Of(err) == errkind.Unsupported || errkind.Of(err) == errkind.Invalid
}
