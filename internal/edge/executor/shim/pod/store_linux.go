package pod

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/edge/store"
	storetree "sluice.dev/sluice/internal/edge/store/tree"
)

// put uploads to a place.
func put(ctx context.Context, to *http.Client, url string, src io.ReaderAt, size int64) error {
	read := &reader{from: io.NewSectionReader(src, 0, size)}
	q, err := http.NewRequestWithContext(ctx, http.MethodPut, url, read)
	if err != nil {
		return err
	}
	if q.ContentLength = size; size == 0 {
		q.Body = http.NoBody
	}
	r, err := to.Do(q)
	if read.failed != nil { // not the store's fault
		return read.failed
	}
	if err != nil {
		return errkind.Errorf(errkind.Unavailable, "%w", bare(err))
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode/100 != 2 {
		return refused(r)
	}
	return nil
}

// reader remembers a read error.
type reader struct {
	from   io.Reader
	failed error
}

func (r *reader) Read(data []byte) (int, error) {
	n, err := r.from.Read(data)
	if err != nil && !errors.Is(err, io.EOF) {
		r.failed = err
	}
	return n, err
}

// teller uploads the latest word in the background, so that a slow store delays nothing.
type teller struct {
	to    *http.Client
	url   string
	every time.Duration
	mu    sync.Mutex
	// said is the last uploaded word; busy: an upload is in progress.
	said Word
	busy bool
	last time.Time
}

func newTeller(to *http.Client, url string, every time.Duration) *teller {
	return &teller{to: to, url: url, every: every}
}

func (t *teller) say(w Word) {
	t.mu.Lock()
	defer t.mu.Unlock()
	news := w.Progress != t.said.Progress || w.Storing != t.said.Storing || t.said.Started == 0
	if !news || t.busy || !w.Storing && time.Since(t.last) < t.every {
		return
	}
	t.busy, t.last = true, time.Now()
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		data, err := json.Marshal(w)
		if err == nil {
			err = put(ctx, t.to, t.url, bytes.NewReader(data), int64(len(data)))
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.busy = false; err == nil {
			t.said = w
		}
	}()
}

func fetchOnce(ctx context.Context, from *http.Client, s *Source, into string, writable bool) error {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return err
	}
	r, err := from.Do(q)
	if err != nil {
		return errkind.Errorf(errkind.Unavailable, "%w", bare(err))
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		return refused(r)
	}
	if err = os.RemoveAll(into); err != nil { //sluice:trusted the container is the subjob's own, and nothing of it runs yet
		return err
	}
	if err = os.MkdirAll(into, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(into)
	if err != nil {
		return err
	}
	body := store.Verified(&body{r.Body}, s.Digest, "the store")
	_, _, err = storetree.Unpack(body, root, storetree.Limits{Bytes: s.Bytes, Entries: storetree.MaxEntries, Writable: writable}, nil)
	return errors.Join(err, root.Close())
}

// body marks a broken connection as an error to retry.
type body struct{ io.ReadCloser }

func (b *body) Read(data []byte) (int, error) {
	n, err := b.ReadCloser.Read(data)
	if err != nil && !errors.Is(err, io.EOF) {
		err = errkind.Errorf(errkind.Unavailable, "%w", err)
	}
	return n, err
}

// bare strips the URL from an error, since it grants reading.
func bare(err error) error {
	var u interface{ Unwrap() error }
	if errors.As(err, &u) && u.Unwrap() != nil {
		return u.Unwrap()
	}
	return err
}

// refused turns a store's HTTP error into one of ours.
func refused(r *http.Response) error {
	said, _ := io.ReadAll(io.LimitReader(r.Body, 300))
	kind := errkind.Denied
	switch {
	case r.StatusCode == http.StatusNotFound:
		kind = errkind.NotFound
	case r.StatusCode >= 500, r.StatusCode == http.StatusTooManyRequests, r.StatusCode == http.StatusRequestTimeout:
		kind = errkind.Unavailable
	case r.StatusCode == http.StatusRequestEntityTooLarge, r.StatusCode == http.StatusBadRequest:
		kind = errkind.Exhausted
	}
	return errkind.Errorf(kind, "the store says %s %s", r.Status, strings.Join(strings.Fields(string(said)), " "))
}

// clientOf makes the HTTP client for the store. This process runs in the job's image, which may lack certificates, or the private
// authority that signed the store's. So the bundle that the installer copied from our image is trusted too. Without a bundle it is
// net/http's default client.
func clientOf(bundle string) *http.Client {
	data, err := os.ReadFile(bundle)
	if err != nil {
		return http.DefaultClient
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	pool.AppendCertsFromPEM(data)
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // net/http documents it
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	return &http.Client{Transport: t}
}
