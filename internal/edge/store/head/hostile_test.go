package head

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	pb "sluice.dev/sluice/api/sluice/v1alpha1"
	"sluice.dev/sluice/api/sluice/v1alpha1/sluicev1alpha1connect"
	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// raw is an upload frame by frame.
type raw struct {
	*connect.BidiStreamForClient[pb.PutFrame, pb.PutAnswer]
	t testing.TB
}

func (s *Store) raw(ctx context.Context, t testing.TB, b *pb.PutBegin) raw {
	t.Helper()
	r := raw{s.client.Put(ctx), t}
	if err := r.Send(&pb.PutFrame{Begin: b}); err != nil && !errors.Is(err, io.EOF) { // EOF: what it receives says why it is refused
		t.Fatal(err)
	}
	return r
}

// asked waits for the next request of the head.
func (r raw) asked() *pb.PutAnswer {
	r.t.Helper()
	for {
		a, err := r.Receive()
		if err != nil {
			r.t.Fatal(err)
		}
		if a.GetRequest() > 0 {
			return a
		}
	}
}

// ended is what ends it, whatever is sent.
func (r raw) ended() error {
	for {
		if _, err := r.Receive(); err != nil {
			err, _ = heard(r.t.Context(), "it", err)
			return err
		}
	}
}

func beginOf(data []byte) *pb.PutBegin {
	return &pb.PutBegin{Digest: string(digestOf(data)), Size: int64(len(data)), Upload: "u"}
}

// What a machine sends wrong ends its upload, and is no object.
func TestFramesThatAreWrong(t *testing.T) {
	data := content(1, 100_000)
	other := content(2, 100_000)
	for what, c := range map[string]struct {
		begin  *pb.PutBegin
		frames []*pb.PutFrame
		kind   errkind.Kind
		says   string
	}{
		"other bytes": {beginOf(data), []*pb.PutFrame{{Request: 1, Data: other}}, errkind.Invalid, "the bytes have the digest"},
		"from elsewhere": {beginOf(data), []*pb.PutFrame{{Request: 1, Offset: 5, Data: data[5:]}}, errkind.Invalid,
			"those from 0 of 100000 on were asked for"},
		"from before the beginning": {beginOf(data), []*pb.PutFrame{{Request: 1, Offset: -1, Data: data}}, errkind.Invalid, "asked for"},
		"too many": {beginOf(data), []*pb.PutFrame{{Request: 1, Data: append(bytes.Clone(data), 0)}}, errkind.Invalid,
			"asked for"},
		"with a gap": {beginOf(data), []*pb.PutFrame{{Request: 1, Data: data[:10]}, {Request: 1, Offset: 11, Data: data[11:]}},
			errkind.Invalid, "those from 10 of 100000 on were asked for"},
		"never asked for": {beginOf(data), []*pb.PutFrame{{Request: 2, Data: data}}, errkind.Invalid, "nobody has asked for"},
		"begun twice":     {beginOf(data), []*pb.PutFrame{{Begin: beginOf(data)}}, errkind.Invalid, "nobody has asked for"},
		"too large": {beginOf(data), []*pb.PutFrame{{Request: 1, Data: make([]byte, MaxFrame+1)}}, errkind.Unavailable,
			"larger than configured max"},
		"no digest":   {&pb.PutBegin{Digest: "../../etc/passwd", Size: 1}, nil, errkind.Invalid, "is no digest"},
		"no size":     {&pb.PutBegin{Digest: string(digestOf(data)), Size: -1}, nil, errkind.Invalid, "an object of -1 bytes"},
		"no begin":    {nil, nil, errkind.Invalid, "is no digest"},
		"never ended": {beginOf(data), []*pb.PutFrame{{Request: 1, Data: data[:10]}}, errkind.Unavailable, "at byte 10 of 100000"},
	} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			dir := t.TempDir()
			s := serve(t, newAuthority(t), "", ServiceOptions{Store: opened(t, dir)}).join("n")
			r := s.raw(ctx, t, c.begin)
			if c.frames != nil {
				r.asked()
			}
			for _, f := range c.frames {
				_ = r.Send(f) // an error: the head has ended it
			}
			_ = r.CloseRequest()
			if err := r.ended(); errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v of kind %v, want %v and %q", err, errkind.Of(err), c.kind, c.says)
			}
			if err := s.List(ctx, func(o store.Object) error { return errors.New(string(o.Digest)) }); err != nil {
				t.Errorf("an object: %v", err)
			}
			// It does not stand in the way of the right bytes, of any machine.
			if _, err := s.Put(ctx, digestOf(data), bytes.NewReader(data)); err != nil {
				t.Error(err)
			}
			holds(t, s, data)
		})
	}
}

// What half an upload of one machine has left is no part of another's object, if its bytes are wrong.
func TestAPoisonedHalf(t *testing.T) {
	h := serve(t, newAuthority(t), "", ServiceOptions{Store: opened(t, t.TempDir())})
	data := content(1, 3<<20)
	r := h.join("bad").raw(t.Context(), t, beginOf(data))
	r.asked()
	if err := r.Send(&pb.PutFrame{Request: 1, Data: make([]byte, 500_000)}); err != nil {
		t.Fatal(err)
	}
	_ = r.CloseRequest()
	if err := r.ended(); errkind.Of(err) != errkind.Unavailable {
		t.Fatal(err)
	}
	s := h.join("good")
	src := &source{Reader: bytes.NewReader(data)}
	if _, err := s.Put(t.Context(), digestOf(data), src); err != nil {
		t.Fatal(err)
	}
	holds(t, s, data)
	if n := src.read.Load(); n <= int64(len(data)) {
		t.Errorf("%d bytes were sent: it did not begin with what the other had left, and proves nothing", n)
	}
}

// Frames without end that nobody wants, and silence, end an upload alike: it makes no progress. The head then has nothing open.
func TestAnUploadWithoutProgress(t *testing.T) {
	timing := brisk
	timing.Stall = 300 * time.Millisecond
	data := content(1, 100_000)
	for what, send := range map[string]func(r raw) error{
		"nothing":           nil,
		"empty frames":      func(r raw) error { return r.Send(&pb.PutFrame{Request: 1}) },
		"an older request":  func(r raw) error { return r.Send(&pb.PutFrame{Data: data}) },
		"not its beginning": nil,
	} {
		t.Run(what, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			h := serve(t, newAuthority(t), "", ServiceOptions{Store: opened(t, t.TempDir()), Timing: timing})
			s := h.join("n")
			r := raw{s.client.Put(ctx), t}
			if what != "not its beginning" {
				r = s.raw(ctx, t, beginOf(data))
				r.asked()
			} else if err := r.Send(nil); err != nil {
				t.Fatal(err)
			}
			go func() {
				for send != nil && send(r) == nil {
				}
			}()
			if err := r.ended(); errkind.Of(err) != errkind.Unavailable || ctx.Err() != nil {
				t.Errorf("got %v", err)
			}
			cancel()
			until(t, "no call is open", func() bool {
				h.usage.mu.Lock()
				defer h.usage.mu.Unlock()
				return len(h.usage.calls) == 0 && len(h.usage.turns) == 0
			})
		})
	}
}

// A machine that takes nothing of what it reads is cut off, so that the head has nothing open for it; it goes on where it was once it
// reads again.
func TestAReaderThatStalls(t *testing.T) {
	timing := brisk
	timing.Stall = 300 * time.Millisecond
	h := serve(t, newAuthority(t), "", ServiceOptions{Store: opened(t, t.TempDir()), Timing: timing})
	s, data := h.join("n"), content(1, 24<<20)
	if _, err := s.Put(t.Context(), digestOf(data), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), digestOf(data))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got := make([]byte, 1<<20)
	if _, err = io.ReadFull(r, got); err != nil {
		t.Fatal(err)
	}
	until(t, "no call is open", func() bool {
		h.usage.mu.Lock()
		defer h.usage.mu.Unlock()
		return len(h.usage.calls) == 0
	})
	rest, err := io.ReadAll(r)
	if got = append(got, rest...); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes of %d came back, or others: %v", len(got), len(data), err)
	}
}

// The latest attempt of an upload counts: the one before it is ended, though its connection still stands. Of another upload of the same
// object by the same machine it waits for the end, and then goes on.
func TestTheLatestAttemptCounts(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	h := serve(t, newAuthority(t), "", ServiceOptions{Store: opened(t, t.TempDir())})
	s, data := h.join("n"), content(1, 3<<20)
	first := s.raw(ctx, t, beginOf(data))
	first.asked()
	if err := first.Send(&pb.PutFrame{Request: 1, Data: data[:1000]}); err != nil {
		t.Fatal(err)
	}
	until(t, "it is heard", func() bool { a, err := first.Receive(); return err == nil && a.GetHas() == 1000 })
	second := s.raw(ctx, t, beginOf(data))
	if a := second.asked(); a.GetHas() != 1000 {
		t.Errorf("it goes on at %d", a.GetHas())
	}
	if err := first.ended(); !strings.Contains(err.Error(), "begun this upload anew") {
		t.Errorf("the first ends with %v", err)
	}
	b := beginOf(data)
	b.Upload = "another"
	third := s.raw(ctx, t, b)
	if a, err := third.Receive(); err != nil || a.GetRequest() != 0 { // a beat
		t.Errorf("another upload of the same object gets %v, %v", a, err)
	}
	if err := second.CloseRequest(); err != nil {
		t.Fatal(err)
	}
	if a := third.asked(); a.GetHas() != 1000 {
		t.Errorf("it goes on at %d", a.GetHas())
	}
}

// Names that lead elsewhere and times that are none are refused before anybody is asked, also where the caller has not looked at them.
func TestCallsThatAreWrong(t *testing.T) {
	dir := t.TempDir()
	asked := 0
	s := serve(t, newAuthority(t), "", ServiceOptions{Store: opened(t, filepath.Join(dir, "store")),
		May: func(context.Context, Call) error { asked++; return nil }}).join("n")
	ctx := t.Context()
	refs := map[string]string{"x": string(someDigest)}
	for _, name := range []string{"", "..", "../x", "a/../../x", "/etc/x", "a//b", ".x", "a/", strings.Repeat("a/", 9) + "a",
		strings.Repeat("a", 600)} {
		_, set := s.client.SetName(ctx, connect.NewRequest(&pb.SetNameRequest{Name: name, Refs: refs}))
		_, read := s.client.ReadName(ctx, connect.NewRequest(&pb.ReadNameRequest{Name: name}))
		_, removed := s.client.Unname(ctx, connect.NewRequest(&pb.UnnameRequest{Name: name}))
		for _, err := range []error{set, read, removed} {
			if err, _ = heard(ctx, "it", err); errkind.Of(err) != errkind.Invalid {
				t.Errorf("the name %q: %v", name, err)
			}
		}
	}
	for _, d := range []string{"", "..", "../../STORE", string(someDigest) + "/..", strings.ToUpper(string(someDigest))} {
		_, stat := s.client.Stat(ctx, connect.NewRequest(&pb.StatRequest{Digest: d}))
		_, renewed := s.client.Renew(ctx, connect.NewRequest(&pb.RenewObjectRequest{Digest: d}))
		_, removed := s.client.Remove(ctx, connect.NewRequest(&pb.RemoveRequest{Digest: d}))
		_, named := s.client.SetName(ctx, connect.NewRequest(&pb.SetNameRequest{Name: "a", Refs: map[string]string{"x": d}}))
		for _, err := range []error{stat, renewed, removed, named} {
			if err, _ = heard(ctx, "it", err); errkind.Of(err) != errkind.Invalid {
				t.Errorf("the digest %q: %v", d, err)
			}
		}
	}
	if asked > 0 {
		t.Errorf("whoever decides was asked for %d of them", asked)
	}
	_, removed := s.client.Remove(ctx, connect.NewRequest(&pb.RemoveRequest{Digest: string(someDigest)}))
	if err, _ := heard(ctx, "it", removed); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a removal of what is older than nothing: %v", err)
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) != 1 {
		t.Errorf("beside the store there are %v, %v", list, err)
	}
}

// Reads that begin where an object has no bytes.
func TestReadsFromElsewhere(t *testing.T) {
	s := serve(t, newAuthority(t), "", ServiceOptions{Store: opened(t, t.TempDir())}).join("n")
	data := content(1, 1000)
	if _, err := s.Put(t.Context(), "", bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	for _, from := range []int64{-1, 0, 1, 999, 1000, 1001, 1 << 62} {
		in, err := s.client.Open(t.Context(), connect.NewRequest(&pb.OpenRequest{Digest: string(digestOf(data)), Offset: from}))
		if err != nil {
			t.Fatal(err)
		}
		var got []byte
		for in.Receive() {
			got = append(got, in.Msg().GetData()...)
		}
		if wrong := from < 0 || from > 1000; wrong {
			if err, _ = heard(t.Context(), "it", in.Err()); errkind.Of(err) != errkind.Invalid {
				t.Errorf("from %d on: %v", from, err)
			}
		} else if in.Err() != nil || !bytes.Equal(got, data[from:]) {
			t.Errorf("from %d on there are %d bytes, %v", from, len(got), in.Err())
		}
	}
}

// What one machine takes of the head is bounded, and no other machine's loss.
func TestLimits(t *testing.T) {
	dir := t.TempDir()
	h := serve(t, newAuthority(t), "", ServiceOptions{Store: opened(t, dir), Limits: Limits{Calls: 2, Upload: 20 << 20, Broken: 25 << 20}})
	greedy, other := h.join("greedy"), h.join("other")
	large := content(1, 20<<20+1)
	if _, err := greedy.Put(t.Context(), digestOf(large), bytes.NewReader(large)); errkind.Of(err) != errkind.Exhausted {
		t.Errorf("an object that is too large: %v", err)
	}
	// Half an upload counts with all of its bytes.
	a, b, trouble := content(2, 16<<20), content(3, 10<<20), errors.New("the disk that it is read from")
	for range 2 { // an upload that breaks off twice counts once
		src := &source{Reader: bytes.NewReader(a), at: func(off int64) error {
			if off >= 8<<20 {
				return trouble
			}
			return nil
		}}
		if _, err := greedy.Put(t.Context(), digestOf(a), src); !errors.Is(err, trouble) {
			t.Fatal(err)
		}
	}
	_, err := greedy.Put(t.Context(), digestOf(b), bytes.NewReader(b))
	if errkind.Of(err) != errkind.Exhausted || !strings.Contains(err.Error(), "finish those first") {
		t.Errorf("too many halves: %v", err)
	}
	if _, err = other.Put(t.Context(), digestOf(b), bytes.NewReader(b)); err != nil {
		t.Errorf("another machine: %v", err)
	}
	if _, err = greedy.Put(t.Context(), digestOf(b), bytes.NewReader(b)); err != nil {
		t.Errorf("what is there by now: %v", err)
	}
	for _, data := range [][]byte{a, content(4, 16<<20)} {
		if _, err = greedy.Put(t.Context(), digestOf(data), bytes.NewReader(data)); err != nil {
			t.Errorf("the rest, and what there is room for then: %v", err)
		}
	}
	// Calls that stay open.
	greedy.timing.Tries = 1
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var open []interface{ Close() error }
	for range 2 {
		in, err := greedy.client.Open(ctx, connect.NewRequest(&pb.OpenRequest{Digest: string(digestOf(a))}))
		if err != nil || !in.Receive() {
			t.Fatal(err)
		}
		open = append(open, in)
	}
	if _, err = greedy.Now(t.Context()); errkind.Of(err) != errkind.Unavailable || !strings.Contains(err.Error(), "too many calls") {
		t.Errorf("a third call: %v", err)
	}
	if _, err = other.Now(t.Context()); err != nil {
		t.Errorf("another machine: %v", err)
	}
	cancel()
	for _, in := range open {
		_ = in.Close()
	}
	until(t, "calls are free again", func() bool { _, err := greedy.Now(t.Context()); return err == nil })
}

// Halves that a collection has swept by now don't count any more, those under way always do.
func TestOldHalvesAreForgotten(t *testing.T) {
	u := newUsage(Limits{Broken: 100_000})
	now := time.Unix(1e9, 0)
	d := func(i byte) store.Digest { return digestOf([]byte{i}) }
	for i, c := range []struct {
		at     time.Duration
		digest byte
		ok     bool
	}{{0, 1, true}, {0, 2, false}, {time.Hour, 1, true}, {forgotten, 2, false}, {forgotten + 2*time.Hour, 2, true}} {
		err := u.reserve("n", d(c.digest), 60_000, now.Add(c.at))
		if (err == nil) != c.ok {
			t.Errorf("step %d: %v", i, err)
		}
		if err == nil {
			u.release("n", d(c.digest), false, now.Add(c.at))
		}
	}
	if err := u.reserve("m", d(3), 60_000, now); err != nil {
		t.Fatal(err)
	}
	if err := u.reserve("m", d(4), 60_000, now.Add(2*forgotten)); errkind.Of(err) != errkind.Exhausted {
		t.Errorf("beside one that is under way: %v", err)
	}
	if err := u.reserve("x", d(1), 1<<63-1, now); errkind.Of(err) != errkind.Exhausted {
		t.Errorf("an object of all bytes there can be: %v", err)
	}
	u.release("m", d(3), true, now)
	if len(u.uploads["m"]) != 0 {
		t.Errorf("what is stored counts: %v", u.uploads["m"])
	}
}

// It needs HTTP/2: without it uploads can't be answered while they go on.
func TestHTTP1IsRefused(t *testing.T) {
	h := serve(t, newAuthority(t), "", ServiceOptions{Store: opened(t, t.TempDir())})
	config, err := h.a.party("n").config()
	if err != nil {
		t.Fatal(err)
	}
	p := new(http.Protocols)
	p.SetHTTP1(true)
	c := &http.Client{Transport: &http.Transport{Protocols: p, TLSClientConfig: config}}
	t.Cleanup(c.CloseIdleConnections)
	_, err = sluicev1alpha1connect.NewStoreServiceClient(c, "https://"+h.addr).Now(t.Context(), connect.NewRequest(&pb.NowRequest{}))
	if err == nil || !strings.Contains(err.Error(), "505") {
		t.Errorf("got %v", err)
	}
}

// Nothing is compressed: a machine could have 1 KiB become 1 MiB.
func TestNothingIsCompressed(t *testing.T) {
	s := serve(t, newAuthority(t), "", ServiceOptions{Store: opened(t, t.TempDir())}).join("n")
	c := sluicev1alpha1connect.NewStoreServiceClient(s.http, s.url, connect.WithGRPC(), connect.WithSendGzip())
	q := &pb.ReadNameRequest{Name: "a/" + strings.Repeat("b", 400)}
	if _, err := c.ReadName(t.Context(), connect.NewRequest(q)); connect.CodeOf(err) != connect.CodeUnimplemented {
		t.Errorf("a compressed call: %v", err)
	}
}

// A service that is closed ends what is open, takes no more, and can be closed again.
func TestCloseEndsWhatIsOpen(t *testing.T) {
	h := serve(t, newAuthority(t), "", ServiceOptions{Store: opened(t, t.TempDir())})
	s, data := h.join("n"), content(1, 24<<20)
	if _, err := s.Put(t.Context(), digestOf(data), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	in, err := s.client.Open(t.Context(), connect.NewRequest(&pb.OpenRequest{Digest: string(digestOf(data))}))
	if err != nil || !in.Receive() {
		t.Fatal(err)
	}
	up := s.raw(t.Context(), t, beginOf([]byte("other")))
	up.asked()
	done := make(chan struct{})
	go func() { h.Close(); h.Close(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("it waits for what was to be ended")
	}
	if err := up.ended(); errkind.Of(err) != errkind.Unavailable || !strings.Contains(err.Error(), "is stopping") {
		t.Errorf("the upload: %v", err)
	}
	s.timing.Tries = 1
	if _, err = s.Now(t.Context()); errkind.Of(err) != errkind.Unavailable {
		t.Errorf("a call of a closed one: %v", err)
	}
}
