package s3_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/s3"
	"sluice.dev/sluice/internal/edge/store/storetest"
)

func TestConformance(t *testing.T) { storetest.Run(t, place) }

func opened(t *testing.T) (*server, *s3.Store) {
	t.Helper()
	srv := serve(t)
	s, err := s3.Open(t.Context(), srv.options(failing{srv, overSocket(srv.socket)}))
	if err != nil {
		t.Fatal(err)
	}
	return srv, s
}

func digestOf(data []byte) store.Digest {
	h := sha256.New()
	h.Write(data)
	return store.DigestOf(h)
}

// busy says to some writes that another is in their way.
type busy struct {
	next  http.RoundTripper
	times *atomic.Int32
}

func (b busy) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodPut && b.times.Add(-1) >= 0 {
		_ = r.Body.Close()
		return answer(r, http.StatusConflict, "ExistingObjectIsDirectory"), nil
	}
	return b.next.RoundTrip(r)
}

// TestAConflictIsTriedAgain, and not for ever.
func TestAConflictIsTriedAgain(t *testing.T) {
	srv := serve(t)
	var times atomic.Int32
	s, err := s3.Open(t.Context(), srv.options(busy{overSocket(srv.socket), &times}))
	if err != nil {
		t.Fatal(err)
	}
	times.Store(4)
	if _, err := s.Now(t.Context()); err != nil {
		t.Error(err)
	}
	times.Store(1 << 20)
	if _, err := s.Now(t.Context()); err == nil {
		t.Error("no error, though the server always said that something is in the way")
	}
}

// stranger is somebody without keys.
type stranger struct {
	t      *testing.T
	client http.Client
}

func (x *stranger) do(method, url string, body []byte) (int, []byte) {
	x.t.Helper()
	r, err := http.NewRequestWithContext(x.t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		x.t.Fatal(err)
	}
	resp, err := x.client.Do(r)
	if err != nil {
		x.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		x.t.Fatal(err)
	}
	return resp.StatusCode, data
}

// TestWhatIsLentIsOneObject: with a URL, and nothing else, one object can be read, or one place written; no other, in no other way, and
// not for ever.
func TestWhatIsLentIsOneObject(t *testing.T) {
	srv, s := opened(t)
	x := &stranger{t, http.Client{Transport: overSocket(srv.socket)}}
	mine, other := []byte("the work directory"), []byte("somebody else's")
	for _, data := range [][]byte{mine, other} {
		if _, err := s.Put(t.Context(), "", bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
	}
	get, err := s.LendGet(t.Context(), digestOf(mine), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if status, data := x.do(http.MethodGet, get, nil); status != http.StatusOK || !bytes.Equal(data, mine) {
		t.Errorf("reading what was lent: %d, %s", status, data)
	}
	put, err := s.LendPut(t.Context(), "jobs/a/1-output", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ method, url string }{
		"another object":    {http.MethodGet, strings.Replace(get, string(digestOf(mine)), string(digestOf(other)), 1)},
		"without the rest":  {http.MethodGet, get[:strings.Index(get, "?")]},
		"writing it":        {http.MethodPut, get},
		"removing it":       {http.MethodDelete, get},
		"for longer":        {http.MethodGet, strings.Replace(get, "X-Amz-Expires=3600", "X-Amz-Expires=7200", 1)},
		"another place":     {http.MethodPut, strings.Replace(put, "1-output", "2-output", 1)},
		"an object":         {http.MethodPut, strings.Replace(put, "incoming/jobs/a/1-output", "objects/"+string(digestOf(mine)), 1)},
		"reading the place": {http.MethodGet, put},
		"the bucket":        {http.MethodGet, "http://gateway:80/bucket/"},
	} {
		if status, data := x.do(c.method, c.url, []byte("x")); status != http.StatusForbidden {
			t.Errorf("%s: %d, %.200s", what, status, data)
		}
	}
	brief, err := s.LendGet(t.Context(), digestOf(mine), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if status, _ := x.do(http.MethodGet, brief, nil); status == http.StatusForbidden {
			break
		}
		if time.Now().After(until) {
			t.Fatal("a URL for a second is good for a minute")
		}
	}
	if _, err := s.LendGet(t.Context(), digestOf(mine), 30*24*time.Hour); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a URL for a month: %v", err)
	}
}

// TestWhatWasWrittenIsAdoptedOnce: what somebody without keys wrote is an object once its digest was checked, and not before.
func TestWhatWasWrittenIsAdoptedOnce(t *testing.T) {
	srv, s := opened(t)
	x := &stranger{t, http.Client{Transport: overSocket(srv.socket)}}
	data := bytes.Repeat([]byte("output "), 1<<20)
	put, err := s.LendPut(t.Context(), "a/1", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = s.Adopt(t.Context(), "a/1", digestOf(data)); errkind.Of(err) != errkind.NotFound {
		t.Errorf("adopting before anything was written: %v", err)
	}
	if status, text := x.do(http.MethodPut, put, data[:1000]); status != http.StatusOK { // it broke off, and the program was well with that
		t.Fatalf("writing: %d, %s", status, text)
	}
	if _, err = s.Adopt(t.Context(), "a/1", digestOf(data)); errkind.Of(err) != errkind.Invalid {
		t.Errorf("adopting half of it: %v", err)
	}
	if _, err = s.Stat(t.Context(), digestOf(data)); errkind.Of(err) != errkind.NotFound {
		t.Errorf("half of it is an object: %v", err)
	}
	if status, text := x.do(http.MethodPut, put, data); status != http.StatusOK {
		t.Fatalf("writing once more: %d, %s", status, text)
	}
	for range 2 { // a restart does it again
		if o, err := s.Adopt(t.Context(), "a/1", digestOf(data)); err != nil || o.Size != int64(len(data)) {
			t.Fatalf("%+v, %v", o, err)
		}
	}
	r, err := s.Open(t.Context(), digestOf(data))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if err := s.Drop(t.Context(), "a/1"); err != nil {
		t.Error(err)
	}
}

// TestAPlaceCanBeReadByWhoHasNoKeys, as it is then, by a URL that is good for nothing else.
func TestAPlaceCanBeReadByWhoHasNoKeys(t *testing.T) {
	srv, s := opened(t)
	x := &stranger{t, http.Client{Transport: overSocket(srv.socket)}}
	const place = "beats/main.journal"
	get, err := s.LendRead(t.Context(), place, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if status, text := x.do(http.MethodGet, get, nil); status != http.StatusNotFound {
		t.Errorf("before anything was written: %d, %s", status, text)
	}
	for _, word := range []string{"1", "another", ""} {
		if err := s.Write(t.Context(), place, []byte(word)); err != nil {
			t.Fatal(err)
		}
		if status, data := x.do(http.MethodGet, get, nil); status != http.StatusOK || string(data) != word {
			t.Errorf("%d, %q, want %q", status, data, word)
		}
	}
	if status, data := x.do(http.MethodPut, get, []byte("x")); status != http.StatusForbidden {
		t.Errorf("writing by a URL to read: %d, %s", status, data)
	}
	if _, err := s.LendRead(t.Context(), "../x", time.Hour); errkind.Of(err) != errkind.Invalid {
		t.Errorf("a place that is none: %v", err)
	}
	if err := s.Drop(t.Context(), place); err != nil {
		t.Error(err)
	}
}

// TestAPlaceCanBeLookedInto: what somebody without keys writes again and again is read as it is now, and no more of it than was asked for.
func TestAPlaceCanBeLookedInto(t *testing.T) {
	srv, s := opened(t)
	x := &stranger{t, http.Client{Transport: overSocket(srv.socket)}}
	put, err := s.LendPut(t.Context(), "pods/main/1-1/progress", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Peek(t.Context(), "pods/main/1-1/progress", 100); errkind.Of(err) != errkind.NotFound {
		t.Errorf("before anything was written: %v", err)
	}
	for _, word := range []string{"5 of 10", "all of it"} {
		if status, text := x.do(http.MethodPut, put, []byte(word)); status != http.StatusOK {
			t.Fatalf("writing: %d, %s", status, text)
		}
		if got, err := s.Peek(t.Context(), "pods/main/1-1/progress", int64(len(word))); err != nil || string(got) != word {
			t.Errorf("%q, %v, want %q", got, err, word)
		}
	}
	if n, err := s.Written(t.Context(), "pods/main/1-1/progress"); err != nil || n == 0 {
		t.Errorf("%d bytes were written, %v", n, err)
	}
	if _, err := s.Written(t.Context(), "pods/main/1-1/nothing"); errkind.Of(err) != errkind.NotFound {
		t.Errorf("a place where nothing was written: %v", err)
	}
	if _, err := s.Peek(t.Context(), "pods/main/1-1/progress", 3); errkind.Of(err) != errkind.Exhausted {
		t.Errorf("more than was asked for: %v", err)
	}
	if _, err := s.Peek(t.Context(), "../x", 3); errkind.Of(err) != errkind.Invalid {
		t.Errorf("no place: %v", err)
	}
	if err := s.Drop(t.Context(), "pods/main/1-1/progress"); err != nil {
		t.Error(err)
	}
	if _, err := s.Peek(t.Context(), "pods/main/1-1/progress", 100); errkind.Of(err) != errkind.NotFound {
		t.Errorf("once it is cleared: %v", err)
	}
}

// TestABrokenConnectionGoesOn: what is read is whole although the connection breaks on the way.
func TestABrokenConnectionGoesOn(t *testing.T) {
	srv, s := opened(t)
	data := bytes.Repeat([]byte("0123456789"), 1<<20)
	if _, err := s.Put(t.Context(), "", bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	srv.mu.Lock()
	srv.broken = 3 << 20
	srv.mu.Unlock()
	r, err := s.Open(t.Context(), digestOf(data))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes of %d, %v", len(got), len(data), err)
	}
}

// meanwhile does something once, before the second part of an upload is sent.
type meanwhile struct {
	next http.RoundTripper
	do   func()
	once sync.Once
}

func (m *meanwhile) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Get("partNumber") == "2" {
		m.once.Do(m.do)
	}
	return m.next.RoundTrip(r)
}

// TestAnotherWriterIsFaster: while one is at an upload another goes on with it and completes it, or gives it up; the first is done all the
// same.
func TestAnotherWriterIsFaster(t *testing.T) {
	srv := serve(t)
	other, err := s3.Open(t.Context(), srv.options(overSocket(srv.socket)))
	if err != nil {
		t.Fatal(err)
	}
	for what, do := range map[string]func(data []byte) error{
		"completes it": func(data []byte) error {
			_, err := other.Put(t.Context(), digestOf(data), bytes.NewReader(data))
			return err
		},
		"gives it up": func([]byte) error {
			_, err := other.Sweep(t.Context(), time.Now().Add(time.Hour))
			return err
		},
	} {
		data := bytes.Repeat([]byte(what), 1<<20)
		m := &meanwhile{next: overSocket(srv.socket)}
		done := false
		m.do = func() {
			done = true
			if err := do(data); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		s, err := s3.Open(t.Context(), srv.options(m))
		if err != nil {
			t.Fatal(err)
		}
		o, err := s.Put(t.Context(), digestOf(data), bytes.NewReader(data))
		if err != nil || o.Size != int64(len(data)) || !done {
			t.Errorf("another %s: %+v, %v", what, o, err)
		}
		r, err := s.Open(t.Context(), digestOf(data))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, data) {
			t.Errorf("another %s: %d bytes, %v", what, len(got), err)
		}
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	srv := serve(t)
	for what, c := range map[string]struct {
		change func(*s3.Options)
		want   errkind.Kind
	}{
		"a wrong key":   {func(o *s3.Options) { o.Secret = "another" }, errkind.Denied},
		"no bucket":     {func(o *s3.Options) { o.Bucket = "none" }, errkind.NotFound},
		"no server":     {func(o *s3.Options) { o.Transport = overSocket("/nowhere") }, errkind.Unavailable},
		"no address":    {func(o *s3.Options) { o.Endpoint = "gateway" }, errkind.Invalid},
		"an odd prefix": {func(o *s3.Options) { o.Prefix = "../x" }, errkind.Invalid},
	} {
		o := srv.options(overSocket(srv.socket))
		c.change(&o)
		if _, err := s3.Open(t.Context(), o); errkind.Of(err) != c.want {
			t.Errorf("%s: %v (%v), want kind %v", what, err, errkind.Of(err), c.want)
		}
	}
}

func TestSpecs(t *testing.T) {
	for spec, want := range map[string]s3.Options{
		"s3://b":                          {Bucket: "b"},
		"s3://b/some/where/":              {Bucket: "b", Prefix: "some/where"},
		"s3://b?endpoint=http://h:1":      {Bucket: "b", Endpoint: "http://h:1"},
		"s3://b/p?endpoint=h&region=here": {Bucket: "b", Prefix: "p", Endpoint: "h", Region: "here"},
	} {
		if o, err := s3.Parse(spec); err != nil || o != want {
			t.Errorf("%s: %+v, %v", spec, o, err)
		}
	}
	for _, spec := range []string{"", "b", "s3:b", "s3://", "http://b", "s3://me:secret@b", "s3://b?secret=x", "s3://b#x"} {
		if _, err := s3.Parse(spec); errkind.Of(err) != errkind.Invalid {
			t.Errorf("%s: %v", spec, err)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_ACCESS_KEY", "")
	t.Setenv("AWS_SECRET_KEY", "")
	t.Setenv("HOME", t.TempDir())
	if _, err := s3.Open(t.Context(), s3.Options{Bucket: "b"}); errkind.Of(err) != errkind.Denied ||
		!strings.Contains(err.Error(), "AWS_ACCESS_KEY_ID") {
		t.Errorf("without keys: %v", err)
	}
}

func BenchmarkStore(b *testing.B) { storetest.Bench(b, place) }
