package api

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"connectrpc.com/connect"

	"sluice.dev/sluice/internal/core/errkind"
)

func TestTheSlowMakeRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{most: 2, grace: time.Second, rate: 1000, patient: 1}
		cut := map[string]bool{}
		guests := map[string]*guest{}
		enter := func(name string) error {
			guests[name] = &guest{cut: func() { cut[name] = true }}
			err := r.enter(t.Context(), guests[name])
			guests[name].awaits()
			return err
		}
		for _, name := range []string{"slow", "fast"} {
			if err := enter(name); err != nil {
				t.Fatal(err)
			}
		}
		// Nobody has been slow for long enough: one may wait, the next is refused.
		waited := make(chan error)
		go func() { waited <- enter("patient") }()
		synctest.Wait()
		if err := enter("one too many"); errkind.Of(err) != errkind.Exhausted {
			t.Errorf("beyond the queue: %v", err)
		}
		r.arrived(guests["fast"], 5000, false)
		r.arrived(guests["slow"], 10, false)
		guests["fast"].awaits()
		guests["slow"].awaits()
		if err := <-waited; err != nil || !cut["slow"] || cut["fast"] {
			t.Errorf("%v; cut %v, want the slow one", err, cut)
		}
		// All of one is there: it is being worked for, however long ago that was.
		r.arrived(guests["fast"], 0, true)
		time.Sleep(time.Hour)
		if err := enter("next"); err != nil || !cut["patient"] || cut["fast"] {
			t.Errorf("%v; cut %v", err, cut)
		}
		// Who hangs up does not wait on.
		leaving, leave := context.WithCancel(t.Context())
		leave()
		if err := r.enter(leaving, &guest{}); !errors.Is(err, context.Canceled) || len(r.queue) != 0 {
			t.Errorf("%v, %d waiting", err, len(r.queue))
		}
		// A place that is given back is there for who waits.
		go func() { waited <- enter("last") }()
		synctest.Wait()
		r.leave(guests["fast"])
		if err := <-waited; err != nil || cut["next"] {
			t.Errorf("%v; cut %v", err, cut)
		}
	})
}

// deadlines records what is set.
type deadlines struct {
	*httptest.ResponseRecorder
	read, write []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error  { d.read = append(d.read, at); return nil }
func (d *deadlines) SetWriteDeadline(at time.Time) error { d.write = append(d.write, at); return nil }

// trickle gives a few bytes at a time.
type trickle struct {
	left, step int
	pause      time.Duration
}

func (r *trickle) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(r.pause)
	n := min(r.step, r.left, len(p))
	r.left -= n
	return n, nil
}

// TestProgressGivesTime: every part of a body that comes moves the deadline, none does not; who has sent all may wait for ever.
func TestProgressGivesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		var served time.Duration
		in := newIntake(func(*http.Request) int64 { return 1 << 20 }, 1)
		h := refusal{connect.NewErrorWriter()}.withBody(in, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || len(body) != 200<<10 || r.ContentLength != 200<<10 {
				t.Errorf("%d bytes, %v", len(body), err)
			}
			served = time.Since(begin)
			_, _ = io.WriteString(w, strings.Repeat("x", 10*minRate))
		}))
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", &trickle{200 << 10, 4 << 10, time.Second}))
		if served < 50*time.Second {
			t.Errorf("served after %v", served)
		}
		last := time.Time{}
		for i, at := range w.read[:len(w.read)-1] {
			if at.Before(last) && !at.IsZero() {
				t.Errorf("deadline %d is %v, earlier than the one before", i, at)
			}
			last = at
		}
		if n := len(w.read); n < 200/16 || !w.read[n-1].IsZero() {
			t.Errorf("deadlines %v", w.read)
		}
		if len(w.write) != 2 || w.write[0].Sub(begin.Add(served)) != answerTime+10*time.Second {
			t.Errorf("the answer may take until %v", w.write)
		}
	})
}

// TestABodyThatIsCutOffIsAnswered: and the connection is not used again.
func TestABodyThatIsCutOffIsAnswered(t *testing.T) {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	in := newIntake(func(*http.Request) int64 { return 1 << 20 }, 1)
	h := refusal{connect.NewErrorWriter()}.withBody(in,
		http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was served") }))
	body, send := io.Pipe()
	go func() {
		_, _ = io.WriteString(send, "{")
		in.small.mu.Lock()
		for g := range in.small.in {
			defer g.cut()
		}
		in.small.mu.Unlock()
		_ = send.CloseWithError(errors.New("i/o timeout"))
	}()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", body))
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Connection") != "close" ||
		!strings.Contains(w.Body.String(), "did not arrive in time") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if len(in.small.in) != 0 {
		t.Error("it still has its place")
	}
}

// TestABurstIsServedInOrder: many who are quick wait for each other, and nobody is refused or cut off.
func TestABurstIsServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &room{most: 2, grace: time.Second, rate: 1 << 40, patient: 100}
		var mu sync.Mutex
		var order []int
		done := make(chan error)
		for i := range 50 {
			go func() {
				g := &guest{cut: func() { t.Errorf("%d was cut off", i) }}
				err := r.enter(t.Context(), g)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Millisecond + time.Duration(i)*time.Microsecond)
				r.leave(g)
				done <- err
			}()
			synctest.Wait()
		}
		for range 50 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if !slices.IsSorted(order) || len(order) != 50 || len(r.in)+len(r.queue) != 0 {
			t.Errorf("served in the order %v; %d and %d are left", order, len(r.in), len(r.queue))
		}
	})
}
