package storetest

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
)

// Lent is a store whose objects can be lent, for tests of those who hold URLs and no keys: another store behind a server on the loopback.
// Places lie in memory.
type Lent struct {
	store.Store
	server *httptest.Server

	mu     sync.Mutex
	lent   map[string]loan
	places map[string][]byte
	away   bool
}

// loan is what a URL is for: an object to read, or a place to write to, or to read.
type loan struct {
	object store.Digest
	place  string
	reads  bool
	until  time.Time
}

// Lend lends the objects of a store, until the test is over.
func Lend(t testing.TB, s store.Store) *Lent {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return LendOn(t, s, on)
}

// LendOn is Lend for clients that can't reach the loopback: its URLs are those of a listener.
func LendOn(t testing.TB, s store.Store, on net.Listener) *Lent {
	l := &Lent{Store: s, lent: map[string]loan{}, places: map[string][]byte{}}
	l.server = &httptest.Server{Listener: on,
		Config: &http.Server{Handler: http.HandlerFunc(l.serve)}} //nolint:gosec // its clients are the test's
	l.server.Start()
	t.Cleanup(l.server.Close)
	return l
}

// SetAway makes the server answer only errors, or ends that. It does not touch the store itself.
func (l *Lent) SetAway(away bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.away = away
}

// Places names what lies at places that nobody has cleared.
func (l *Lent) Places() (all []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for p := range l.places {
		all = append(all, p)
	}
	return all
}

func (l *Lent) serve(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	b, ok := l.lent[strings.TrimPrefix(r.URL.Path, "/")]
	away := l.away
	l.mu.Unlock()
	switch {
	case away:
		http.Error(w, "it is away", http.StatusServiceUnavailable)
	case !ok || time.Now().After(b.until):
		http.Error(w, "there is no such URL, or it has expired", http.StatusForbidden)
	case r.Method == http.MethodGet && b.object != "":
		l.give(w, r, b.object)
	case r.Method == http.MethodGet && b.reads:
		data, err := l.Peek(r.Context(), b.place, 1<<20)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(data)
	case r.Method == http.MethodPut && b.place != "" && !b.reads:
		data, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.places[b.place] = data
	default:
		http.Error(w, "not what the URL is for", http.StatusForbidden)
	}
}

func (l *Lent) give(w http.ResponseWriter, r *http.Request, d store.Digest) {
	in, err := l.Open(r.Context(), d)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	defer func() { _ = in.Close() }()
	_, _ = io.Copy(w, in)
}

func (l *Lent) lend(b loan) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := rand.Text()
	l.lent[key] = b
	return l.server.URL + "/" + key
}

// LendGet implements store.Lender.
func (l *Lent) LendGet(_ context.Context, d store.Digest, expires time.Duration) (string, error) {
	return l.lend(loan{object: d, until: time.Now().Add(expires)}), d.Check()
}

// LendPut implements store.Lender.
func (l *Lent) LendPut(_ context.Context, place string, expires time.Duration) (string, error) {
	return l.lend(loan{place: place, until: time.Now().Add(expires)}), store.CheckName(place)
}

// LendRead implements store.Lender.
func (l *Lent) LendRead(_ context.Context, place string, expires time.Duration) (string, error) {
	return l.lend(loan{place: place, reads: true, until: time.Now().Add(expires)}), store.CheckName(place)
}

// Write implements store.Lender.
func (l *Lent) Write(_ context.Context, place string, data []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.away {
		return errkind.Errorf(errkind.Unavailable, "it is away")
	}
	l.places[place] = bytes.Clone(data)
	return store.CheckName(place)
}

// Peek implements store.Lender.
func (l *Lent) Peek(_ context.Context, place string, most int64) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	data, ok := l.places[place]
	switch {
	case l.away:
		return nil, errkind.Errorf(errkind.Unavailable, "it is away")
	case !ok:
		return nil, errkind.Errorf(errkind.NotFound, "nothing was written to %s", place)
	case int64(len(data)) > most:
		return nil, errkind.Errorf(errkind.Exhausted, "%s is longer than %d bytes", place, most)
	}
	return bytes.Clone(data), nil
}

// Written implements store.Lender.
func (l *Lent) Written(_ context.Context, place string) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	data, ok := l.places[place]
	switch {
	case l.away:
		return 0, errkind.Errorf(errkind.Unavailable, "it is away")
	case !ok:
		return 0, errkind.Errorf(errkind.NotFound, "nothing was written to %s", place)
	}
	return int64(len(data)), nil
}

// Adopt implements store.Lender.
func (l *Lent) Adopt(ctx context.Context, place string, want store.Digest) (o store.Object, err error) {
	l.mu.Lock()
	data, ok := l.places[place]
	away := l.away
	l.mu.Unlock()
	if away {
		return o, errkind.Errorf(errkind.Unavailable, "it is away")
	}
	if err = l.Renew(ctx, want); errkind.Of(err) == errkind.NotFound {
		if !ok {
			return o, errkind.Errorf(errkind.NotFound, "nothing was written to %s", place)
		}
		_, err = l.Put(ctx, want, bytes.NewReader(data))
	}
	if err != nil {
		return o, fmt.Errorf("adopt %s: %w", place, err)
	}
	_ = l.Drop(ctx, place)
	return l.Stat(ctx, want)
}

// Drop implements store.Lender.
func (l *Lent) Drop(_ context.Context, place string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.places, place)
	return nil
}

var _ store.Lender = (*Lent)(nil)
