package pod

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
	"sluice.dev/sluice/internal/core/job"
	"sluice.dev/sluice/internal/core/quantity"
	"sluice.dev/sluice/internal/edge/store"
	"sluice.dev/sluice/internal/edge/store/tree"
)

// putAway stores what counts, and only then returns how the subjob ended.
func (p *process) putAway(r job.Result) Said {
	s := Said{Result: r}
	if r.Progress <= p.run.Range.From && !r.Checkpoint {
		return s
	}
	defer p.saysStoring()()
	ctx, done := p.within(p.killed)
	defer done()
	until := p.ended(max(r.End, min(p.order.End, p.run.End)))
	var err error
	if s.Output, err = p.leave(ctx, "output", p.dir.Output(), p.run.Output, until); err == nil && r.Checkpoint && p.run.Member == 0 {
		s.Checkpoint, err = p.leave(ctx, "checkpoint", p.dir.Checkpoint(), p.run.Checkpoint, until)
	}
	if err == nil {
		return s
	}
	outcome := job.LimitKilled
	if k := errkind.Of(err); k == errkind.Unavailable || k == errkind.Denied {
		outcome = job.NodeFailed
	}
	s.Result.Outcome, s.Result.Progress, s.Result.Checkpoint, s.Output, s.Checkpoint = outcome, p.run.Range.From, false, nil, nil
	s.Result.Detail = "what it has left can't be stored, and does not count: " + strings.ToValidUTF8(err.Error(), "?") + "\n" + r.Detail
	return s
}

// saysStoring puts the word that the subjob is storing, with retries until it is stored or the returned function is called: its home then
// waits beyond the lease's end.
func (p *process) saysStoring() (stop func()) {
	done := make(chan struct{})
	var saying sync.WaitGroup
	saying.Go(func() {
		again := time.NewTicker(tick)
		defer again.Stop()
		for {
			p.tell(true)
			select {
			case <-again.C:
			case <-done:
				return
			}
		}
	})
	return func() { close(done); saying.Wait() }
}

// leave uploads a directory to a place, unless it is empty, with retries until the Pod is ended.
func (p *process) leave(ctx context.Context, what, dir, url string, until quantity.Instant) (*Left, error) {
	if list, err := os.ReadDir(dir); err != nil || len(list) == 0 {
		return nil, err
	}
	t, err := tree.Scan(dir)
	if err != nil {
		return nil, fmt.Errorf("the %s: %w", what, err)
	}
	defer func() { _ = t.Close() }()
	for _, left := range t.Left {
		fmt.Fprintf(os.Stderr, "sluice-shim: the %s is not stored whole: %s\n", what, left)
	}
	sum, err := store.Sum(ctx, t)
	for pause := firstPause; err == nil; pause = min(2*pause, lastPause) {
		if err = put(ctx, p.store, url, t, t.Size()); err == nil {
			return &Left{Digest: sum, Size: t.Size()}, nil
		}
		err = fmt.Errorf("storing the %s: %w", what, err)
		if errkind.Of(err) != errkind.Unavailable || ctx.Err() != nil || p.lease.Anchor.Until(until) <= pause {
			break
		}
		fmt.Fprintln(os.Stderr, "sluice-shim:", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done(): // reported by the next try
		}
		err = nil
	}
	return nil, err
}

// spare is how long before the kubelet's SIGKILL the first process gives up storing, so that it can still say so.
const spare = 2 * time.Second

// killed reports whether the Pod's grace period is nearly over after SIGTERM.
func (p *process) killed() bool {
	grace := p.run.Linger
	if p.stopped(); !p.order.Now {
		grace += p.run.Grace
	}
	return !p.signalled.IsZero() && time.Since(p.signalled) > grace-min(spare, grace/2)
}

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

// tell uploads the subjob's progress if it has changed.
func (p *process) tell(storing bool) {
	w := Word{At: p.lease.Anchor.Now(), Progress: p.run.Range.From, Storing: storing}
	if note, err := p.dir.ReadNote(); err == nil {
		w.Started = note.At
	}
	if said, ok := p.dir.ReadProgress(); ok && said.Progress > w.Progress && said.Progress <= p.run.Range.To {
		w.Progress = said.Progress
	}
	if w.Started != 0 || storing {
		p.told.say(w)
	}
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
