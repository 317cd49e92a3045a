// Package queue is what pilots are measured beside: workers that pull single units from a durable queue, each with a lease, run each as a
// process of its own and commit it. It is as an engineer would run it who keeps a queue well. The queue answers a pull or a commit once it
// is synced to disk, and whatever waits meanwhile shares the next sync, as PostgreSQL does with synchronous_commit=on (Redis with
// appendfsync always is alike; everysec, its default, could lose a second of commits). A unit whose lease has ended is given again, and a
// commit by anybody but the holder of its latest grant is refused. A worker that is told to end finishes its unit where that fits into its
// grace, else gives it back at once.
package queue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"sluice.dev/sluice/internal/core/errkind"
)

// Counts are how much a queue has done: units committed, grants given, and commits refused.
type Counts struct{ Committed, Granted, Refused int }

// Queue is a durable queue of units that are numbered from 0. Its file has a line for each change.
type Queue struct {
	file *os.File
	now  func() time.Time
	wake chan struct{} // has room for one: there is something to sync
	stop chan struct{}
	over sync.WaitGroup

	mu      sync.Mutex
	l       ledger
	refused int
	// next collects the records that the next sync makes durable.
	next *batch
	// failed is the first error of a sync; all later changes fail with it.
	failed error
}

// batch is what one sync makes durable. err is set before done is closed.
type batch struct {
	lines []byte
	done  chan struct{}
	err   error
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// Open opens the queue in a file, which need not be there. Leases last timeout; those that a queue before has given begin anew.
func Open(path string, timeout time.Duration) (*Queue, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	q := &Queue{file: file, now: time.Now, wake: make(chan struct{}, 1), stop: make(chan struct{}), next: newBatch(),
		l: ledger{timeout: timeout}}
	if err := q.load(path); err != nil {
		_ = file.Close()
		return nil, err
	}
	q.over.Go(q.write)
	return q, nil
}

// load replays the file, and cuts off what a crash has left of a last line: nobody was answered about it.
func (q *Queue) load(path string) error {
	data, err := io.ReadAll(q.file)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	if err = q.l.replay(data[:whole], q.now()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err = q.file.Truncate(int64(whole)); err != nil {
		return err
	}
	if _, err = q.file.Seek(int64(whole), io.SeekStart); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path)) // the file's name has to outlast a power cut, too
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }()
	return dir.Sync()
}

// replay applies whole lines.
func (l *ledger) replay(data []byte, now time.Time) error {
	n := 0
	for line := range bytes.Lines(data) {
		n++
		if err := l.apply(string(bytes.TrimSuffix(line, []byte("\n"))), now); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	return nil
}

// write makes one batch after the other durable.
func (q *Queue) write() {
	for {
		select {
		case <-q.wake:
		case <-q.stop:
			return
		}
		q.mu.Lock()
		b := q.next
		q.next = newBatch()
		b.err = q.failed
		q.mu.Unlock()
		if b.err == nil && len(b.lines) > 0 {
			if _, b.err = q.file.Write(b.lines); b.err == nil {
				b.err = q.file.Sync()
			}
		}
		if b.err != nil {
			q.mu.Lock()
			q.failed = b.err
			q.mu.Unlock()
		}
		close(b.done)
	}
}

// change does a step and returns once its record is durable, and all records before it, which its answer may rest on.
func (q *Queue) change(step func() string) error {
	q.mu.Lock()
	b := q.next
	b.lines = append(b.lines, step()...)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default: // whoever is awake takes it along
	}
	<-b.done
	return b.err
}

// Push adds n units.
func (q *Queue) Push(n int) error {
	if n < 0 || n > maxPush {
		return errkind.Errorf(errkind.Invalid, "%d units: want 0 to %d", n, maxPush)
	}
	return q.change(func() string { return q.l.push(n) })
}

// Pull grants a unit, if there is one.
func (q *Queue) Pull() (g Grant, ok bool, err error) {
	err = q.change(func() (text string) { g, text = q.l.pull(q.now()); ok = text != ""; return text })
	return g, ok && err == nil, err
}

// Back gives a unit back before its lease ends; one that is not the caller's any more is left as it is.
func (q *Queue) Back(g Grant) error {
	return q.change(func() string { return q.l.back(g) })
}

// Commit counts a unit as done, and reports whether it was the caller's to commit.
func (q *Queue) Commit(g Grant) (accepted bool, err error) {
	err = q.change(func() (text string) {
		if text, accepted = q.l.commit(g); !accepted {
			q.refused++
		}
		return text
	})
	return accepted && err == nil, err
}

// Counts so far.
func (q *Queue) Counts() Counts {
	q.mu.Lock()
	defer q.mu.Unlock()
	return Counts{Committed: q.l.done, Granted: q.l.tokens, Refused: q.refused}
}

// Close ends the queue. Nobody may call it meanwhile, nor later.
func (q *Queue) Close() error {
	close(q.stop)
	q.over.Wait()
	return q.file.Close()
}

// ServeHTTP is the queue as workers reach it: POST /pull, /back and /commit.
func (q *Queue) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var g Grant
	if r.URL.Path != "/pull" {
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1000)).Decode(&g); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	code, err := http.StatusOK, error(nil)
	switch r.URL.Path {
	case "/pull":
		var ok bool
		if g, ok, err = q.Pull(); !ok {
			code = http.StatusNoContent
		}
	case "/back":
		err = q.Back(g)
	case "/commit":
		var accepted bool
		if accepted, err = q.Commit(g); !accepted {
			code = http.StatusConflict
		}
	default:
		code = http.StatusNotFound
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if w.WriteHeader(code); code == http.StatusOK {
		_ = json.NewEncoder(w).Encode(g) // a client that is gone asks again
	}
}
