package head

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/files"
	"sluice.dev/sluice/internal/edge/store/local"
)

// content is some bytes, others for each seed.
func content(seed byte, size int) []byte {
	data := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{seed, 1}).Read(data) // never fails
	return data
}

func digestOf(data []byte) store.Digest {
	d, err := store.Sum(context.Background(), bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	return d
}

// source counts what is read of it, and calls at once with where it is read.
type source struct {
	*bytes.Reader
	read atomic.Int64
	at   func(off int64) error
}

func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if s.at != nil {
		if err := s.at(off); err != nil {
			return 0, err
		}
	}
	n, err := s.Reader.ReadAt(p, off)
	s.read.Add(int64(n))
	return n, err
}

func opened(t testing.TB, dir string, before ...files.Before) *files.Dir {
	t.Helper()
	s, err := local.Open(dir, before...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// holds checks that a store has an object, whole.
func holds(t testing.TB, s store.Store, data []byte) {
	t.Helper()
	r, err := s.Open(t.Context(), digestOf(data))
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes of %d came back, or others: %v", len(got), len(data), err)
	}
}

// halves are the files of uploads at a head.
func halves(t testing.TB, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, "incoming", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// underWay is how much of an upload may be lost when its connection breaks: what both sides and the network hold, in bytes.
const underWay = 8 << 20

// An upload outlives its head: the next one goes on where the store has it, within the same Put.
func TestAHeadThatStartsAnewDuringAnUpload(t *testing.T) {
	for what, end := range map[string]func(*listening){"closed": (*listening).shut, "killed": (*listening).kill} {
		t.Run(what, func(t *testing.T) {
			dir, a := t.TempDir(), newAuthority(t)
			h := serve(t, a, "", ServiceOptions{Store: opened(t, dir), Timing: brisk})
			data := content(1, 48<<20)
			src := &source{Reader: bytes.NewReader(data)}
			var once sync.Once
			src.at = func(off int64) error {
				if off >= 32<<20 {
					once.Do(func() {
						end(h)
						if list := halves(t, dir); len(list) != 1 {
							t.Errorf("half an upload is %v", list)
						}
						serve(t, a, h.addr, ServiceOptions{Store: opened(t, dir), Timing: brisk})
					})
				}
				return nil
			}
			s := h.join("n")
			if o, err := s.Put(t.Context(), digestOf(data), src); err != nil || o.Size != int64(len(data)) {
				t.Fatalf("%+v, %v", o, err)
			}
			holds(t, opened(t, dir), data)
			if more := src.read.Load() - int64(len(data)); more > underWay {
				t.Errorf("%d bytes were sent twice of %d", more, len(data))
			}
			if list := halves(t, dir); len(list) > 0 {
				t.Errorf("left is %v", list)
			}
		})
	}
}

// The same with a download, of which nothing is sent twice but what was under way.
func TestAHeadThatStartsAnewDuringADownload(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	data := content(1, 48<<20)
	own := opened(t, dir)
	if _, err := own.Put(t.Context(), "", bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	h := serve(t, a, "", ServiceOptions{Store: own, Timing: brisk})
	n := between(t, h.addr)
	r, err := a.join("n", n.addr()).Open(t.Context(), digestOf(data))
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 20<<20)
	if _, err = io.ReadFull(r, got); err != nil {
		t.Fatal(err)
	}
	h.kill()
	serve(t, a, h.addr, ServiceOptions{Store: opened(t, dir), Timing: brisk})
	rest, err := io.ReadAll(r)
	if err = errors.Join(err, r.Close()); err != nil {
		t.Fatal(err)
	}
	if got = append(got, rest...); !bytes.Equal(got, data) {
		t.Errorf("%d bytes of %d came back, or others", len(got), len(data))
	}
	if more := n.bytes() - int64(len(data)); more > underWay {
		t.Errorf("%d bytes more than the object were sent", more)
	}
}

// Connections are cut at any byte, again and again: what is put and read back is whole, and goes on where it was.
func TestConnectionsThatAreCutAtAnyByte(t *testing.T) {
	planned, left := 0, 0
	for seed := range uint64(6) {
		draw := rand.New(rand.NewPCG(seed, 1))
		data := content(byte(seed), 4<<20+draw.IntN(4<<20))
		dir, a := t.TempDir(), newAuthority(t)
		h := serve(t, a, "", ServiceOptions{Store: opened(t, dir), Timing: brisk})
		n := between(t, h.addr)
		s := a.join("n", n.addr())
		cuts := func() (list []int64) {
			for range 2 + draw.IntN(4) {
				// Some within what a connection begins with, the others anywhere.
				list = append(list, draw.Int64N([]int64{8 << 10, 3 << 20}[draw.IntN(2)]))
			}
			planned += len(list)
			return list
		}
		n.cutAfter(cuts()...)
		src := &source{Reader: bytes.NewReader(data)}
		if _, err := s.Put(t.Context(), digestOf(data), src); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		holds(t, opened(t, dir), data)
		left += n.pending()
		n.cutAfter(cuts()...)
		holds(t, s, data)
		left += n.pending()
		if err := store.Name(t.Context(), s, "a/b", store.Refs{"x": digestOf(data)}); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
		h.shut()
	}
	if planned-left < planned/2 {
		t.Errorf("of %d cuts %d came to pass", planned, planned-left)
	}
}

// An upload that broke off in one Put goes on in the next one, also of another process, and across a start of the head.
func TestTheNextPutGoesOn(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	h := serve(t, a, "", ServiceOptions{Store: opened(t, dir)})
	data, trouble := content(1, 12<<20), errors.New("the disk that it is read from")
	src := &source{Reader: bytes.NewReader(data), at: func(off int64) error {
		if off >= 8<<20 {
			return trouble
		}
		return nil
	}}
	if _, err := h.join("n").Put(t.Context(), digestOf(data), src); !errors.Is(err, trouble) {
		t.Fatal(err)
	}
	h.shut()
	h = serve(t, a, "", ServiceOptions{Store: opened(t, dir)})
	src = &source{Reader: bytes.NewReader(data)}
	if _, err := h.join("n").Put(t.Context(), digestOf(data), src); err != nil {
		t.Fatal(err)
	}
	holds(t, opened(t, dir), data)
	if n := src.read.Load(); n != 4<<20 {
		t.Errorf("%d bytes were read of 4 MiB that were missing", n)
	}
}

// dying is a store that is told to put, does so, and calls a function before it answers.
type dying struct {
	store.Store
	then func()
}

func (d *dying) Put(ctx context.Context, want store.Digest, src store.Source) (store.Object, error) {
	o, err := d.Store.Put(ctx, want, src)
	d.then()
	return o, err
}

// The head dies once the object has its name and before it says so: the machine finds it, and sends nothing again.
func TestAHeadThatDiesBeforeItAnswers(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	killed := make(chan struct{})
	var h *listening
	own := &dying{Store: opened(t, dir), then: func() {
		_ = h.server.Close()
		close(killed)
	}}
	h = serve(t, a, "", ServiceOptions{Store: own, Timing: brisk})
	s := h.join("n")
	go func() {
		<-killed
		h.Close()
		serve(t, a, h.addr, ServiceOptions{Store: opened(t, dir), Timing: brisk})
	}()
	data := content(1, 3<<20)
	src := &source{Reader: bytes.NewReader(data)}
	if _, err := s.Put(t.Context(), digestOf(data), src); err != nil {
		t.Fatal(err)
	}
	holds(t, s, data)
	if n := src.read.Load(); n != int64(len(data)) {
		t.Errorf("%d bytes were read of %d", n, len(data))
	}
}

// Two that put the same object at once: of one machine the second waits and finds it; two machines don't wait for each other. Either way
// there is one object, and nothing is left.
func TestTwoPutTheSame(t *testing.T) {
	for what, names := range map[string][]string{"one machine": {"n", "n"}, "two machines": {"n", "m"}} {
		t.Run(what, func(t *testing.T) {
			dir := t.TempDir()
			h := serve(t, newAuthority(t), "", ServiceOptions{Store: opened(t, dir)})
			data := content(1, 8<<20)
			inside, both := make(chan struct{}), make(chan struct{})
			var all sync.WaitGroup
			sources := make([]*source, len(names))
			for i, name := range names {
				src := &source{Reader: bytes.NewReader(data)}
				if sources[i] = src; i == 0 { // it is half way when the second begins
					src.at = func(off int64) error {
						if off == 4<<20 {
							close(inside)
							<-both
						}
						return nil
					}
				}
				all.Go(func() {
					if i > 0 {
						<-inside
						if names[0] != name {
							defer close(both) // the first goes on once the second is through
						} else {
							close(both)
						}
					}
					if _, err := h.join(name).Put(t.Context(), digestOf(data), src); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			holds(t, opened(t, dir), data)
			if list := halves(t, dir); len(list) > 0 {
				t.Errorf("left is %v", list)
			}
			if n := sources[1].read.Load(); names[0] == names[1] && n != 0 {
				t.Errorf("the second has sent %d bytes of what the first was sending", n)
			}
		})
	}
}

// A disk that fills up in the middle of an upload is no broken connection: the error says so, and nothing of the upload stays.
func TestADiskThatFillsUp(t *testing.T) {
	dir, writes := t.TempDir(), 0
	var room atomic.Bool
	own := opened(t, dir, func(step, _ string) error {
		if writes++; step == "write" && writes > 6 && !room.Load() {
			return unix.ENOSPC
		}
		return nil
	})
	h := serve(t, newAuthority(t), "", ServiceOptions{Store: own, Limits: Limits{Broken: 17 << 20}})
	s, data := h.join("n"), content(1, 16<<20)
	for range 2 { // it does not count as half an upload either, of which a second would be too many
		data = append(data[1:], 0)
		_, err := s.Put(t.Context(), digestOf(data), bytes.NewReader(data))
		if errkind.Of(err) != errkind.Exhausted || !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("%v of kind %v", err, errkind.Of(err))
		}
	}
	if list := halves(t, dir); len(list) > 0 {
		t.Errorf("left is %v", list)
	}
	room.Store(true)
	if _, err := s.Put(t.Context(), digestOf(data), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	holds(t, s, data)
}

// A head that says nothing any more ends a call, and a caller that gives up ends it at once, whatever it is doing.
func TestAHeadThatFallsSilent(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	data := content(1, 24<<20)
	own := opened(t, dir)
	if _, err := own.Put(t.Context(), "", bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	h := serve(t, a, "", ServiceOptions{Store: own})
	rounds := byte(1)
	for what, calls := range map[string]func(ctx context.Context, s *Store, hush func()) error{
		"an answer": func(ctx context.Context, s *Store, hush func()) error {
			hush()
			_, err := s.Now(ctx)
			return err
		},
		"a list": func(ctx context.Context, s *Store, hush func()) error {
			hush()
			return s.List(ctx, func(store.Object) error { return nil })
		},
		"an upload": func(ctx context.Context, s *Store, hush func()) error {
			rounds++
			other := content(rounds, 24<<20) // one that is not there in part
			_, err := s.Put(ctx, digestOf(other), &source{Reader: bytes.NewReader(other), at: func(off int64) error {
				if off == 2<<20 {
					hush()
				}
				return nil
			}})
			return err
		},
		"a download": func(ctx context.Context, s *Store, hush func()) error {
			r, err := s.Open(ctx, digestOf(data))
			if err != nil {
				return err
			}
			defer r.Close()
			hush()
			_, err = io.Copy(io.Discard, r)
			return err
		},
	} {
		for _, gives := range []bool{false, true} {
			n := between(t, h.addr)
			timing := Timing{Silence: 2 * patience, Answer: 2 * patience, Tries: 1}
			if !gives {
				timing.Silence, timing.Answer = brisk.Beat*20, brisk.Beat*20
			}
			s, err := a.at("n", n.addr()).open(timing, 2*patience)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = s.Now(t.Context()) // so that the connection is there, whose making has a time of its own
			ctx, cancel := context.WithCancel(t.Context())
			speak := func() {}
			err = calls(ctx, s, func() {
				speak = n.hush()
				if gives {
					cancel()
				}
			})
			if errkind.Of(err) != errkind.Unavailable || errors.Is(err, context.Canceled) != gives {
				t.Errorf("%s, given up: %v: %v", what, gives, err)
			}
			cancel()
			speak()
			_ = s.Close()
		}
	}
}

// many is a store that lists more than a frame of an answer holds.
type many struct {
	store.Store
	objects []store.Object
	names   []store.Named
}

func (m many) List(_ context.Context, tell func(store.Object) error) error {
	for _, o := range m.objects {
		if err := tell(o); err != nil {
			return err
		}
	}
	return nil
}

func (m many) Names(_ context.Context, _ string, tell func(store.Named) error) error {
	for _, n := range m.names {
		if err := tell(n); err != nil {
			return err
		}
	}
	return nil
}

// A list arrives whole, however many frames it takes, and in order.
func TestListsOfManyFrames(t *testing.T) {
	own := opened(t, t.TempDir())
	for _, n := range []int{0, 1, atOnce - 1, atOnce, atOnce + 1, 3*atOnce + 7} {
		m := many{Store: own}
		for i := range n {
			d, at := digestOf([]byte(fmt.Sprint(i))), time.Unix(int64(i), 0).UTC()
			m.objects = append(m.objects, store.Object{Digest: d, Size: int64(i), Changed: at})
			m.names = append(m.names, store.Named{Name: fmt.Sprintf("jobs/me/j%d", i), Refs: store.Refs{"output": d}, Changed: at})
		}
		s := serve(t, newAuthority(t), "", ServiceOptions{Store: m}).join("n")
		var objects []store.Object
		if err := s.List(t.Context(), func(o store.Object) error { objects = append(objects, o); return nil }); err != nil {
			t.Fatal(err)
		}
		var names []store.Named
		if err := s.Names(t.Context(), "jobs", func(n store.Named) error { names = append(names, n); return nil }); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(objects, m.objects) || !reflect.DeepEqual(names, m.names) {
			t.Errorf("of %d objects and names %d and %d arrived, or others", n, len(objects), len(names))
		}
	}
}
