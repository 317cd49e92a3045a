package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/protocol"
	"sluice.dev/sluice/internal/edge/wire"
)

var hello = &pb.Hello{Oldest: Oldest, Newest: Newest, Build: "b"}

// opened begins a call that has not said its hello yet, and that the head knows of: it has said its own.
func opened(ctx context.Context, t *testing.T, a *certifier, name, head string) *connect.BidiStreamForClient[pb.Frame, pb.Frame] {
	t.Helper()
	s := a.client(name, head).Link(ctx)
	if err := s.Send(nil); err != nil { // the headers
		t.Fatal(err)
	}
	if _, err := s.Receive(); err != nil {
		t.Fatal(err)
	}
	return s
}

// A machine that is removed between its call and its hello is not linked by that hello.
func TestAMachineThatIsRemovedBeforeItsHello(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	s := opened(ctx, t, a, "n", h.addr)
	h.Expel("n", errkind.Errorf(errkind.Denied, "machine n was removed"))
	_ = s.Send(&pb.Frame{Hello: hello}) // an error: the stream is over
	if err := ended(s); connect.CodeOf(err) != connect.CodePermissionDenied || !strings.Contains(err.Error(), "was removed") {
		t.Errorf("got %v", err)
	}
	if list := h.Machines(); len(list) != 0 {
		t.Errorf("machines: %+v", list)
	}
}

// The same just after it was found to be a member, and before the head has noted the call.
func TestAMachineThatIsRemovedWhileItCalls(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a := newAuthority(t)
	var h atomic.Pointer[listening]
	var removed atomic.Bool
	denied := errkind.Errorf(errkind.Denied, "machine n was removed")
	h.Store(serveTo(t, a, "", HeadOptions{Timing: brisk, Caller: func(context.Context) (job.NodeID, error) {
		if removed.Swap(true) {
			return "", denied
		}
		h.Load().Expel("n", denied)
		return "n", nil
	}}))
	s := a.client("n", h.Load().addr).Link(ctx)
	_ = s.Send(&pb.Frame{Hello: hello}) // an error: the stream is over
	if err := ended(s); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("got %v", err)
	}
}

// Nothing that an expelled machine has sent is delivered any more, not even what was in one frame with what is; and what is just being
// delivered is before Expel returns.
func TestAnExpelledMachineIsNotHeard(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	var heard atomic.Int64
	over := make(chan struct{})
	if err := h.Attach(zone, func(protocol.Message) {
		if heard.Add(1) > 1 {
			return
		}
		h.mu.Lock()
		call := h.links["n"]
		h.mu.Unlock()
		go func() {
			h.Expel("n", errkind.Errorf(errkind.Denied, "machine n was removed"))
			close(over)
		}()
		<-call.ctx.Done()
		for range 1000 {
			select {
			case <-over:
				t.Error("it is expelled, and its word is not delivered yet")
				return
			default:
				runtime.Gosched()
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	f := &pb.Frame{Hello: hello}
	for range 10 {
		f.Messages = append(f.Messages, wire.AppendMessage(nil, &protocol.Message{Kind: protocol.Published, From: nodeN, To: zone}))
	}
	s := a.client("n", h.addr).Link(ctx)
	if err := s.Send(f); err != nil {
		t.Fatal(err)
	}
	if err := ended(s); connect.CodeOf(err) != connect.CodePermissionDenied {
		t.Errorf("got %v", err)
	}
	<-over
	if heard.Load() != 1 {
		t.Errorf("%d messages were delivered, want the one before it was expelled", heard.Load())
	}
}

// Of calls without a hello a machine has one at most, so that it can't fill the head with them.
func TestOneCallOfAMachineWaits(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a := newAuthority(t)
	slow := brisk
	slow.Silence = patience
	h := serve(t, a, "", slow)
	first := opened(ctx, t, a, "n", h.addr)
	last := opened(ctx, t, a, "n", h.addr)
	if err := ended(first); connect.CodeOf(err) != connect.CodeAborted || !strings.Contains(err.Error(), "has called again") {
		t.Errorf("got %v", err)
	}
	if err := last.Send(&pb.Frame{Hello: hello}); err != nil {
		t.Fatal(err)
	}
	until(t, "the last is linked", func() bool { l := h.Machines(); return len(l) == 1 && l[0].Up })
}

// The link that a machine's next call replaces is told so and ends, whatever it says meanwhile.
func TestAReplacedLinkEnds(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	a := newAuthority(t)
	slow := brisk
	slow.Silence = patience
	h := serve(t, a, "", slow)
	first := a.client("n", h.addr).Link(ctx)
	if err := first.Send(&pb.Frame{Hello: hello}); err != nil {
		t.Fatal(err)
	}
	until(t, "the first is linked", func() bool { return len(h.Machines()) == 1 })
	join(t, a, "n", h.addr, slow)
	if err := ended(first); connect.CodeOf(err) != connect.CodeAborted || !strings.Contains(err.Error(), "has called again") {
		t.Errorf("got %v", err)
	}
	if list := h.Machines(); len(list) != 1 || !list[0].Up {
		t.Errorf("machines: %+v", list)
	}
}

// What waits for a link when it ends is lost, and counted, whichever side has dropped it and whether another link takes its place.
func TestWhatALinkStillHasIsCounted(t *testing.T) {
	h, waits := NewHead(HeadOptions{}), protocol.Message{Kind: protocol.Published, To: nodeN}
	other := &pb.Hello{Build: "b"}
	link := func() *linked {
		ctx, end := context.WithCancelCause(context.Background())
		l := &linked{session: newSession(brisk, "b", time.Now, nil), ctx: ctx, end: end}
		l.other.Store(other)
		return l
	}
	first, second := link(), link()
	for _, l := range []*linked{first, second} {
		if err := h.enter("n", l); err != nil {
			t.Fatal(err)
		}
		if err := h.up("n", l); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			h.Send(waits)
		}
	}
	if n := h.Dropped(); n != 3 {
		t.Errorf("%d dropped once another link has taken the place of one for which 3 waited", n)
	}
	h.down("n", first, errReplaced)
	h.down("n", second, errHungUp)
	if n := h.Dropped(); n != 6 {
		t.Errorf("%d dropped once that is gone too, for which 3 waited", n)
	}
}

// A call that was ended before its hello was heard becomes no link: its machine was expelled, or has called again.
func TestACallThatWasEndedIsNoLink(t *testing.T) {
	h := NewHead(HeadOptions{})
	ctx, end := context.WithCancelCause(context.Background())
	l := &linked{session: newSession(brisk, "b", time.Now, nil), ctx: ctx, end: end}
	l.other.Store(hello)
	if err := h.enter("n", l); err != nil {
		t.Fatal(err)
	}
	h.Expel("n", errHungUp)
	if err := h.up("n", l); !errors.Is(err, errHungUp) || len(h.Machines()) != 0 {
		t.Errorf("got %v, and machines %+v", err, h.Machines())
	}
}

// A machine can't take the name of a node that is at the head, nor the head that of a machine: each would get what is the other's.
func TestAMachineWithTheNameOfTheHeadsNode(t *testing.T) {
	a := newAuthority(t)
	h := serve(t, a, "", brisk)
	var got atomic.Bool
	if err := h.Attach(nodeN, func(protocol.Message) { got.Store(true) }); err != nil {
		t.Fatal(err)
	}
	m := join(t, a, "n", h.addr, brisk)
	until(t, "the machine is refused", func() bool {
		_, err := m.State()
		return err != nil && strings.Contains(err.Error(), "a node of the head") && refused(err)
	})
	h.Send(protocol.Message{Kind: protocol.Stop, From: zone, To: nodeN, Body: &protocol.Halt{}})
	if !got.Load() {
		t.Error("the head's node was not told")
	}
	linkedUp(t, h, join(t, a, "other", h.addr, brisk))
	err := h.Attach(protocol.Address{Role: protocol.Node, ID: "other"}, func(protocol.Message) {})
	if errkind.Of(err) != errkind.Exists {
		t.Errorf("a node with a machine's name: %v", err)
	}
}

// Both sides can be closed at any time, by several at once, while machines call, speak and are expelled.
func TestCloseAtAnyTime(t *testing.T) {
	a := newAuthority(t)
	const machines = 3
	configs := make([]*tls.Config, machines)
	for i := range configs {
		configs[i] = a.config(fmt.Sprint("m", i))
	}
	for round := range 12 {
		h := serve(t, a, "", brisk)
		if err := h.Attach(zone, func(protocol.Message) {}); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		var members []*Member
		for i, config := range configs {
			name := job.NodeID(fmt.Sprint("m", i))
			m := Join(MemberOptions{Machine: name, Head: h.addr, Timing: brisk, TLS: func() (*tls.Config, error) { return config, nil }})
			members = append(members, m)
			all.Go(func() {
				node := protocol.Address{Role: protocol.Node, ID: string(name)}
				for range 100 {
					m.Send(protocol.Message{Kind: protocol.Published, From: node, To: zone})
					h.Send(protocol.Message{Kind: protocol.Stop, From: zone, To: node, Body: &protocol.Halt{}})
				}
				h.Expel(name, errReplaced)
			})
		}
		until(t, "so many have called", func() bool { return len(h.Machines()) >= round%(machines+1) })
		for range 2 {
			all.Go(func() { _ = h.Head.Close() })
			for _, m := range members {
				all.Go(func() { _ = m.Close() })
			}
		}
		done := make(chan struct{})
		go func() { all.Wait(); close(done) }()
		select {
		case <-done:
		case <-time.After(patience):
			t.Fatal("something does not end")
		}
		for _, m := range members {
			if _, err := m.State(); errkind.Of(err) != errkind.Unavailable {
				t.Errorf("after Close: %v", err)
			}
		}
		for _, m := range h.Machines() {
			if m.Up {
				t.Errorf("after Close %s is up", m.Name)
			}
		}
		h.shut()
	}
}
