package pod

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/tree"
)

// Pauses between tries to reach the store.
const (
	firstPause = 200 * time.Millisecond
	lastPause  = 10 * time.Second
)

// furnish makes the run directory with everything that the subjob starts from. Errors of kind Invalid are the job's.
func (p *process) furnish() error {
	if !filepath.IsLocal(filepath.Join(".", p.run.Subdir)) {
		return errkind.Errorf(errkind.Invalid, "subdirectory %q leads out of the work directory", p.run.Subdir)
	}
	for _, dir := range []string{string(p.dir), p.dir.Work(), p.dir.Output(), p.dir.Checkpoint(), p.dir.ProgressDir(), p.dir.Tmp()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := p.fetch("work directory", p.run.Work, p.dir.Work(), true); err != nil {
		return err
	}
	if p.run.Work != nil {
		p.lease.Unpacked = p.lease.Anchor.Now()
	}
	if err := p.fetch("checkpoint to start from", p.run.Resume, p.lease.Resume, false); err != nil {
		return err
	}
	return p.dir.Begin(&p.lease)
}

// fetch unpacks an object into a directory. It retries when the store is away or the data damaged, until the subjob is to end or only its
// grace is left.
func (p *process) fetch(what string, s *Source, into string, writable bool) error {
	if s == nil {
		return nil
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		ctx, done := p.within(p.hurried)
		err := fetchOnce(ctx, p.store, s, into, writable)
		done()
		if err == nil {
			return nil
		}
		err = fmt.Errorf("fetching the %s: %w", what, err)
		k := errkind.Of(err)
		if k != errkind.Unavailable && k != errkind.Corrupt {
			return err
		}
		fmt.Fprintln(os.Stderr, "sluice-shim:", err)
		if !p.pause(pause) {
			return err
		}
	}
}

// pause waits, and reports whether there is time for another try.
func (p *process) pause(d time.Duration) bool {
	for until := time.Now().Add(d); time.Now().Before(until); time.Sleep(tick) {
		if p.hurried() {
			return false
		}
	}
	return true
}

// hurried reports whether the subjob is to end before its begin, or has no time left to begin.
func (p *process) hurried() bool {
	return p.stopped() || p.lease.Anchor.Until(min(p.order.End, p.run.End)) <= p.run.Grace
}

// within is a context that ends once a condition holds, which it polls until done is called. Nobody else may evaluate the condition
// meanwhile.
func (p *process) within(over func() bool) (ctx context.Context, done func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var looking sync.WaitGroup
	looking.Go(func() {
		again := time.NewTicker(tick)
		defer again.Stop()
		for ctx.Err() == nil {
			select {
			case <-again.C:
				if over() {
					cancel()
				}
			case <-ctx.Done():
			}
		}
	})
	return ctx, func() { cancel(); looking.Wait() }
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
	_, _, err = tree.Unpack(body, root, tree.Limits{Bytes: s.Bytes, Entries: tree.MaxEntries, Writable: writable}, nil)
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

// ended is when the Pod ends even if its output is not stored.
func (p *process) ended(end quantity.Instant) quantity.Instant {
	if end == quantity.Never {
		return end
	}
	return end.Add(p.run.Linger)
}
