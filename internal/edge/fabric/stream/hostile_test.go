package stream

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire"
)

// A caller that does not keep to what links are gets an answer that says so, and nothing of it is delivered.
func TestACallerThatIsNoMachine(t *testing.T) {
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	if err := h.Attach(zone, func(m protocol.Message) { t.Errorf("delivered: %+v", m) }); err != nil {
		t.Fatal(err)
	}
	client := sluicev1alpha1connect.NewClusterServiceClient(&http.Client{Transport: &http.Transport{
		TLSClientConfig: a.config("n"), ForceAttemptHTTP2: true}}, "https://"+h.addr, connect.WithGRPC())
	hello := &pb.Hello{Oldest: Oldest, Newest: Newest, Build: "b"}
	for _, c := range []struct {
		name   string
		frames []*pb.Frame
		code   connect.Code
		says   string
	}{
		{"no hello", []*pb.Frame{{Messages: [][]byte{{1}}}}, connect.CodeInvalidArgument, "without a hello"},
		{"a build of the future", []*pb.Frame{{Hello: &pb.Hello{Oldest: Newest + 1, Newest: Newest + 2, Build: "v9"}}},
			connect.CodeFailedPrecondition, "upgrade the head first"},
		{"a build of the past", []*pb.Frame{{Hello: &pb.Hello{Build: "v0"}}}, connect.CodeFailedPrecondition, "upgrade the machine"},
		{"damaged messages", []*pb.Frame{{Hello: hello, Messages: [][]byte{{wire.MessageVersion, 0xff}}}}, connect.CodeUnavailable,
			"a message of the other side"},
		{"silence", nil, connect.CodeUnavailable, "nothing was heard"},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			s := client.Link(ctx)
			if err := s.Send(nil); err != nil { // the headers
				t.Fatal(err)
			}
			for _, f := range c.frames {
				if err := s.Send(f); err != nil {
					t.Fatal(err)
				}
			}
			for {
				if _, err := s.Receive(); err != nil {
					if connect.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
						t.Errorf("got %v, want code %v and %q", err, c.code, c.says)
					}
					return
				}
			}
		})
	}
}

// What is said to a machine that takes nothing is bounded, and what finds no room is counted.
func TestAQueueIsBounded(t *testing.T) {
	q := newQueue()
	for i := range room + 7 {
		if got := q.put(protocol.Message{Session: uint64(i)}); got != (i < room) {
			t.Fatalf("message %d: room %v", i, got)
		}
	}
	if q.lost() != 7 {
		t.Errorf("%d found no room, want 7", q.lost())
	}
	list := q.take(nil)
	if len(list) != room || list[0].Session != 0 || list[room-1].Session != room-1 {
		t.Errorf("%d messages wait, from %d", len(list), list[0].Session)
	}
	if !q.put(protocol.Message{}) || len(q.take(nil)) != 1 {
		t.Error("there is no room after all were taken")
	}
}

// Of a head and a machine of another version both say which is to be upgraded, and the machine does not ask again soon.
func TestVersions(t *testing.T) {
	for _, c := range []struct {
		oldest, newest uint32
		atHead, at     string // what this side says as a head, and as a machine
	}{
		{Oldest, Newest, "", ""},
		{Newest, Newest + 1, "", ""},
		{Newest + 1, Newest + 1, "upgrade the head first", "upgrade the machine"},
		{0, Oldest - 1, "upgrade the machine", "upgrade the head first"},
	} {
		for _, head := range []bool{true, false} {
			says := c.at
			if head {
				says = c.atHead
			}
			s := newSession(Timing{}.filled(), "v5", time.Now, nil)
			s.head = head
			err := s.speaks(&pb.Hello{Oldest: c.oldest, Newest: c.newest, Build: "v7"})
			switch {
			case says == "" && err != nil:
				t.Errorf("versions %d to %d: %v", c.oldest, c.newest, err)
			case says != "" && (errkind.Of(err) != errkind.Unsupported || !strings.Contains(err.Error(), says) || !refused(err) ||
				!strings.Contains(err.Error(), `"v7"`)):
				t.Errorf("versions %d to %d, a head %v: got %v, want %q", c.oldest, c.newest, head, err, says)
			}
		}
	}
}

// A build of a release later, as tests of upgrades make it, speaks its own version and the one before.
func TestALaterBuild(t *testing.T) {
	defer func(was string) { later = was }(later)
	now := Speaks("")
	if now.Oldest != Oldest || now.Newest != Newest || Ahead(now, now) != "" {
		t.Errorf("this build speaks %v", now)
	}
	later = "1"
	next := Speaks("")
	later = "2"
	after := Speaks("")
	if next.Newest != Newest+1 || next.Oldest != Newest || after.Oldest != next.Newest || after.Newest != Newest+2 {
		t.Errorf("later ones speak %v and %v", next, after)
	}
	if Together(now, next) != nil || Together(next, now) != nil || Together(next, after) != nil || Together(now, after) == nil ||
		Together(after, now) == nil {
		t.Error("each goes with the next, and not with the one after that")
	}
	if !strings.Contains(Ahead(now, next), "upgrade the head first") || Ahead(next, now) != "" {
		t.Errorf("of a machine that is ahead: %q", Ahead(now, next))
	}
}

// The defaults keep a link alive: several beats fit into the silence that ends it.
func TestTiming(t *testing.T) {
	if d := (Timing{}).filled(); d.Beat*3 > d.Silence || d.RetryFirst > d.RetryLast {
		t.Errorf("the defaults are %+v", d)
	}
	if own := (Timing{Beat: time.Minute}).filled(); own.Beat != time.Minute {
		t.Errorf("a setting was lost: %+v", own)
	}
}

// The text by which a machine names its build goes into logs and tables: it is short, without control characters, and nothing else of its
// hello is kept.
func TestABuildIsShortAndPlain(t *testing.T) {
	s := newSession(Timing{}.filled(), "", time.Now, nil)
	strange := &pb.Hello{Oldest: Oldest, Newest: Newest, Build: "v1\x1b[2J\n" + strings.Repeat("x", 1<<20)}
	strange.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 99, protowire.BytesType), make([]byte, 1<<20)))
	if err := s.greet(strange); err != nil {
		t.Fatal(err)
	}
	got := s.other.Load()
	if b := got.GetBuild(); len(b) > mostBuild || strings.ContainsAny(b, "\x1b\n") || !strings.HasPrefix(b, "v1") {
		t.Errorf("build %q", b)
	}
	if n := len(got.ProtoReflect().GetUnknown()); n != 0 {
		t.Errorf("%d bytes of it are kept", n)
	}
}

// A frame beyond the bound ends the link before it is read, and a compressed one, which may be a thousand times of what was sent, is not
// taken at all; nor are answers compressed, which would cost the head more than all else that it does for a message.
func TestFramesAreBoundedAndPlain(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a := newAuthority(t)
	slow := brisk
	slow.Silence = patience
	h := serve(t, a, "", slow)
	hello := &pb.Frame{Hello: &pb.Hello{Oldest: Oldest, Newest: Newest}}
	s := a.client("n", h.addr).Link(ctx)
	if err := s.Send(hello); err != nil {
		t.Fatal(err)
	}
	_ = s.Send(&pb.Frame{Messages: [][]byte{make([]byte, MaxFrame)}}) // an error: the head has seen how long it is, and ends the stream
	if err := ended(s); !strings.Contains(err.Error(), "larger than configured max") {
		t.Errorf("a large frame: %v", err)
	}
	if got := s.ResponseHeader().Get("Grpc-Encoding"); got != "" && got != "identity" {
		t.Errorf("the head answers with encoding %s", got)
	}
	s = a.client("n", h.addr, connect.WithSendGzip()).Link(ctx)
	_ = s.Send(hello) // an error: the stream is over
	if err := ended(s); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("a compressed frame: %v", err)
	}
}

// A message that is larger than the other side takes is dropped and counted: it would end this link and, said again, every one after it.
func TestAMessageThatIsTooLarge(t *testing.T) {
	of := func(n int) protocol.Message { // encoded it has some bytes more
		return protocol.Message{Kind: protocol.RedeemRefused, From: nodeN, To: zone, Body: &protocol.Refusal{Text: strings.Repeat("x", n)}}
	}
	s, f := newSession(Timing{}.filled(), "", time.Now, nil), &pb.Frame{Beat: &pb.Beat{}}
	// The largest that is sent comes behind as much as a frame has before it is full.
	n := s.fill(f, []protocol.Message{of(mostMessage), of(fullFrame - 100), of(MaxFrame), of(mostMessage - 100), of(1)})
	if n != 4 || len(f.GetMessages()) != 2 || s.queue.lost() != 2 {
		t.Errorf("%d taken, %d in the frame, %d dropped; want 4, 2 and 2", n, len(f.GetMessages()), s.queue.lost())
	}
	if size := proto.Size(f); size > MaxFrame || size < mostMessage {
		t.Errorf("the frame has %d bytes, want at most %d", size, MaxFrame)
	}
}

// A machine that says that it lives, and takes nothing, is cut as one that is silent: an honest one would have ended the link itself.
func TestAMachineThatTakesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	s := a.client("n", h.addr).Link(ctx)
	if err := s.Send(&pb.Frame{Hello: &pb.Hello{Oldest: Oldest, Newest: Newest}}); err != nil {
		t.Fatal(err)
	}
	var beats sync.WaitGroup
	beats.Go(func() {
		for s.Send(&pb.Frame{}) == nil {
			time.Sleep(brisk.Beat)
		}
	})
	defer beats.Wait()
	defer cancel()
	until(t, "it is linked", func() bool { return len(h.Machines()) == 1 })
	large := &protocol.Refusal{Text: strings.Repeat("x", 64<<10)}
	for range 1000 {
		h.Send(protocol.Message{Kind: protocol.RedeemRefused, From: zone, To: nodeN, Body: large})
	}
	until(t, "it is cut", func() bool { l := h.Machines(); return !l[0].Up && errors.Is(l[0].Why, errStuck) })
}
