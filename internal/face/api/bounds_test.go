package api

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
)

// TestBucket: a burst, then the rate, then a full burst again after a rest; a clock that goes back gives nothing.
func TestBucket(t *testing.T) {
	var b bucket
	now := time.Unix(1e9, 0)
	taken := func() (n int) {
		for b.take(now) {
			n++
		}
		return n
	}
	for _, c := range []struct {
		pass time.Duration
		want int
	}{{0, Burst}, {0, 0}, {time.Second / 2, Rate / 2}, {-time.Hour, 0}, {2 * time.Hour, Burst}} {
		now = now.Add(c.pass)
		if got := taken(); got != c.want {
			t.Errorf("after %s: %d calls, want %d", c.pass, got, c.want)
		}
	}
}

// TestOpenCalls: one call more than may be open is refused, and is let in when another has ended.
func TestOpenCalls(t *testing.T) {
	var inside, ended sync.WaitGroup
	leave := make(chan struct{})
	var once sync.Once
	h := refusal{connect.NewErrorWriter()}.bounded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/stay" {
			inside.Done()
			<-leave
		}
	}))
	t.Cleanup(func() { once.Do(func() { close(leave) }) })
	call := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, nil))
		return w
	}
	inside.Add(MaxCalls)
	for range MaxCalls {
		ended.Go(func() { call("/stay") })
	}
	inside.Wait()
	if w := call("/go"); w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "1024 calls are open") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	once.Do(func() { close(leave) })
	ended.Wait()
	if w := call("/go"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
